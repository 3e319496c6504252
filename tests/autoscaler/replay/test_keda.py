"""KEDA with its HPA on a simulated pool. Counts are those that KEDA's own end-to-end tests wait for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autoscaler.replay.faults import Fault, PrometheusOutage
from autoscaler.replay.keda import (
    CronTrigger,
    Fallback,
    FallbackBehavior,
    PrometheusTrigger,
    ScaledObject,
    Trigger,
)
from autoscaler.replay.promql_reading import read_promql
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.virtual_clock import play
from policies.hpa.metrics import TargetType
from policies.recommenders.schedule import ScheduleWindow
from tests.autoscaler.replay.simulated_pools import KEY, STARTED_AT, a_setup


def no_requests() -> Iterator[Request]:
    return iter(())


def a_trigger(query: str = "vector(8)", target: float = 2.0, **more: object) -> PrometheusTrigger:
    return PrometheusTrigger(read_promql(query), target, **more)  # type: ignore[arg-type]


def changes_of(
    scaled_object: ScaledObject,
    first: int,
    seconds: float,
    faults: tuple[Fault, ...] = (),
) -> list[tuple[int, int]]:
    """(second, count) of every change, in order."""
    setup = a_setup(cold_start_seconds=5.0, initial_replicas=first)
    fleet = SimulatedFleet([(setup, no_requests())], STARTED_AT, seed=1)
    pool = fleet.pools[KEY]
    events = [event for fault in faults for event in fault.events(pool, STARTED_AT)]
    play(fleet, scaled_object.controllers(fleet), STARTED_AT + seconds, events)
    return [(round(each.at_seconds - STARTED_AT), each.to_replicas) for each in pool.count_changes]


def counts(
    scaled_object: ScaledObject, *, first: int = 2, seconds: float = 600.0, faults: tuple[Fault, ...] = ()
) -> dict[int, int]:
    """The count after each second at which it changed."""
    return dict(changes_of(scaled_object, first, seconds, faults))


def an_object(*triggers: Trigger, **more: object) -> ScaledObject:
    return ScaledObject("chat", triggers, **{"minimum": 1, "maximum": 10, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scaled_object", "first", "expected"),
    [
        pytest.param(an_object(a_trigger()), 1, 4, id="8 at 2 a pod are 4, from one pod"),
        pytest.param(an_object(a_trigger()), 8, 4, id="8 at 2 a pod are 4, from eight pods too, after five minutes"),
        pytest.param(
            an_object(a_trigger(target_type=TargetType.VALUE)),
            8,
            10,
            id="a Value of 8 at 2 is four times the ready pods, up to the maximum",
        ),
        pytest.param(an_object(a_trigger("vector(8.4)")), 4, 4, id="within a tenth of the target nothing changes"),
        pytest.param(an_object(a_trigger(), a_trigger("vector(14)")), 1, 7, id="the largest trigger counts"),
        pytest.param(an_object(a_trigger("vector(100)")), 1, 10, id="the maximum holds"),
        pytest.param(an_object(a_trigger("sum(no_such_metric)")), 4, 1, id="no series is zero by default"),
        pytest.param(
            an_object(a_trigger("sum(no_such_metric)", ignores_nulls=False)), 4, 4, id="or an error: nothing changes"
        ),
        pytest.param(an_object(a_trigger("vector(0) / 0")), 4, 1, id="not a number is zero by default"),
        pytest.param(an_object(a_trigger("vector(0) - 5")), 4, 1, id="a negative value is zero"),
        pytest.param(an_object(a_trigger("up")), 4, 4, id="several series are an error always"),
        pytest.param(
            an_object(a_trigger("vector(0)"), a_trigger("up")), 4, 4, id="a trigger that fails lets nothing shrink"
        ),
        pytest.param(
            an_object(a_trigger("vector(12)"), a_trigger("up")), 4, 6, id="a trigger that fails lets others grow"
        ),
    ],
)
def test_where_the_count_ends(scaled_object: ScaledObject, first: int, expected: int) -> None:
    changes = counts(scaled_object, first=first)
    assert (list(changes.values()) or [first])[-1] == expected


@pytest.mark.parametrize(
    ("behavior", "current", "expected"),
    [
        pytest.param(FallbackBehavior.STATIC, 10, 3, id="static: the fallback's count, though it is less"),
        pytest.param(FallbackBehavior.CURRENT, 10, 10, id="current"),
        pytest.param(FallbackBehavior.CURRENT_IF_HIGHER, 10, 10, id="the current one where it is higher"),
        pytest.param(FallbackBehavior.CURRENT_IF_LOWER, 10, 3, id="the current one where it is lower"),
    ],
)
def test_in_an_outage_the_fallback_rules_and_afterwards_the_trigger_again(
    behavior: FallbackBehavior, current: int, expected: int
) -> None:
    scaled_object = an_object(a_trigger("vector(50)", 5.0), fallback=Fallback(3, 3, behavior))
    outage = PrometheusOutage(at_seconds=60.0, lasts_seconds=700.0)
    changes = counts(scaled_object, first=current, seconds=720.0, faults=(outage,))
    assert (list(changes.values()) or [current])[-1] == expected
    back = counts(scaled_object, first=current, seconds=900.0, faults=(outage,))
    assert (list(back.values()) or [current])[-1] == 10


def test_both_loops_count_failures_so_the_fallback_comes_after_about_forty_seconds() -> None:
    scaled_object = an_object(a_trigger("vector(5)", 5.0), fallback=Fallback(3, 6))
    changes = counts(scaled_object, first=1, faults=(PrometheusOutage(60.0, 400.0),), seconds=300.0)
    assert list(changes.values()) == [4, 6]  # an HPA without behavior doubles, or grows to four
    assert 75 <= min(changes) <= 105


def test_without_a_fallback_an_outage_changes_nothing() -> None:
    changes = counts(an_object(a_trigger("vector(50)", 5.0)), first=10, faults=(PrometheusOutage(0.0, 600.0),))
    assert changes == {}


class TestZero:
    def test_a_value_below_the_activation_keeps_a_pool_asleep_though_it_is_above_the_threshold(self) -> None:
        trigger = a_trigger("vector(40)", 10.0, activation=50.0)
        assert counts(an_object(trigger, minimum=0), first=0) == {}

    def test_an_active_trigger_wakes_it_to_one_and_the_hpa_does_the_rest(self) -> None:
        woken = changes_of(an_object(a_trigger("vector(40)", 10.0), minimum=0), 0, 1.0)
        assert woken == [(0, 1), (0, 4)]

    def test_an_idle_pool_sleeps_when_the_cooldown_has_passed(self) -> None:
        busy = CronTrigger(ScheduleWindow(name="busy", start="0 8 * * *", end="1 8 * * *", min_replicas=2), 2)
        assert STARTED_AT % 86_400 == 8 * 3600  # the window is open for the first minute
        changes = counts(an_object(busy, minimum=0), first=2, seconds=600.0)
        assert changes[360] == 0
        assert min(changes) > 300

    def test_a_pool_that_has_never_been_active_is_dropped_to_zero_at_once(self) -> None:
        assert counts(an_object(a_trigger("vector(0)"), minimum=0), first=5, seconds=60.0) == {0: 0}

    def test_a_pool_with_a_minimum_never_sleeps(self) -> None:
        changes = counts(an_object(a_trigger("vector(0)")), first=3)
        assert list(changes.values())[-1] == 1


def test_a_schedule_is_a_floor_of_one_a_pod_while_it_is_open() -> None:
    hour = int(STARTED_AT % 86_400 // 3600)
    window = ScheduleWindow(name="wave", start=f"2 {hour} * * *", end=f"20 {hour} * * *", min_replicas=4)
    changes = counts(an_object(CronTrigger(window, 4)), first=1, seconds=300.0)
    assert changes == {120: 4}


def test_a_cached_trigger_gives_the_hpa_the_last_polls_value() -> None:
    query = "count(up) * 4"  # grows with the replicas
    fresh = counts(an_object(a_trigger(query), polling_seconds=3600.0), first=1, seconds=300.0)
    cached = counts(an_object(a_trigger(query, is_cached=True), polling_seconds=3600.0), first=1, seconds=300.0)
    assert max(fresh.values()) == 10
    assert cached == {}
