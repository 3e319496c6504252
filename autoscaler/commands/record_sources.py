"""Where are records found outside a log? At a running controller, or in the object's status."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from autoscaler.commands.record_window import RecordWindow
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.connection import connect
from autoscaler.kubernetes_gateway.credentials import CredentialsError

HTTP_TIMEOUT_SECONDS = 10.0
# A controller keeps 8 MiB of compressed records for all its pools; they are a third of their length.
MAXIMUM_ANSWER_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RecordsNotFound:
    """What was tried, what came back, and what the reader can do."""

    problem: str


def from_controller(url: str, namespace: str, name: str, window: RecordWindow) -> list[str] | RecordsNotFound:
    """The lines of one pool that a controller's HTTP side has for the window, the oldest first."""
    address = f"{url.rstrip('/')}/decisions/{quote(namespace)}/{quote(name)}"
    if window.at_seconds is not None:
        address += f"?at={window.at_seconds:.3f}"
    elif window.back_seconds is not None:
        address += f"?back={window.back_seconds:.0f}"
    try:
        with urllib.request.urlopen(address, timeout=HTTP_TIMEOUT_SECONDS) as answer:
            body: bytes = answer.read(MAXIMUM_ANSWER_BYTES)
    except urllib.error.HTTPError as error:
        said = error.read(500).decode(errors="replace").strip()
        error.close()
        return RecordsNotFound(f"GET {address}: {error.code} {said or error.reason}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        return RecordsNotFound(f"GET {address}: {reason}; is the controller there, or is a port-forward missing?")
    return body.decode(errors="replace").split("\n")


def from_status(kubeconfig: Path | None, context: str | None, namespace: str, name: str) -> str | RecordsNotFound:
    """The line of the newest record, as the object's status holds it."""
    path = f"/apis/tokenscaler.io/v1alpha1/namespaces/{namespace}/inferencescalers/{name}"
    try:
        connection = connect(str(kubeconfig) if kubeconfig else None, context)
    except CredentialsError as error:
        return RecordsNotFound(str(error))
    document = connection.get(path)
    if isinstance(document, ApiFailure):
        return RecordsNotFound(document.message)
    status = document.get("status") or {}
    record = status.get("lastRecord")
    if not isinstance(record, str):
        said = f": {status['bindingReason']}: {status.get('message')}" if status.get("bindingReason") else None
        unknown = " yet; does a controller run? (a dry run writes no status: --url asks it)"
        return RecordsNotFound(f"{namespace}/{name} has no decision in its status{said or unknown}")
    return record
