"""Each baseline against what its source says; the numbers are worked out by hand from the published rules."""

from __future__ import annotations

from functools import cache

import pytest

from autoscaler.replay.baselines import aibrix_apa, dynamo_planner, knative_kpa, llmd_slo, llmd_wva
from autoscaler.replay.baselines.baseline import BASELINES, Occasion, make_baseline
from autoscaler.replay.baselines.keda_hpa import keda_hpa
from autoscaler.replay.baselines.knative_kpa import PanicMode
from autoscaler.replay.baselines.peer import SlidingMean
from autoscaler.replay.baselines.ray_serve import RayServe
from autoscaler.replay.comparison import Stage
from autoscaler.replay.fleet_description import Fleet, fleet_from
from autoscaler.replay.keda import FallbackBehavior, PrometheusTrigger
from autoscaler.replay.trace import RequestTrace, shipped_trace
from autoscaler.replay.trace_load import trace_load


@pytest.mark.parametrize(
    ("mean", "current", "expected"),
    [
        pytest.param(0.75, 10, 15, id="half as much again than the target grows by half"),
        pytest.param(0.54, 10, 10, id="within a tenth above nothing changes"),
        pytest.param(0.46, 10, 10, id="within a tenth below nothing changes"),
        pytest.param(2.0, 10, 20, id="a step doubles at most"),
        pytest.param(0.1, 10, 5, id="a step halves at most"),
        pytest.param(0.40, 5, 4, id="the wish is rounded up"),
    ],
)
def test_aibrix_apa(mean: float, current: int, expected: int) -> None:
    assert aibrix_apa.desired_pods(mean, 0.5, current) == expected


class TestKnative:
    def decide(self, stable: float, panic: float, ready: int, mode: PanicMode | None = None, now: float = 0.0) -> int:
        return knative_kpa.desired_pods(stable, panic, 70.0, ready, mode or PanicMode(), now)

    def test_the_stable_window_counts_while_all_is_calm(self) -> None:
        assert self.decide(200.0, 260.0, ready=3) == 3  # 200 / 70 = 2.9; 260 / 70 = 3.7 is less than twice 3

    def test_a_step_halves_at_most(self) -> None:
        assert self.decide(10.0, 10.0, ready=8) == 4

    def test_twice_the_ready_pods_is_panic_and_the_panic_window_counts(self) -> None:
        mode = PanicMode()
        assert self.decide(100.0, 420.0, 3, mode) == 6
        assert mode.since_seconds == 0.0

    def test_in_panic_nothing_is_given_back_and_it_ends_a_stable_window_after_its_last_reason(self) -> None:
        mode = PanicMode()
        self.decide(100.0, 420.0, 3, mode)
        assert self.decide(100.0, 100.0, 6, mode, now=40.0) == 6
        assert self.decide(100.0, 100.0, 6, mode, now=60.0) == 6
        assert self.decide(100.0, 100.0, 6, mode, now=61.0) == 3

    def test_what_is_older_than_a_window_is_forgotten(self) -> None:
        window = SlidingMean(60.0)
        assert window.add(0.0, 10.0) == 10.0
        assert window.add(30.0, 20.0) == 15.0
        assert window.add(60.0, 30.0) == 25.0


class TestRayServe:
    def test_growing_must_be_wished_for_half_a_minute_on_end(self) -> None:
        rule = RayServe()
        assert [rule.decide(9.0, 2) for _ in range(4)] == [None, None, None, 5]

    def test_a_wish_the_other_way_begins_anew(self) -> None:
        rule = RayServe()
        assert [rule.decide(ongoing, 2) for ongoing in (9.0, 9.0, 1.0, 9.0, 9.0, 9.0)] == [None] * 6
        assert rule.decide(9.0, 2) == 5

    def test_shrinking_must_be_wished_for_ten_minutes_on_end(self) -> None:
        rule = RayServe()
        assert [rule.decide(1.0, 4) for _ in range(61)] == [None] * 60 + [1]


@pytest.mark.parametrize(
    ("stress", "ready_share", "current", "expected"),
    [
        pytest.param(0.9, 0.8, 5, 7, id="0.72 by 0.55 of 5 are 2 more"),
        pytest.param(0.9, 0.5, 5, 5, id="half of the replicas still start, so the stress is taken as half"),
        pytest.param(0.5, 1.0, 5, 5, id="between both limits nothing changes"),
        pytest.param(0.2, 1.0, 6, 3, id="half of the lower limit gives back half"),
        pytest.param(2.0, 1.0, 4, 15, id="at most twice the objective: 4 + ceil(4 x 2.64)"),
    ],
)
def test_llmd_slo(stress: float, ready_share: float, current: int, expected: int) -> None:
    assert llmd_slo.desired_replicas(stress, ready_share, current, 0.55, 0.40) == expected


@pytest.mark.parametrize(
    ("demand", "current", "expected"),
    [
        pytest.param(90_000.0, 3, 4, id="demand by 0.85 is more than there is"),
        pytest.param(65_000.0, 3, 3, id="between both shares nothing changes"),
        pytest.param(30_000.0, 4, 2, id="demand by 0.70 needs 1.6, so two are spare"),
        pytest.param(0.0, 4, 1, id="one replica always stays"),
    ],
)
def test_llmd_wva(demand: float, current: int, expected: int) -> None:
    assert llmd_wva.desired_replicas(demand, 27_000.0, current) == expected


class TestDynamo:
    def test_the_throughput_loop_serves_the_last_intervals_rate(self) -> None:
        assert dynamo_planner.replicas_for(900, 180.0, 2.0) == 3
        assert dynamo_planner.replicas_for(0, 180.0, 2.0) == 1

    @pytest.mark.parametrize(
        ("gaps", "current", "least", "expected"),
        [
            pytest.param([0.06, 0.07], 2, 1, 3, id="up where every engine is above its objective"),
            pytest.param([0.06, 0.04], 2, 1, 2, id="not where one is below"),
            pytest.param([0.015, 0.019], 2, 1, 1, id="down where one less would still be below 80 %"),
            pytest.param([0.015, 0.021], 2, 1, 2, id="not where it would not"),
            pytest.param([0.015, 0.019], 2, 2, 2, id="never below what the throughput loop wants"),
            pytest.param([0.02], 1, 3, 3, id="and at least that"),
        ],
    )
    def test_the_load_loop_goes_one_step(self, gaps: list[float], current: int, least: int, expected: int) -> None:
        assert dynamo_planner.step(gaps, 0.05, current, least) == expected


def test_keda_hpa_is_the_policy_of_the_preset() -> None:
    policy = keda_hpa(4, 96)
    (trigger,) = policy.triggers
    assert isinstance(trigger, PrometheusTrigger)
    assert trigger.target == 180_000.0
    assert (policy.polling_seconds, policy.minimum, policy.maximum) == (30.0, 4, 96)
    assert policy.behavior is not None
    assert policy.behavior.scale_down.stabilization_window_seconds == 600
    assert policy.fallback is not None
    assert policy.fallback.behavior is FallbackBehavior.CURRENT_IF_HIGHER


@cache
def an_occasion() -> Occasion:
    fleet = fleet_from("llama-3.1-8b-bf16-1xa100-vllm")
    trace = shipped_trace("azure_conversation_2023")
    assert isinstance(fleet, Fleet)
    assert isinstance(trace, RequestTrace)
    load = trace_load(trace, 3.0, 0.0, 300.0, 0)
    return Occasion(Stage(fleet, load), load.draw(1), 1, None, 1, 12)


@pytest.mark.parametrize("name", [name for name in BASELINES if name != "oracle"])
def test_every_baseline_steers_a_pool_within_the_bounds(name: str) -> None:
    occasion = an_occasion()
    policy = make_baseline(name, occasion)
    assert policy is not None
    assert policy.name == name
    result = occasion.stage.run(policy, occasion.drawn, 1)
    assert result.requests > 1000
    assert all(1 <= point.wanted <= 12 for point in result.points)


@pytest.mark.parametrize("name", [name for name in BASELINES if not BASELINES[name].knows_the_future])
def test_what_may_be_tuned_of_a_baseline_is_a_parameter_of_it(name: str) -> None:
    occasion = an_occasion()
    for ends in ("low", "high"):
        parameters = {each.name: getattr(each, ends) for each in BASELINES[name].tunables(occasion)}
        policy = make_baseline(name, occasion, parameters)
        assert policy is not None
        part = occasion.drawn.part(0.0, 20.0)
        assert occasion.stage.run(policy, part, 1).requests == len(part)


def test_the_delay_of_knative_makes_the_largest_wish_of_its_time_count() -> None:
    rule = knative_kpa.KnativeKPA(down_delay_seconds=60.0)
    assert [rule.delayed(wish, at) for wish, at in ((5, 0.0), (2, 30.0), (2, 60.0), (1, 89.0))] == [5, 5, 2, 2]


def test_without_a_clairvoyant_plan_there_is_no_oracle() -> None:
    assert make_baseline("oracle", an_occasion()) is None
