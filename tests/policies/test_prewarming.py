from __future__ import annotations

from dataclasses import replace

import pytest

from policies.accelerator_sharing import AcceleratorDemand
from policies.capacity_split import CapacityType
from policies.node_packing import NodeRoom
from policies.parameters import ScalingParameters
from policies.prewarming import WarmNodes, expected_replicas, warm_nodes
from policies.recommenders.schedule import ScheduleWindow
from tests.builders import NOW, a_decision_input, a_policy
from tests.forecast_builders import RISING


def demand(wanted: int, *, current: int = 0, size: int = 8, kind: CapacityType | None = None) -> AcceleratorDemand:
    return AcceleratorDemand("a", wanted, current, 0, size, capacity_type=kind)


@pytest.mark.parametrize(
    ("demands", "expected", "spare", "ceiling", "nodes"),
    [
        pytest.param([demand(3)], [3], 0, None, WarmNodes(0, 0, 0), id="nothing is to come"),
        pytest.param([demand(3)], [5], 0, None, WarmNodes(2, 0, 2), id="two more are foreseen"),
        pytest.param([demand(5)], [5], 0, None, WarmNodes(0, 0, 0), id="asked for, they are no longer held"),
        pytest.param([demand(3)], [1], 0, None, WarmNodes(0, 0, 0), id="fewer are foreseen"),
        pytest.param([demand(3)], [3], 1, None, WarmNodes(0, 1, 1), id="one to spare at all times"),
        pytest.param([demand(3, size=4)], [4], 0, None, WarmNodes(0, 0, 0), id="half a node is there anyhow"),
        pytest.param([demand(1, current=5)], [5], 0, None, WarmNodes(0, 0, 0), id="what still stands is used again"),
        pytest.param([demand(3)], [9], 1, 5, WarmNodes(6, 1, 2), id="as far as the ceiling leaves room"),
        pytest.param([demand(9)], [9], 1, 5, WarmNodes(0, 1, 0), id="replicas come first"),
    ],
)
def test_nodes_that_are_held_ready(
    demands: list[AcceleratorDemand], expected: list[int], spare: int, ceiling: int | None, nodes: WarmNodes
) -> None:
    assert warm_nodes(NodeRoom(8), demands, expected, spare, ceiling) == nodes


def test_a_window_is_seen_earlier_by_the_time_that_a_node_takes() -> None:
    # The window opens in half an hour; starts take five minutes by the policy.
    opens = NOW + 1800
    minute, hour = int(opens // 60 % 60), int(opens // 3600 % 24)
    window = ScheduleWindow(
        name="wave", start=f"{minute} {hour} * * *", end=f"{minute} {(hour + 2) % 24} * * *", minReplicas=7
    )
    parameters = ScalingParameters(minReplicas=1, maxReplicas=8, schedules=(window,))
    now = a_decision_input(parameters)
    assert expected_replicas(now, 300.0) == 1
    assert expected_replicas(now, 1800.0) == 7


@pytest.mark.parametrize(
    ("mode", "lead_seconds", "replicas"),
    [
        pytest.param("Active", 0.0, 6, id="as far as replicas look"),
        pytest.param("Active", 600.0, 10, id="farther by the time that a node takes"),
        pytest.param("Advise", 600.0, 1, id="advice buys no nodes"),
    ],
)
def test_an_active_forecast_is_read_farther(mode: str, lead_seconds: float, replicas: int) -> None:
    policy = a_policy(
        signals={"tokenRate": {"perReplicaPerSecond": 5000}},
        forecast={"mode": mode, "quantilePercent": 50},
        minReplicas=1,
    )
    assert expected_replicas(replace(a_decision_input(policy), forecast=RISING), lead_seconds) == replicas
