"""Does the money hold what is promised?"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.api.accelerator_pool import AcceleratorPool, AcceleratorPoolMode
from autoscaler.finding import Finding
from autoscaler.node_pool_checks.minimum import nodes_at_minimum
from autoscaler.node_pool_checks.survey_types import Survey
from policies.capacity_split import CapacityType
from policies.dollar_sharing import NodeCost
from policies.node_capacity import MICRO_DOLLARS, NodePoolState, node_cost
from policies.node_packing import NodeRoom


def check_dollars(survey: Survey) -> Iterator[Finding]:
    """Findings about ceilings in dollars: prices that nobody has stated, and minimums that cost more."""
    promised = {pool.name: _promised(survey, pool) for pool in survey.pools}
    for pool in survey.pools:
        is_managed = pool.spec.mode is AcceleratorPoolMode.MANAGE
        if survey.ceiling_per_hour is not None and is_managed and pool.spec.node_dollars_per_hour is None:
            yield Finding(
                f"AcceleratorPool {pool.name}",
                "spec.nodeDollarsPerHour",
                "none",
                "under a ceiling in dollars for all pools its limits stay as they are: NodePriceUnknown",
                "state what a node costs an hour",
            )
        own = None if pool.spec.ceilings is None else pool.spec.ceilings.dollar_ceiling(pool.spec.node_dollars_per_hour)
        least = promised[pool.name]
        if own is not None and least is not None and least > own.ceiling_per_hour:
            yield _too_little(
                f"AcceleratorPool {pool.name}", "spec.ceilings.dollarsPerHour", own.ceiling_per_hour, least
            )
    together = sum(least or 0 for least in promised.values())
    if survey.ceiling_per_hour is not None and together > survey.ceiling_per_hour:
        yield _too_little("the controller", "--ceiling-dollars-per-hour", survey.ceiling_per_hour, together)


def _too_little(about: str, field: str, ceiling: int, least: int) -> Finding:
    return Finding(
        about,
        field,
        f"{ceiling / MICRO_DOLLARS:g}",
        f"minReplicas of the scalers take nodes for {least / MICRO_DOLLARS:g} dollars an hour: some stay Pending",
        f"{least / MICRO_DOLLARS:g} at least, or smaller minReplicas",
    )


def _promised(survey: Survey, pool: AcceleratorPool) -> int | None:
    """What the nodes of all minimums cost an hour; None where prices, shape or accelerators are not known."""
    prices, shape, targets = pool.spec.node_dollars_per_hour, pool.spec.node_shape, survey.scalers_of(pool)
    if prices is None or shape is None or any(target.accelerators is None for target in targets):
        return None
    nodes = nodes_at_minimum(NodeRoom(shape.accelerators), targets)
    kinds = (CapacityType.ON_DEMAND, *(() if pool.spec.node_pools.spot is None else (CapacityType.SPOT,)))
    states = [NodePoolState(kind.value, kind, 0) for kind in kinds]
    cost: NodeCost = node_cost(prices.node_cost, pool.spec.on_demand_floor_percent, states)
    return cost.of(nodes)
