"""The replicas that a rising load will ask for when one that is ordered now serves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policies.capacity.learned_capacity import LearnedCapacity
from policies.cold_start import ColdStart
from policies.load.rise import LoadRise
from policies.reasons import Reason
from policies.recommenders.load_rise import recommend_load_rise
from policies.signals import Signal
from tests.builders import a_blackout, a_decision_input, a_policy, an_even_signal, an_observation

CAPACITY = LearnedCapacity(
    prefill_tokens_per_second=16_000, decode_tokens_per_second=750, tokens_in_flight=54_000, safe_utilization=0.70
)
ARRIVING = {Signal.REQUESTS_ARRIVED: an_even_signal(8.0, 4), Signal.REQUESTS_ARRIVED_RECENTLY: an_even_signal(8.0, 4)}
TWO_MINUTES = ColdStart(120.0, 150.0, 160.0, starts=50)
TENTH_A_MINUTE = LoadRise(share_now=1.0, share_per_second=0.1 / 60.0)


def votes(
    rise: LoadRise | None = TENTH_A_MINUTE, policy: dict[str, Any] | None = None, **more: Any
) -> tuple[float | None, ...]:
    """The replicas asked for: 4.0 of work arrive now."""
    stated = {"objectives": {}} if policy is None else policy
    arguments = {"capacity": CAPACITY, "cold_start": TWO_MINUTES, "metrics": an_observation(ARRIVING), **more}
    given = a_decision_input(a_policy(**stated), arguments.pop("metrics"), **arguments)
    return tuple(vote.replicas for vote in recommend_load_rise(replace(given, load_rise=rise)))


def test_it_asks_for_what_will_arrive() -> None:
    # 120 s and 45 s ahead, a tenth more each minute: 27.5 %.
    assert votes() == (pytest.approx(4.0 * 1.275 / 0.70),)


def test_it_promises_three_tenths_more_at_most() -> None:
    assert votes(LoadRise(1.0, 0.01)) == (pytest.approx(4.0 * 1.3 / 0.70),)


def test_it_is_of_what_is_to_come() -> None:
    given = a_decision_input(a_policy(objectives={}), an_observation(ARRIVING), capacity=CAPACITY)
    (vote,) = recommend_load_rise(replace(given, load_rise=TENTH_A_MINUTE))
    assert vote.is_forecast
    assert vote.reason is Reason.LOAD_RISE
    assert vote.message.startswith("load that goes on rising as in the last five minutes (")


def test_what_it_is_made_of_is_recorded() -> None:
    given = a_decision_input(
        a_policy(objectives={}), an_observation(ARRIVING), capacity=CAPACITY, cold_start=TWO_MINUTES
    )
    (vote,) = recommend_load_rise(replace(given, load_rise=TENTH_A_MINUTE))
    assert vote.values == pytest.approx(
        {"risePerMinute": 0.1, "aheadSeconds": 165.0, "workPerSecondExpected": 4.0 * 1.275, "safeUtilization": 0.70}
    )
    assert vote.cautious_replicas == pytest.approx(vote.replicas)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"rise": None}, id="nothing rises"),
        pytest.param({"capacity": None}, id="nobody knows yet what a replica can do"),
        pytest.param({"policy": {"signals": {"kvCache": {}}}}, id="the policy has no objectives"),
        pytest.param(
            {"policy": {"objectives": {}, "signals": {"tokenRate": {"perReplicaPerSecond": 3000}}}},
            id="the policy states what a replica carries",
        ),
        pytest.param({"metrics": a_blackout()}, id="nothing is seen"),
    ],
)
def test_there_is_no_vote(case: dict[str, Any]) -> None:
    assert votes(**case) == ()
