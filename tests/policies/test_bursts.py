"""Bursts that are largely over before a new replica could serve."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.bursts import KEPT_BURSTS, KEPT_SECONDS, Burst, BurstMemory, MeasuredLoad, measured_load, watch_bursts
from policies.cold_start import ColdStart
from policies.decision import decide
from policies.observation import PoolLatency
from policies.signals import Signal
from policies.standing_for_bursts import StandingCapacity, share_of_height, standing_capacity
from tests.builders import NOW, a_blackout, a_decision_input, a_policy, an_even_signal, an_observation
from tests.forecast_builders import a_forecast

TWO_MINUTES = ColdStart(120.0, 150.0, 160.0, starts=30)


def seen(began_at_seconds: float, lasted_seconds: float, calm_replicas: int, needed_replicas: int) -> Burst:
    """One for which four replicas stood."""
    return Burst(began_at_seconds, lasted_seconds, calm_replicas, needed_replicas, standing_replicas=4)


def watched(*needs: int | None, ready: int = 4, cold_start: ColdStart = TWO_MINUTES) -> BurstMemory:
    """The memory after looks 30 s apart at a pool with four ready replicas."""
    memory = BurstMemory()
    for place, need in enumerate(needs):
        memory = watch_bursts(memory, MeasuredLoad(need, need, None), ready, cold_start, 30.0 * place)
    return memory


@pytest.mark.parametrize(
    ("needs", "short"),
    [
        pytest.param([3, 9, 11, 3], [seen(30.0, 60.0, 5, 11)], id="over after a minute: no replica could start"),
        pytest.param([3, *[9] * 12, 3], [seen(30.0, 360.0, 5, 9)], id="over after three starts: most of it is lost"),
        pytest.param([3, *[9] * 13, 3], [], id="it lasted longer: new replicas served most of it"),
        pytest.param([3, *[9] * 14, 3, 9, 3], [], id="what lasts is the new calm"),
        pytest.param([3, 6, 3], [], id="five replicas can do the work of six for a while"),
        pytest.param([0, 2, 0], [], id="one replica more is no burst"),
        pytest.param([3, 9, 6, 5, 3], [seen(30.0, 60.0, 5, 9)], id="it ends where what stands in calm suffices"),
        pytest.param([3, 9, None, 3], [], id="a burst whose end was not seen"),
        pytest.param([3, 9, 3, 8, 3], [seen(30.0, 30.0, 5, 9), seen(90.0, 30.0, 5, 8)], id="two of them"),
        pytest.param([3, 9, 9], [], id="one that is under way is not over"),
        pytest.param([9, 3, 3], [], id="of the first look nobody knows what was before it"),
        pytest.param([7, 13, 7], [], id="of ten in calm, 1.3 times as many are no burst"),
        pytest.param([7, 14, 7], [seen(30.0, 30.0, 10, 14)], id="1.4 times as many are one"),
        pytest.param([0, 3, 0], [seen(30.0, 30.0, 1, 3)], id="two replicas more than the one that stands in calm"),
    ],
)
def test_short_bursts(needs: list[int | None], short: list[Burst]) -> None:
    assert watched(*needs).short == tuple(short)


def test_a_pool_that_wakes_up_has_no_burst() -> None:
    memory = watched(3, 9, 3, ready=0)
    assert (memory.short, memory.under_way) == ((), None)


def test_a_pool_of_one_replica_has_bursts() -> None:
    (burst,) = watched(0, 3, 0, ready=1).short
    assert burst.standing_replicas == 1


def test_a_burst_of_exactly_a_day_ago_is_kept() -> None:
    memory, calm = BurstMemory((seen(0.0, 60.0, 5, 9),)), MeasuredLoad(3.0, 3.0, None)
    assert watch_bursts(memory, calm, 4, TWO_MINUTES, KEPT_SECONDS).short == memory.short
    assert watch_bursts(memory, calm, 4, TWO_MINUTES, KEPT_SECONDS + 1.0).short == ()


def test_a_burst_whose_work_is_not_known_to_its_end_is_none() -> None:
    memory = BurstMemory()
    for place, (need, work) in enumerate([(3.0, 3.0), (9.0, 9.0), (9.0, None), (3.0, 3.0)]):
        memory = watch_bursts(memory, MeasuredLoad(need, work, None), 4, TWO_MINUTES, 30.0 * place)
    assert (memory.short, memory.under_way) == ((), None)


def test_no_more_than_a_day_and_two_dozen_are_kept() -> None:
    memory = watched(*([3, 9] * 50), 3)
    assert len(memory.short) == KEPT_BURSTS
    calm = MeasuredLoad(3.0, 3.0, None)
    assert watch_bursts(memory, calm, 4, TWO_MINUTES, KEPT_SECONDS + 60.0 * 49).short == memory.short[-1:]
    assert watch_bursts(memory, calm, 4, TWO_MINUTES, KEPT_SECONDS + 60.0 * 50).short == ()


@pytest.mark.parametrize(
    ("loads", "short"),
    [
        pytest.param(
            [(3.0, 10.0), (6.0, 30.0), (25.0, 30.0), (20.0, 10.0), (20.0, 10.0), (7.0, 10.0)],
            [seen(30.0, 60.0, 5, 9)],
            id="what has piled up is not what would have been needed, nor is the time that it takes",
        ),
        pytest.param(
            [(3.0, 10.0), (20.0, 30.0), (20.0, 10.0), *[(20.0, 30.0)] * 12, (3.0, 10.0)],
            [],
            id="an end that was none: where replicas become Ready, arrivals are missed",
        ),
        pytest.param(
            [(3.0, 10.0), (20.0, 30.0), *[(20.0, 10.0)] * 9],
            [seen(30.0, 30.0, 5, 9)],
            id="whatever the votes say, after two starts it is over",
        ),
        pytest.param(
            [(3.0, 10.0), (20.0, 30.0), (7.5, 10.0)],
            [seen(30.0, 30.0, 5, 9)],
            id="votes for half as many again as in calm are near enough to it",
        ),
        pytest.param(
            [(3.0, 10.0), (20.0, 30.0), (20.0, 10.0), (20.0, 30.0), *[(20.0, 10.0)] * 8],
            [],
            id="after an end that was none the next is doubted as long",
        ),
        pytest.param(
            [(3.0, 10.0), (20.0, 30.0), (20.0, 10.0), (20.0, 30.0), *[(20.0, 10.0)] * 9],
            [seen(30.0, 90.0, 5, 9)],
            id="and is believed after two starts of its own",
        ),
        pytest.param([(3.0, 10.0), (3.0, 30.0), (3.0, 10.0)], [], id="many requests of which none is large"),
        pytest.param([(3.0, 10.0), *[(20.0, 30.0)] * 13, (9.0, 10.0)], [], id="it lasts"),
        pytest.param([(3.0, 0.0), (9.0, 30.0), (3.0, 0.0)], [seen(30.0, 30.0, 5, 9)], id="from nothing at all"),
    ],
)
def test_a_burst_is_measured_by_what_arrives(loads: list[tuple[float, float]], short: list[Burst]) -> None:
    memory = BurstMemory()
    for place, (need, arrivals) in enumerate(loads):
        memory = watch_bursts(memory, MeasuredLoad(need, need, arrivals), 4, TWO_MINUTES, NOW + 30.0 * place)
    assert memory.short == tuple(replace(each, began_at_seconds=NOW + each.began_at_seconds) for each in short)


@pytest.mark.parametrize(
    ("bursts", "expected"),
    [
        pytest.param([Burst(NOW, 60.0, 4, 9)] * 2, None, id="two are an accident"),
        pytest.param(
            [Burst(NOW, 60.0, 4, 9), Burst(NOW, 90.0, 3, 8), Burst(NOW, 30.0, 4, 7)],
            StandingCapacity(3, 90.0, 9, 6),
            id="nearly as many as the largest needs, beside the least calm",
        ),
        pytest.param(
            [Burst(NOW, 60.0, 4, 9)] * 11 + [Burst(NOW, 60.0, 4, 90)],
            StandingCapacity(12, 60.0, 9, 5),
            id="one in twelve is not worth its price",
        ),
        pytest.param([Burst(NOW - KEPT_SECONDS - 1.0, 60.0, 4, 9)] * 5, None, id="those of the day before"),
        pytest.param(
            [Burst(NOW - KEPT_SECONDS, 60.0, 4, 9)] * 3,
            StandingCapacity(3, 60.0, 9, 5),
            id="those of exactly a day ago",
        ),
        pytest.param(
            [Burst(NOW, 60.0, 9, 9), Burst(NOW, 60.0, 12, 7), Burst(NOW, 60.0, 11, 8)],
            StandingCapacity(3, 60.0, 9, 0),
            id="as many as stood in calm: none in addition",
        ),
    ],
)
def test_what_would_serve_them(bursts: list[Burst], expected: StandingCapacity | None) -> None:
    assert standing_capacity(BurstMemory(tuple(bursts)), NOW) == expected


def test_extra_replicas_cost_their_hours() -> None:
    assert StandingCapacity(3, 90.0, 9, 5).replica_hours_per_day == 120


@pytest.mark.parametrize(
    ("loads", "calm"),
    [
        pytest.param([(4.0, 10.0)], (4.0, 10.0), id="the first look"),
        pytest.param([(4.0, 10.0), (6.0, 15.0)], (4.1, 10.25), id="a later one moves the mean by a twentieth"),
        pytest.param([(4.0, 10.0), (6.0, None)], (4.1, 10.0), id="what is not known does not move it"),
        pytest.param([(4.0, None), (6.0, 30.0)], (4.1, 30.0), id="what was not known begins with its first value"),
        pytest.param([(4.0, 10.0), (None, 30.0)], (4.0, 10.0), id="where no vote has a value nothing moves"),
        pytest.param([(4.0, 10.0), (9.0, 30.0)], (4.0, 10.0), id="nor in a burst"),
        pytest.param([(3.0, 10.0), *[(9.0, 30.0)] * 14], (9.0, 30.0), id="a burst that lasts is the new calm at once"),
    ],
)
def test_what_is_calm(loads: list[tuple[float | None, float | None]], calm: tuple[float, float]) -> None:
    memory = BurstMemory()
    for place, (need, arrivals) in enumerate(loads):
        memory = watch_bursts(memory, MeasuredLoad(need, need, arrivals), 5, TWO_MINUTES, 30.0 * place)
    assert (memory.calm_bare_need, memory.calm_arrivals_per_second) == pytest.approx(calm)


@pytest.mark.parametrize(
    ("needs", "settled"),
    [
        pytest.param([3.0] * 11, None, id="less than three minutes of calm"),
        pytest.param([3.0] * 12, 3.0, id="three minutes"),
        pytest.param([3.0] * 12 + [1.0], 1.0, id="it falls at once"),
        pytest.param([3.0] * 12 + [4.0], 3.05, id="and rises with the mean"),
        pytest.param([3.0] * 12 + [18.0] * 10, 3.0, id="not in a burst"),
        pytest.param([3.0] * 12 + [18.0] * 100, 3.0, id="nor soon after, where it goes on"),
        pytest.param([3.0] * 12 + [18.0] * 110, 18.0, id="what lasts for half an hour is the new calm"),
        pytest.param([18.0] * 8 + [3.0] * 4, 3.0, id="a controller that begins in a burst"),
    ],
)
def test_the_calm_by_which_expected_bursts_are_measured(needs: list[float], settled: float | None) -> None:
    memory = BurstMemory()
    for place, need in enumerate(needs):
        memory = watch_bursts(memory, MeasuredLoad(need, need, None), 5, TWO_MINUTES, 15.0 * place)
    assert memory.settled_bare_need == (None if settled is None else pytest.approx(settled))


def test_arrivals_tell_a_calm_while_nobody_knows_yet_what_a_replica_can_do() -> None:
    memory = BurstMemory()
    for place, need in enumerate([None] * 11 + [3.0]):
        assert memory.settled_bare_need is None
        memory = watch_bursts(memory, MeasuredLoad(need, need, 10.0), 5, TWO_MINUTES, 15.0 * place)
    assert memory.settled_bare_need == 3.0


def test_what_is_expected_or_only_advised_is_no_load() -> None:
    policy = a_policy(
        signals={"waitingRequests": {"perReplica": 1}, "tokenRate": {"perReplicaPerSecond": 5000}},
        forecast={"mode": "Active"},
    )
    observation = an_observation({Signal.WAITING_REQUESTS: an_even_signal(2.0, 4)})
    decision_input = replace(a_decision_input(policy, observation), forecast=a_forecast(90_000, 90_000, 90_000, 90_000))
    votes = decide(decision_input).recommendations
    assert [vote.recommender for vote in votes if vote.is_forecast] == ["forecast"]
    assert measured_load(decision_input, votes).need == pytest.approx(3.68)


def test_the_load_is_what_votes_measure_and_what_arrives() -> None:
    always = {"name": "always", "start": "* * * * *", "end": "0 0 29 2 *", "minReplicas": 50}
    policy = a_policy(signals={"kvCache": {}, "waitingRequests": {"perReplica": 1}}, schedules=[always])
    signals = {
        Signal.WAITING_REQUESTS: an_even_signal(7.0, 4),
        Signal.REQUESTS_ARRIVED_RECENTLY: an_even_signal(12.0, 4),
    }
    observation = replace(an_observation(signals), latency=PoolLatency(outside_objectives_share=0.02))
    decision_input = a_decision_input(policy, observation)
    assert measured_load(decision_input, decide(decision_input).recommendations) == MeasuredLoad(7.0, 7.0, 12.0, 0.02)
    blind = a_decision_input(a_policy(schedules=[always]), a_blackout())
    assert measured_load(blind, decide(blind).recommendations) == MeasuredLoad(None, None, None)


def test_while_nobody_knows_what_a_replica_can_do_the_work_is_not_known_whatever_votes_ask_for() -> None:
    policy = a_policy(objectives={}, signals={"waitingRequests": {"perReplica": 1}})
    decision_input = a_decision_input(policy, an_observation({Signal.WAITING_REQUESTS: an_even_signal(7.0, 4)}))
    load = measured_load(decision_input, decide(decision_input).recommendations)
    assert (load.need, load.bare_need) == (7.0, None)


def test_what_a_burst_missed_is_that_of_its_worst_look() -> None:
    memory = BurstMemory()
    for place, (need, outside) in enumerate(
        [(3.0, 0.5), (9.0, 0.0), (9.0, 0.04), (8.0, None), (3.0, 0.02), (3.0, 0.3)]
    ):
        memory = watch_bursts(memory, MeasuredLoad(need, need, None, outside), 6, TWO_MINUTES, 30.0 * place)
    (burst,) = memory.short
    assert (burst.standing_replicas, burst.outside_share) == (6, 0.04)


def a_served(needed: int, standing: int, outside_share: float | None) -> Burst:
    return Burst(NOW, 60.0, 4, needed, standing, outside_share)


@pytest.mark.parametrize(
    ("bursts", "share"),
    [
        pytest.param([], 0.95, id="nothing is known"),
        pytest.param([a_served(20, 20, 0.07)] * 9, 0.95, id="what is foretold"),
        pytest.param([a_served(20, 20, None)] * 9, 0.95, id="what was not measured says nothing"),
        pytest.param([a_served(20, 0, 0.9)] * 9, 0.95, id="nor does one for which nothing stood"),
        pytest.param([a_served(20, 10, 0.9)] * 9, 0.95, id="nor one that was twice what stood for it"),
        pytest.param([a_served(24, 20, 1.0)] * 24, 0.988, id="one of a fifth more than what stood still does"),
        pytest.param([a_served(20, 20, 0.21)] * 4, 1.02, id="three times as many: replicas do less than was thought"),
        pytest.param([a_served(20, 20, 0.21)] * 20, 1.036, id="the more of them the surer"),
        pytest.param([a_served(20, 20, 0.02)] * 4, 0.900, id="fewer: they do more"),
        pytest.param([a_served(20, 20, 0.0)] * 24, 0.767, id="none at all"),
        pytest.param([a_served(20, 30, 0.0)] * 24, 0.944, id="of which much more stood: that is no wonder"),
        pytest.param([a_served(20, 20, 1.0)] * 24, 1.1788, id="all of them"),
    ],
)
def test_how_many_stand_for_one_of_its_height(bursts: list[Burst], share: float) -> None:
    assert share_of_height(bursts) == pytest.approx(share, abs=0.001)
