"""Can the shares of on demand and spot be kept in whole nodes at the counts that are promised?"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.finding import Finding
from autoscaler.node_pool_checks.survey_types import Survey
from policies.accelerator_sharing import AcceleratorDemand
from policies.capacity_split import fewest_nodes_with_spot, split_nodes
from policies.node_packing import NodeRoom, nodes_for
from policies.wording import counted


def check_split(survey: Survey) -> Iterator[Finding]:
    """A finding for each pool whose spot NodePool gets no node at minReplicas, or none at all."""
    for pool in survey.pools:
        if pool.spec.node_pools.spot is None:
            continue
        if pool.spec.split is None:
            yield Finding(
                f"AcceleratorPool {pool.name}",
                "spec.split",
                "none",
                f"NodePool {pool.spec.node_pools.spot} is named and gets no node",
                "split: {onDemandFloorPercent: 20}, or leave nodePools.spot out",
            )
            continue
        nodes = _nodes_at_minimum(survey, pool)
        floor_percent = pool.spec.split.floor_percent
        if nodes is None or nodes == 0 or split_nodes(nodes, floor_percent)[1] > 0:
            continue
        first = fewest_nodes_with_spot(floor_percent)
        if first is None:
            say = "however many nodes there are, none may be on spot"
        else:
            say = f"at least {floor_percent} % of {counted(nodes, 'node')} is {nodes}; spot begins at {first} nodes"
        yield Finding(
            f"AcceleratorPool {pool.name}",
            "spec.split",
            f"{floor_percent} % on demand at least",
            f"at minReplicas no node is on spot: {say}",
            "a smaller share on demand, or count on paying for on demand there",
        )


def _nodes_at_minimum(survey: Survey, pool: AcceleratorPool) -> int | None:
    targets = survey.targets_of(pool)
    shape = pool.spec.node_shape
    if shape is None or any(target.accelerators is None for target in targets):
        return None
    demands = [
        AcceleratorDemand(
            "/".join(target.scaler.key),
            target.scaler.spec.min_replicas,
            0,
            target.scaler.spec.min_replicas,
            target.accelerators or 1,
        )
        for target in targets
    ]
    return nodes_for(NodeRoom(shape.accelerators), demands)
