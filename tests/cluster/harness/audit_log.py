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


def read_audit_log(path: Path) -> tuple[AuditEvent, ...]:
    """All requests that have ended, in the order of their end; a line that is still being written is left out."""
    if not path.exists():
        return ()
    lines = path.read_text(errors="replace").split("\n")[:-1]
    return tuple(_parse(line) for line in lines)
