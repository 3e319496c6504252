"""How many nodes are to stand ready before the replicas that will need them are asked for?

A node takes minutes to boot, and replicas are asked for only as early as their own start takes. So what schedules and
forecasts say of that much later is held as nodes with placeholders on them. As replicas are asked for the placeholders
go: the node is handed over, not bought twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from policies.accelerator_sharing import AcceleratorDemand
from policies.constraints.replica_bounds import bounds_at
from policies.decision_input import DecisionInput
from policies.node_packing import NodeRoom, nodes_for
from policies.recommenders.forecast import ForecastMode, recommend_forecast


@dataclass(frozen=True, slots=True)
class WarmNodes:
    """The nodes to hold ready: those for what is expected, those to spare, and together no more than there is room."""

    expected: int
    spare: int
    nodes: int


def expected_replicas(decision_input: DecisionInput, node_lead_seconds: float) -> int:
    """The most replicas that schedules and an Active forecast foresee until a node ordered now could be of use.

    That is the time that a start takes (L90) and the lead for the node. 0 where nothing foresees any: the present
    count is not asked. Never above maxReplicas. A forecast that only advises buys no nodes.
    """
    parameters = decision_input.parameters
    lead_seconds = decision_input.cold_start.l90_seconds + node_lead_seconds
    expected = bounds_at(parameters, decision_input.now_seconds, lead_seconds).minimum
    forecast = parameters.forecast
    if forecast is not None and forecast.mode is ForecastMode.ACTIVE:
        farther = forecast.model_copy(update={"buffer_seconds": forecast.buffer_seconds + math.ceil(node_lead_seconds)})
        looking = replace(decision_input, parameters=parameters.model_copy(update={"forecast": farther}))
        expected = max([expected, *(vote.rounded_up for vote in recommend_forecast(looking))])
    return min(expected, parameters.max_replicas)


def warm_nodes(
    room: NodeRoom,
    demands: Sequence[AcceleratorDemand],
    expected: Iterable[int],
    spare_nodes: int,
    ceiling_nodes: int | None,
) -> WarmNodes:
    """The nodes to hold ready beside those that replicas take. `expected` are the replicas foreseen for each demand.

    Replicas come first: where a ceiling leaves no room beside them, nothing is held ready.
    """
    needed = nodes_for(room, demands)
    foreseen = [
        replace(demand, wanted_replicas=max(demand.wanted_replicas, replicas))
        for demand, replicas in zip(demands, expected, strict=True)
    ]
    more = nodes_for(room, foreseen) - needed
    left = more + spare_nodes if ceiling_nodes is None else max(0, ceiling_nodes - needed)
    return WarmNodes(more, spare_nodes, min(more + spare_nodes, left))
