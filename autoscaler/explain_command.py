"""Where `tokenscaler explain` finds records: a log file, a running controller, or the object's status."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import typer
from rich.console import Console

from autoscaler.decision_log import UnreadableRecord, read_log
from autoscaler.decision_record import DecisionRecord, differences, read_record
from autoscaler.exit_codes import FINE, NOT_RIGHT, WRONG_USAGE
from autoscaler.explain import print_record
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.connection import connect
from autoscaler.kubernetes_gateway.credentials import CredentialsError

HTTP_TIMEOUT_SECONDS = 10.0
MAXIMUM_ANSWER_BYTES = 16 * 1024 * 1024


def explain_log(path: Path, target: str | None, as_json: bool, console: Console) -> int:
    """Decides every record of the log again (of one pool where `target` is given); 1 at any difference.

    Prints the newest record and a count. A line that is no record is named and counts as a difference, except a last
    line that is cut short: a crash leaves that behind, and a running controller may be just writing it.
    """
    decided = different = unreadable = 0
    newest: DecisionRecord | None = None
    try:
        for entry in read_log(path):
            if isinstance(entry, UnreadableRecord):
                typer.echo(f"{path}:{entry.line_number}: {_unreadable(entry)}", err=True)
                unreadable += not entry.is_cut_short
                continue
            if target is not None and f"{entry.namespace}/{entry.name}" != target:
                continue
            decided, newest = decided + 1, entry
            if found := differences(entry):
                different += 1
                typer.echo(f"{path}: {entry.namespace}/{entry.name} at {entry.time}: {'; '.join(found)}", err=True)
    except OSError as error:
        return _refuse(f"cannot read the log {path}: {error.strerror}", WRONG_USAGE)
    if newest is None:
        return _refuse(f"no decision record{f' of {target}' if target else ''} in {path}", NOT_RIGHT)
    _show(newest, as_json, console)
    typer.echo(
        f"{decided} decisions decided again, {different} came out otherwise, {unreadable} lines unreadable", err=as_json
    )
    return NOT_RIGHT if different or unreadable else FINE


def _unreadable(entry: UnreadableRecord) -> str:
    if entry.is_cut_short:
        return "the last line is cut short and left out: a crash while it was written, or it is being written just now"
    return f"no decision record: {entry.problem}"


def explain_target(
    target: str, url: str | None, kubeconfig: Path | None, context: str | None, as_json: bool, console: Console
) -> int:
    """Explains one pool from a controller's newest record, or from the record in the object's status."""
    namespace, _, name = target.partition("/")
    if not namespace or not name or "/" in name:
        return _refuse(f"{target}: NAMESPACE/NAME is wanted", WRONG_USAGE)
    if url is not None and not url.startswith(("http://", "https://")):
        return _refuse(f"--url {url}: an http:// or https:// address is wanted", WRONG_USAGE)
    line = _from_controller(url, namespace, name) if url else _from_status(kubeconfig, context, namespace, name)
    if isinstance(line, _NotFound):
        return _refuse(line.problem, line.code)
    record = read_record(line)
    if isinstance(record, str):
        return _refuse(f"the record of {target} cannot be read: {record}", NOT_RIGHT)
    return FINE if _show(record, as_json, console) else NOT_RIGHT


def _refuse(problem: str, code: int) -> int:
    typer.echo(f"tokenscaler: {problem}", err=True)
    return code


@dataclass(frozen=True, slots=True)
class _NotFound:
    problem: str
    code: int = NOT_RIGHT


def _show(record: DecisionRecord, as_json: bool, console: Console) -> bool:
    if as_json:
        typer.echo(record.to_json_line())
        return not differences(record)
    return print_record(record, console)


def _from_controller(url: str, namespace: str, name: str) -> str | _NotFound:
    address = f"{url.rstrip('/')}/decisions/{quote(namespace)}/{quote(name)}"
    try:
        with urllib.request.urlopen(address, timeout=HTTP_TIMEOUT_SECONDS) as answer:
            body: bytes = answer.read(MAXIMUM_ANSWER_BYTES)
    except urllib.error.HTTPError as error:
        said = error.read(500).decode(errors="replace").strip()
        error.close()
        return _NotFound(f"GET {address}: {error.code} {said or error.reason}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        return _NotFound(f"GET {address}: {reason}; is the controller there, or is a port-forward missing?")
    return body.decode(errors="replace")


def _from_status(kubeconfig: Path | None, context: str | None, namespace: str, name: str) -> str | _NotFound:
    path = f"/apis/tokenscaler.io/v1alpha1/namespaces/{namespace}/inferencescalers/{name}"
    try:
        connection = connect(str(kubeconfig) if kubeconfig else None, context)
    except CredentialsError as error:
        return _NotFound(str(error), WRONG_USAGE)
    document = connection.get(path)
    if isinstance(document, ApiFailure):
        return _NotFound(document.message)
    status = document.get("status") or {}
    record = status.get("lastRecord")
    if not isinstance(record, str):
        said = f": {status['bindingReason']}: {status.get('message')}" if status.get("bindingReason") else None
        unknown = " yet; does a controller run? (a dry run writes no status: --url asks it)"
        return _NotFound(f"{namespace}/{name} has no decision in its status{said or unknown}")
    return record
