"""What the shared cases leave open of a stock HPA's sync."""

from __future__ import annotations

import pytest

from policies.constraints.behavior import ScaleUpRules, ScalingBehavior
from policies.history import ScaleEvent, TimedRecommendation
from policies.hpa.metric_proposal import Tolerance
from policies.hpa.metrics import MeasuredMetric, Metric, PodCounts, ProposedReplicas, TargetType
from policies.hpa.reconcile import (
    ABOVE_MAXIMUM,
    ABOVE_TARGET,
    ALL_BELOW_TARGET,
    BELOW_MINIMUM,
    HPAMemory,
    HPASpec,
    reconcile,
)
from tests.builders import NOW

BAND = Tolerance(0.1, 0.1)


def an_external_metric(milli: int) -> MeasuredMetric:
    return MeasuredMetric(TargetType.AVERAGE_VALUE, 1000, (milli,))


def pods(count: int) -> PodCounts:
    return PodCounts(count, count, count, count)


@pytest.mark.parametrize(
    ("metric", "minimum", "is_paused"),
    [
        pytest.param(ProposedReplicas(4), 0, True, id="its own zero, and nothing to see the way back by"),
        pytest.param(ProposedReplicas(4), 1, False, id="its own zero, and a minimum to go back to"),
        pytest.param(an_external_metric(4000), 0, False, id="its own zero, and an external metric"),
        pytest.param(ProposedReplicas(4, is_external=True), 0, False, id="the same, worked out elsewhere"),
    ],
)
def test_the_way_back_from_its_own_zero(metric: Metric, minimum: int, is_paused: bool) -> None:
    spec = HPASpec(minimum, 10, (metric,), BAND)
    outcome = reconcile(spec, pods(0), HPAMemory(is_scaled_to_zero=True), NOW)
    assert (outcome.replicas == 0) is is_paused
    assert (outcome.conditions["ScalingActive"] == "False/ScalingDisabled") is is_paused
    assert outcome.memory.recommendations is not None
    assert TimedRecommendation(NOW, 0) in outcome.memory.recommendations


def test_what_is_remembered_of_a_rescale() -> None:
    spec = HPASpec(1, 50, (an_external_metric(8000),), BAND, ScalingBehavior())
    grown = reconcile(spec, pods(4), HPAMemory(), NOW)
    assert grown.memory == HPAMemory(
        (TimedRecommendation(NOW, 4), TimedRecommendation(NOW, 8)), (ScaleEvent(NOW, 4),), (), False
    )
    idle = HPASpec(0, 50, (an_external_metric(0),), BAND, ScalingBehavior())
    shrunk = reconcile(idle, pods(8), grown.memory, NOW + 400)
    assert (shrunk.replicas, shrunk.rescale_reason) == (0, ALL_BELOW_TARGET)
    assert shrunk.memory.scale_down_events == (ScaleEvent(NOW + 400, -8),)
    assert shrunk.memory.is_scaled_to_zero


def test_without_behavior_no_rescale_is_remembered() -> None:
    outcome = reconcile(HPASpec(1, 50, (an_external_metric(8000),), BAND), pods(4), HPAMemory(), NOW)
    assert outcome.memory.events == ()


def test_a_rescale_by_one_is_remembered_as_growth() -> None:
    spec = HPASpec(1, 50, (an_external_metric(5000),), BAND, ScalingBehavior())
    grown = reconcile(spec, pods(4), HPAMemory(), NOW)
    assert (grown.replicas, grown.rescale_reason) == (5, ABOVE_TARGET)
    assert (grown.memory.scale_up_events, grown.memory.scale_down_events) == ((ScaleEvent(NOW, 1),), ())


def test_where_every_metric_fails_nothing_is_written_and_nothing_is_forgotten() -> None:
    memory = HPAMemory((TimedRecommendation(NOW - 30, 6),))
    failed = MeasuredMetric(TargetType.AVERAGE_VALUE, 1000, ())
    outcome = reconcile(HPASpec(1, 50, (failed,), BAND), pods(4), memory, NOW)
    assert (outcome.replicas, outcome.is_rescaled, outcome.rescale_reason) == (4, False, "")
    assert outcome.memory.recommendations == memory.recommendations


@pytest.mark.parametrize(
    ("current", "replicas", "reason"),
    [
        pytest.param(12, 10, ABOVE_MAXIMUM, id="above the maximum"),
        pytest.param(1, 2, BELOW_MINIMUM, id="below the minimum"),
    ],
)
def test_a_count_beyond_the_bounds_is_brought_to_the_nearer_one_without_a_look_at_metrics(
    current: int, replicas: int, reason: str
) -> None:
    memory = HPAMemory((TimedRecommendation(NOW - 30, 6),))
    failed = MeasuredMetric(TargetType.AVERAGE_VALUE, 1000, ())
    outcome = reconcile(HPASpec(2, 10, (failed,), BAND), pods(current), memory, NOW)
    assert (outcome.replicas, outcome.is_rescaled, outcome.rescale_reason) == (replicas, True, reason)
    assert outcome.conditions == {"AbleToScale": "True/SucceededRescale", "ScaledToZero": "False/NotScaledToZero"}
    assert outcome.memory.recommendations == memory.recommendations


def test_without_metrics_the_count_is_as_it_is() -> None:
    assert reconcile(HPASpec(1, 50, (), BAND), pods(4), HPAMemory(), NOW).replicas == 4


CAUTIOUS = ScalingBehavior(scale_up=ScaleUpRules(stabilization_window_seconds=60))


@pytest.mark.parametrize(
    ("milli", "behavior", "recommended", "reason"),
    [
        pytest.param(2000, CAUTIOUS, 4, "ScaleDownStabilized", id="a fall that is held up"),
        pytest.param(6000, CAUTIOUS, 4, "ScaleUpStabilized", id="a rise that is held down"),
        pytest.param(2000, None, 4, "ScaleDownStabilized", id="a fall, without behavior"),
        pytest.param(4000, CAUTIOUS, 4, "ReadyForNewScale", id="nothing is held"),
    ],
)
def test_what_stabilization_says(milli: int, behavior: ScalingBehavior | None, recommended: int, reason: str) -> None:
    memory = HPAMemory((TimedRecommendation(NOW - 30, recommended),))
    outcome = reconcile(HPASpec(1, 50, (an_external_metric(milli),), BAND, behavior), pods(4), memory, NOW)
    assert (outcome.replicas, outcome.conditions["AbleToScale"]) == (4, f"True/{reason}")


def test_a_sync_that_changes_nothing_leaves_the_mark_of_zero_alone() -> None:
    memory = HPAMemory(recommendations=(), is_scaled_to_zero=True)
    outcome = reconcile(HPASpec(0, 50, (an_external_metric(4000),), BAND), pods(4), memory, NOW)
    assert not outcome.is_rescaled
    assert outcome.memory.is_scaled_to_zero
    assert "ScaledToZero" not in outcome.conditions


@pytest.mark.parametrize(
    ("current", "milli", "replicas"),
    [
        pytest.param(10, 2000, 2, id="at the maximum it may shrink"),
        pytest.param(2, 8000, 4, id="at the minimum it may grow"),
    ],
)
def test_a_count_at_a_bound_is_within_it(current: int, milli: int, replicas: int) -> None:
    spec = HPASpec(2, 10, (an_external_metric(milli),), BAND)
    assert reconcile(spec, pods(current), HPAMemory(recommendations=()), NOW).replicas == replicas


@pytest.mark.parametrize(
    ("milli", "replicas"),
    [
        pytest.param(1000, 2, id="the minimum, where the metric asks for less"),
        pytest.param(3000, 3, id="what the metric asks for, where that is more"),
    ],
)
def test_from_its_own_zero_it_goes_at_least_to_the_minimum(milli: int, replicas: int) -> None:
    spec = HPASpec(2, 10, (an_external_metric(milli),), BAND, ScalingBehavior())
    assert reconcile(spec, pods(0), HPAMemory(is_scaled_to_zero=True), NOW).replicas == replicas
