"""Holds nodes ready by CapacityBuffers: Karpenter then plans for pods that are not there, and needs none to run.

For each AcceleratorPool there is one buffer, and a pod template that takes a whole node, both in the controller's own
namespace. They belong to the AcceleratorPool, so that they go with it; where it no longer wants them we delete them.
What bears their name without our label is somebody else's: it is neither written nor deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.node_holder import HeldPool, NodeHolder
from autoscaler.api.accelerators import RESOURCE_NAME
from autoscaler.api.document import GROUP, VERSION
from autoscaler.api.node_template import NODE_POOL_LABEL
from autoscaler.api.taints import HARD_EFFECTS
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, Conflict, Forbidden, NotFound, Rejected
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.observers.capacity_buffers import (
    API_VERSION,
    PLACES_ANNOTATION,
    POOL_LABEL,
    BuffersNotRead,
    BuffersNotServed,
    CapacityBufferSeen,
    CapacityBufferSource,
    buffer_name,
)
from policies.reasons import Reason

Document = dict[str, Any]

MANAGED_BY = {"app.kubernetes.io/managed-by": "tokenscaler"}
# Karpenter looks at a new buffer within a second; where nobody does, its feature gate is off.
SILENCE_SECONDS = 60.0
# Why Karpenter cannot use a buffer whose pod template somebody has deleted.
TEMPLATE_LOST = "PodTemplateNotFound"


class CapacityBuffers:
    """The NodeHolders of method CapacityBuffer. `fence` says whether this process may still write."""

    def __init__(
        self, connection: ApiConnection, source: CapacityBufferSource, fence: Callable[[], bool], namespace: str
    ) -> None:
        self._connection = connection
        self._source = source
        self._fence = fence
        self._namespace = namespace

    def of(self, pool: HeldPool, now_seconds: float) -> NodeHolder | ActuationFailed:
        """The buffer of a pool, also before it has been made; or why there can be none."""
        match self._source.capacity_buffers():
            case BuffersNotServed():
                message = f"the API server knows no CapacityBuffer ({API_VERSION}): nodes come with the replicas"
                return ActuationFailed(Reason.CAPACITY_BUFFERS_NOT_SERVED, message)
            case BuffersNotRead(failure=None):
                return ActuationFailed(Reason.NOT_READ_YET, "CapacityBuffers are not read yet")
            case BuffersNotRead(failure=failure):
                assert failure is not None
                return ActuationFailed(_reason(failure), f"{failure.message}: nodes come with the replicas")
            case buffers:
                return _PoolBuffer(self, pool, buffers.get(pool.name), now_seconds)

    def release(self, pools: Collection[str]) -> None:
        """Deletes the buffers of these pools, where there are any; what fails is tried again with the next look."""
        buffers = self._source.capacity_buffers()
        if not isinstance(buffers, Mapping):
            return
        for pool in sorted(buffers.keys() & set(pools)):
            if self._fence():
                self._connection.delete(f"{self._buffers_path}/{buffer_name(pool)}")
                template = f"{self._templates_path}/{buffer_name(pool)}"
                if self._judge_owner(template, pool) is None:
                    self._connection.delete(template)

    def write(self, pool: HeldPool, seen: CapacityBufferSeen | None, pods: int) -> Actuated | ActuationFailed:
        """Makes the buffer and its pod template, or writes what differs of them."""
        name = buffer_name(pool.name)
        what = f"CapacityBuffer {self._namespace}/{name}: {0 if seen is None else seen.replicas} -> {pods}"
        places = _places(pool)
        has_template = seen is not None and seen.places == places and TEMPLATE_LOST not in seen.message
        if seen is not None and has_template and seen.replicas == pods:
            return Actuated(Reason.NODES_HELD_READY, "")
        if not self._fence():
            return ActuationFailed(Reason.NOT_LEADER, f"{what} not sent: this process does not hold the lease")
        failure = None if has_template else self._write_template(pool)
        failure = failure or (self._create(pool, pods, places) if seen is None else self._change(seen, pods, places))
        if isinstance(failure, _SomebodyElses):
            return ActuationFailed(Reason.NAME_TAKEN, f"{failure.message}: nodes come with the replicas")
        if failure is not None:
            return ActuationFailed(_reason(failure), f"{what} failed: {failure.message}")
        return Actuated(Reason.NODES_HELD_READY, what)

    @property
    def namespace(self) -> str:
        """Where they are."""
        return self._namespace

    @property
    def _buffers_path(self) -> str:
        return f"/apis/{API_VERSION}/namespaces/{self._namespace}/capacitybuffers"

    @property
    def _templates_path(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/podtemplates"

    def _write_template(self, pool: HeldPool) -> ApiFailure | _SomebodyElses | None:
        document = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": self._metadata(pool), "template": _pod(pool)}
        made = self._connection.create(self._templates_path, document)
        if isinstance(made, Conflict):
            path = f"{self._templates_path}/{buffer_name(pool.name)}"
            not_ours = self._judge_owner(path, pool.name)
            if not_ours is not None:
                return not_ours
            written: Document = {"op": "replace", "path": "/template", "value": _pod(pool)}
            made = self._connection.patch_by_operations(path, [_ours(pool.name), written])
        return made if isinstance(made, ApiFailure) else None

    def _judge_owner(self, path: str, pool: str) -> ApiFailure | _SomebodyElses | None:
        """None where the object bears our label for this pool. A patch that only tests needs no right to read."""
        answer = self._connection.patch_by_operations(path, [_ours(pool)])
        if not isinstance(answer, Rejected):
            return answer if isinstance(answer, ApiFailure) else None
        kind = "PodTemplate" if path.startswith(self._templates_path) else "CapacityBuffer"
        what = f"{kind} {self._namespace}/{buffer_name(pool)}"
        return _SomebodyElses(f"{what} has no label {POOL_LABEL}: {pool}, so it is somebody else's and left alone")

    def _create(self, pool: HeldPool, pods: int, places: str) -> ApiFailure | _SomebodyElses | None:
        document = {
            "apiVersion": API_VERSION,
            "kind": "CapacityBuffer",
            "metadata": self._metadata(pool) | {"annotations": {PLACES_ANNOTATION: places}},
            "spec": {"podTemplateRef": {"name": buffer_name(pool.name)}, "replicas": pods},
        }
        made = self._connection.create(self._buffers_path, document)
        if isinstance(made, Conflict):
            # Ours, where another process was quicker: the next look sees it.
            return self._judge_owner(f"{self._buffers_path}/{buffer_name(pool.name)}", pool.name) or made
        return made if isinstance(made, ApiFailure) else None

    def _change(self, seen: CapacityBufferSeen, pods: int, places: str) -> ApiFailure | None:
        body = {"metadata": {"annotations": {PLACES_ANNOTATION: places}}, "spec": {"replicas": pods}}
        made = self._connection.patch(f"{self._buffers_path}/{buffer_name(seen.pool)}", body)
        return made if isinstance(made, ApiFailure) else None

    def _metadata(self, pool: HeldPool) -> Document:
        owner = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "AcceleratorPool", "name": pool.name, "uid": pool.uid}
        return {
            "name": buffer_name(pool.name),
            "namespace": self._namespace,
            "labels": MANAGED_BY | {POOL_LABEL: pool.name},
            "ownerReferences": [owner],
        }


@dataclass(frozen=True, slots=True)
class _PoolBuffer:
    """A NodeHolder on the CapacityBuffer of a pool; `seen` None: there is none yet."""

    buffers: CapacityBuffers
    pool: HeldPool
    seen: CapacityBufferSeen | None
    now_seconds: float

    @property
    def name(self) -> str:
        return f"CapacityBuffer {self.buffers.namespace}/{buffer_name(self.pool.name)}"

    @property
    def pods(self) -> int:
        return 0 if self.seen is None else self.seen.replicas

    @property
    def accelerators_per_pod(self) -> int:
        return self.pool.accelerators_per_node

    @property
    def complaint(self) -> ActuationFailed | None:
        seen = self.seen
        if seen is None or seen.is_ready:
            return None
        if seen.is_ready is False:
            return ActuationFailed(Reason.CAPACITY_BUFFER_NOT_READY, f"{self.name}: {seen.message}")
        if self.now_seconds - seen.created_at_seconds < SILENCE_SECONDS:
            return None
        message = f"nobody looks at {self.name}: is Karpenter's feature gate CapacityBuffer on (1.14 and later)?"
        return ActuationFailed(Reason.CAPACITY_BUFFER_SILENT, f"{message} Nodes come with the replicas")

    def hold(self, pods: int) -> Actuated | ActuationFailed:
        return self.buffers.write(self.pool, self.seen, pods)


@dataclass(frozen=True, slots=True)
class _SomebodyElses:
    """An object of the name that ours would have, without our label."""

    message: str


def _ours(pool: str) -> Document:
    """The operation of a JSON patch that fails where an object is not ours; in its paths "/" is written "~1"."""
    return {"op": "test", "path": f"/metadata/labels/{POOL_LABEL.replace('/', '~1')}", "value": pool}


def _pod(pool: HeldPool) -> Document:
    """A pod that takes all accelerators of a node of the NodePool on demand. It never runs: the image is not pulled."""
    accelerators = {RESOURCE_NAME: str(pool.accelerators_per_node)}
    return {
        "metadata": {"labels": {POOL_LABEL: pool.name}},
        "spec": {
            "nodeSelector": {NODE_POOL_LABEL: pool.node_pool},
            "tolerations": [
                {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
                for taint in pool.taints
                if taint.effect in HARD_EFFECTS
            ],
            "containers": [
                {"name": "place", "image": "none", "resources": {"requests": accelerators, "limits": accelerators}}
            ],
        },
    }


def _places(pool: HeldPool) -> str:
    """What tells one pod template from another."""
    return json.dumps(_pod(pool)["spec"], sort_keys=True, separators=(",", ":"))


def _reason(failure: ApiFailure) -> Reason:
    match failure:
        case Forbidden():
            return Reason.FORBIDDEN
        case Conflict() | Rejected():
            return Reason.CONFLICT
        case NotFound():
            return Reason.CAPACITY_BUFFERS_NOT_SERVED
    return Reason.NODES_NOT_HELD
