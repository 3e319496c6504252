"""Where `tokenscaler explain` finds records: a log file, a running controller, or the object's status."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import typer
from rich.console import Console

from autoscaler.decision_log import DecisionRecord, UnreadableRecord, differences, read_log, read_record
from autoscaler.explain import print_record
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.connection import connect
from autoscaler.kubernetes_gateway.credentials import CredentialsError

FINE, NOT_RIGHT, WRONG_USAGE = 0, 1, 2
HTTP_TIMEOUT_SECONDS = 10.0


def explain_log(path: Path, target: str | None, as_json: bool, console: Console) -> int:
    """Decides every record of the log again (of one pool where `target` is given); 1 at any difference.

    Prints the newest record and a count; an unreadable line is reported and counts as a difference, except a
    half-written last one, which is what a crash leaves behind.
    """
    decided = different = 0
    newest: DecisionRecord | None = None
    unreadable: list[UnreadableRecord] = []
    try:
        for entry in read_log(path):
            if isinstance(entry, UnreadableRecord):
                unreadable.append(entry)
                continue
            if target is not None and f"{entry.namespace}/{entry.name}" != target:
                continue
            decided += 1
            newest = entry
            found = differences(entry)
            if found:
                different += 1
                typer.echo(f"{path}: {entry.namespace}/{entry.name} at {entry.time}: {'; '.join(found)}", err=True)
    except OSError as error:
        typer.echo(f"tokenscaler: cannot read the log {path}: {error.strerror}", err=True)
        return WRONG_USAGE
    for bad in unreadable:
        typer.echo(f"{path}:{bad.line_number}: no decision record: {bad.problem}", err=True)
    if newest is None:
        typer.echo(f"tokenscaler: no decision record{f' of {target}' if target else ''} in {path}", err=True)
        return NOT_RIGHT
    _show(newest, as_json, console)
    typer.echo(
        f"{decided} decisions decided again, {different} came out otherwise, {len(unreadable)} lines unreadable",
        err=as_json,
    )
    return NOT_RIGHT if different or unreadable else FINE


def explain_target(
    target: str, url: str | None, kubeconfig: Path | None, context: str | None, as_json: bool, console: Console
) -> int:
    """Explains one pool from a controller's newest record, or from the record in the object's status."""
    namespace, separator, name = target.partition("/")
    if not separator or not namespace or not name or "/" in name:
        typer.echo(f"tokenscaler: {target}: NAMESPACE/NAME is wanted", err=True)
        return WRONG_USAGE
    line = _from_controller(url, namespace, name) if url else _from_status(kubeconfig, context, namespace, name)
    if isinstance(line, _NotFound):
        typer.echo(f"tokenscaler: {line.problem}", err=True)
        return NOT_RIGHT
    record = read_record(line)
    if isinstance(record, str):
        typer.echo(f"tokenscaler: the record of {target} cannot be read: {record}", err=True)
        return NOT_RIGHT
    return FINE if _show(record, as_json, console) else NOT_RIGHT


class _NotFound:
    def __init__(self, problem: str) -> None:
        self.problem = problem


def _show(record: DecisionRecord, as_json: bool, console: Console) -> bool:
    if as_json:
        typer.echo(record.to_json_line())
        return not differences(record)
    return print_record(record, console)


def _from_controller(url: str, namespace: str, name: str) -> str | _NotFound:
    address = f"{url.rstrip('/')}/decisions/{namespace}/{name}"
    if not address.startswith(("http://", "https://")):
        return _NotFound(f"--url {url}: an http(s) address is wanted")
    try:
        with urllib.request.urlopen(address, timeout=HTTP_TIMEOUT_SECONDS) as answer:
            body: bytes = answer.read()
    except urllib.error.HTTPError as error:
        return _NotFound(f"GET {address}: {error.code} {error.read(500).decode(errors='replace')}")
    except (OSError, ValueError) as error:
        return _NotFound(f"GET {address}: {error}; is the controller there, or is a port-forward missing?")
    return body.decode(errors="replace")


def _from_status(kubeconfig: Path | None, context: str | None, namespace: str, name: str) -> str | _NotFound:
    path = f"/apis/tokenscaler.io/v1alpha1/namespaces/{namespace}/inferencescalers/{name}"
    try:
        connection = connect(str(kubeconfig) if kubeconfig else None, context)
    except CredentialsError as error:
        return _NotFound(str(error))
    document = connection.get(path)
    if isinstance(document, ApiFailure):
        return _NotFound(document.message)
    record = document.get("status", {}).get("lastRecord")
    if not isinstance(record, str):
        return _NotFound(f"{namespace}/{name} has no decision in its status yet (does a controller run?)")
    return record
