"""How many nodes do the replicas take that are promised?"""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.node_pool_checks.survey_types import ServingTarget
from policies.accelerator_sharing import AcceleratorDemand
from policies.node_packing import NodeRoom, nodes_for


def nodes_at_minimum(room: NodeRoom, targets: Iterable[ServingTarget]) -> int:
    """The nodes of all minReplicas; a target whose accelerators are not known is taken for one of one accelerator."""
    return nodes_for(
        room,
        [
            AcceleratorDemand(
                "/".join(target.scaler.key),
                target.scaler.spec.min_replicas,
                0,
                target.scaler.spec.min_replicas,
                target.accelerators or 1,
                cpu_millis=target.pod_requests.cpu_millis,
                memory_bytes=target.pod_requests.memory_bytes,
            )
            for target in targets
        ],
    )
