"""Who did what on the API server, and when?"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})

# Reads of the control plane's own parts and all of kwok's work would drown what a test asks about.
AUDIT_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  users: [kwok, "system:apiserver", "system:kube-scheduler"]
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
  verbs: [get, list, watch]
- level: None
  users: ["system:kube-controller-manager"]
- level: RequestResponse
  verbs: [create, update, patch, delete]
  resources:
  - group: apps
    resources: [deployments/scale, statefulsets/scale]
  - group: leaderworkerset.x-k8s.io
  - group: coordination.k8s.io
    resources: [leases]
  - group: tokenscaler.io
  - group: karpenter.sh
    resources: [nodepools]
- level: Metadata
"""


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One finished request."""

    at: datetime.datetime
    user: str
    user_agent: str
    verb: str
    resource: str  # with the subresource: "deployments/scale"
    namespace: str
    name: str
    code: int
    uri: str
    request: dict[str, Any] | None
    response: dict[str, Any] | None

    @property
    def is_write(self) -> bool:
        """Whether it asked for a change, successful or not."""
        return self.verb in WRITE_VERBS

    @property
    def revision(self) -> int:
        """The place of what was written among all writes of the control plane; 0 where its body is not recorded."""
        return int((self.response or {}).get("metadata", {}).get("resourceVersion", 0))

    @property
    def is_next_page(self) -> bool:
        """Whether it asked for a further page of a list."""
        return "continue=" in self.uri


def _parse(line: str) -> AuditEvent:
    document = json.loads(line)
    target = document.get("objectRef", {})
    parts = (target.get("resource", ""), target.get("subresource", ""))
    return AuditEvent(
        at=datetime.datetime.fromisoformat(document["requestReceivedTimestamp"]),
        user=document["user"].get("username", ""),
        user_agent=document.get("userAgent", ""),
        verb=document["verb"],
        resource="/".join(part for part in parts if part),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=document.get("responseStatus", {}).get("code", 0),
        uri=document.get("requestURI", ""),
        request=document.get("requestObject"),
        response=document.get("responseObject"),
    )


class AuditLog:
    """The log of one API server, of which each line is read once: many tests share it, and ask often."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._events: list[AuditEvent] = []
        self._read_bytes = 0

    def events(self) -> tuple[AuditEvent, ...]:
        """All requests that have ended, in the order of their end; a line that is still being written is left out."""
        if self._path.exists():
            with self._path.open("rb") as log:
                log.seek(self._read_bytes)
                whole_lines = log.read().rpartition(b"\n")[0]
            if whole_lines:
                self._events += [_parse(line.decode(errors="replace")) for line in whole_lines.split(b"\n")]
                self._read_bytes += len(whole_lines) + 1
        return tuple(self._events)
