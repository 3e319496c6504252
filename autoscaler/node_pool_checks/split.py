"""Can the shares of on demand and spot be kept in whole nodes at the counts that are promised?"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.finding import Finding
from autoscaler.node_pool_checks.minimum import nodes_at_minimum
from autoscaler.node_pool_checks.survey_types import Survey
from policies.capacity_split import fewest_nodes_with_spot, split_nodes
from policies.node_packing import NodeRoom
from policies.wording import counted


def check_split(survey: Survey) -> Iterator[Finding]:
    """A finding for each pool whose spot NodePool gets no node at minReplicas, or none at all, or comes first."""
    for pool in survey.pools:
        if pool.spec.node_pools.spot is None:
            continue
        yield from _weights(survey, pool)
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


def _weights(survey: Survey, pool: AcceleratorPool) -> Iterator[Finding]:
    """Pods that may run on either kind of node take those of the NodePool with the higher weight first."""
    on_demand = survey.node_pools.get(pool.spec.node_pools.on_demand)
    spot = survey.node_pools.get(pool.spec.node_pools.spot or "")
    either = [target for target in survey.targets_of(pool) if target.is_known and target.capacity_type is None]
    if on_demand is None or spot is None or not either or on_demand.weight > spot.weight:
        return
    yield Finding(
        on_demand.object,
        "spec.weight",
        f"{on_demand.weight}, and {spot.weight} of {spot.object}",
        f"pods of {either[0].object} fill spot first, up to its limit, and what is on demand comes last: the floor is "
        "not kept while nodes come",
        f"a weight above {spot.weight}",
    )


def _nodes_at_minimum(survey: Survey, pool: AcceleratorPool) -> int | None:
    targets = survey.scalers_of(pool)
    shape = pool.spec.node_shape
    if shape is None or any(target.accelerators is None for target in targets):
        return None
    return nodes_at_minimum(NodeRoom(shape.accelerators), targets)
