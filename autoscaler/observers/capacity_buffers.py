"""What is seen of the CapacityBuffers by which Karpenter keeps nodes ready?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from autoscaler.api.document import rfc3339_seconds
from autoscaler.kubernetes_gateway.api_failure import ApiFailure

API_VERSION = "autoscaling.x-k8s.io/v1beta1"
# Ours are told by this label, whose value is the AcceleratorPool's name, and by the name that follows from it.
POOL_LABEL = "tokenscaler.io/accelerator-pool"
# What the places are like for which the buffer asks; a change of it means another pod template.
PLACES_ANNOTATION = "tokenscaler.io/places"


@dataclass(frozen=True, slots=True)
class CapacityBufferSeen:
    """A CapacityBuffer of ours. `is_ready` None: nobody has looked at it yet; else whether Karpenter can use it."""

    pool: str
    replicas: int
    places: str
    created_at_seconds: float
    is_ready: bool | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class BuffersNotServed:
    """The API server does not know CapacityBuffers of this version."""


@dataclass(frozen=True, slots=True)
class BuffersNotRead:
    """Not read yet, or not to be read: `failure` says why."""

    failure: ApiFailure | None = None


class CapacityBufferSource(Protocol):
    """Sees our CapacityBuffers. Never blocks on the network."""

    def capacity_buffers(self) -> Mapping[str, CapacityBufferSeen] | BuffersNotServed | BuffersNotRead:
        """Ours, by the name of their AcceleratorPool."""
        ...


def buffer_name(pool: str) -> str:
    """What the CapacityBuffer of an AcceleratorPool is called, and its pod template."""
    return f"tokenscaler-{pool}"


def reduce_capacity_buffer(document: Mapping[str, Any]) -> CapacityBufferSeen | None:
    """None for one that is not ours (one of another name is a copy of ours at best), or is being deleted."""
    metadata, spec = document["metadata"], document.get("spec") or {}
    pool = (metadata.get("labels") or {}).get(POOL_LABEL)
    if pool is None or metadata.get("name") != buffer_name(str(pool)):
        return None
    if metadata.get("deletionTimestamp") is not None:
        return None
    conditions = (document.get("status") or {}).get("conditions") or ()
    ready = next((each for each in conditions if each.get("type") == "ReadyForProvisioning"), None)
    return CapacityBufferSeen(
        pool=str(pool),
        replicas=int(spec.get("replicas") or 0),
        places=str((metadata.get("annotations") or {}).get(PLACES_ANNOTATION, "")),
        created_at_seconds=rfc3339_seconds(metadata.get("creationTimestamp")) or 0.0,
        is_ready=None if ready is None else ready.get("status") == "True",
        message="" if ready is None else f"{ready.get('reason', '')}: {ready.get('message', '')}",
    )
