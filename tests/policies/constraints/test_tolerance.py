from __future__ import annotations

from dataclasses import replace

import pytest

from policies.decision import decide
from policies.observation import ReplicaCounts
from policies.reasons import Reason
from policies.standing_for_bursts import RecurringBursts
from tests.builders import NOW, a_decision_input, a_policy, an_observation

ALWAYS = {"name": "a", "start": "* * * * *", "end": "0 0 29 2 *"}


def proposal(
    value: float, current: int, tolerance_up: float = 0.05, tolerance_down: float = 0.10
) -> tuple[int, Reason]:
    """What passes the tolerance where `value` replicas' worth of work is there."""
    policy = a_policy(
        maxReplicas=100_000,
        signals={"custom": [{"name": "work", "query": "q", "perReplica": 1}]},
        behavior={"scaleUp": {"tolerance": tolerance_up}, "scaleDown": {"tolerance": tolerance_down}},
    )
    metrics = an_observation(queries={"custom/work": value}, ready=current)
    step = decide(a_decision_input(policy, metrics, replicas=current)).steps[0]
    assert step.name == "tolerance"
    return step.after, step.reason


@pytest.mark.parametrize(
    ("value", "current", "replicas", "reason"),
    [
        pytest.param(10.5, 10, 10, Reason.WITHIN_TOLERANCE, id="5 % more is within the band"),
        pytest.param(10.501, 10, 11, Reason.NOT_LIMITED, id="more than 5 % more is not"),
        pytest.param(9.0, 10, 10, Reason.WITHIN_TOLERANCE, id="10 % less is within the band"),
        pytest.param(8.999, 10, 9, Reason.NOT_LIMITED, id="more than 10 % less is not"),
        pytest.param(10.0, 10, 10, Reason.NOT_LIMITED, id="exactly what there is"),
        pytest.param(1.1, 1, 2, Reason.NOT_LIMITED, id="a tenth of one replica more is a second replica"),
        pytest.param(0.0, 10, 0, Reason.NOT_LIMITED, id="no work at all"),
    ],
)
def test_a_difference_within_the_band_is_no_change(value: float, current: int, replicas: int, reason: Reason) -> None:
    assert proposal(value, current) == (replicas, reason)


@pytest.mark.parametrize(
    ("expected_amplification", "needed", "replicas"),
    [
        pytest.param(6, 96, 100, id="4 % less than what stands is within the band"),
        pytest.param(6, 94, 94, id="6 % less is not"),
        pytest.param(6, 104, 100, id="4 % more is within the policy's band"),
        pytest.param(None, 94, 100, id="of bursts that are not expected too little is known"),
    ],
)
def test_what_stands_for_expected_bursts_has_a_narrow_band(
    expected_amplification: float | None, needed: int, replicas: int
) -> None:
    policy = a_policy(objectives={}, recurringBursts={"expectedAmplification": expected_amplification})
    bursts = RecurringBursts(3, needed, 240.0, NOW - 600.0, 4)
    decision_input = a_decision_input(policy, an_observation(ready=100), replicas=100)
    step = decide(replace(decision_input, recurring_bursts=bursts)).steps[0]
    assert (step.name, step.after) == ("tolerance", replicas)


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        pytest.param(55_900, 0.118, 0.1, id="118m is 118 * 0.001 in Kubernetes, a little more than the float 0.118"),
        pytest.param(61_750, 0.235, 0.1, id="235m"),
        pytest.param(47_050, 0.1, 0.059, id="59m below"),
        pytest.param(41_300, 0.1, 0.174, id="174m below"),
        pytest.param(100_000, 1.0, 0.1, id="a whole number is none of thousandths"),
        pytest.param(50_006, 0.00012, 0.1, id="what is finer than thousandths counts in millionths"),
    ],
)
def test_the_ends_of_the_band_are_where_kubernetes_reads_them(value: float, up: float, down: float) -> None:
    assert proposal(value, 50_000, tolerance_up=up, tolerance_down=down) == (50_000, Reason.WITHIN_TOLERANCE)


def test_the_band_has_a_width_of_its_own_in_each_direction() -> None:
    assert proposal(10.6, 10, tolerance_up=0.1)[0] == 10
    assert proposal(9.4, 10, tolerance_down=0.05)[0] == 10
    assert proposal(9.4, 10, tolerance_down=0.06)[0] == 10
    assert proposal(9.39, 10, tolerance_down=0.06)[0] == 10  # one replica fewer would not be enough
    assert proposal(8.9, 10, tolerance_down=0.0)[0] == 9


@pytest.mark.parametrize(
    ("value", "sessions", "replicas"),
    [
        pytest.param(2.0, 0.0, 6, id="as it should be: all six stay, though only four are ready"),
        pytest.param(2.1, 0.0, 6, id="5 % more"),
        pytest.param(2.2, 0.0, 5, id="10 % more: of the four that are ready"),
        pytest.param(1.79, 0.0, 4, id="less than 10 % less"),
        pytest.param(2.0, 9.0, 9, id="another vote asks for more"),
        pytest.param(2.0, 4.0, 6, id="another vote asks for less"),
    ],
)
def test_a_quantity_of_the_whole_pool_has_its_band_around_what_it_should_be(
    value: float, sessions: float, replicas: int
) -> None:
    custom = [
        {"name": "latency", "query": "q", "perPool": 2},
        {"name": "sessions", "query": "q", "perReplica": 1},
    ]
    metrics = an_observation(queries={"custom/latency": value, "custom/sessions": sessions}, ready=4)
    seen = a_decision_input(a_policy(signals={"custom": custom}), metrics, replicas=ReplicaCounts(6, 6, ready=4))
    assert decide(seen).steps[0].after == replicas


def test_a_count_that_somebody_wrote_down_is_never_within_the_band() -> None:
    policy = a_policy(schedules=[{**ALWAYS, "minReplicas": 21}], signals={"kvCache": {}})
    decision = decide(a_decision_input(policy, replicas=20))
    assert decision.desired_replicas == 21
