"""What does each metric of a HorizontalPodAutoscaler propose, and what do all of them together?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from policies.hpa.metric_proposal import (
    MAXIMUM_INT64,
    Tolerance,
    propose_average_value,
    propose_ratio,
    propose_value,
    sum_for_average_value,
    sum_for_value,
)

FAILED_GET_EXTERNAL_METRIC = "FailedGetExternalMetric"
FAILED_GET_OBJECT_METRIC = "FailedGetObjectMetric"


class TargetType(StrEnum):
    """What a metric's target is for: the whole, or each replica."""

    VALUE = "Value"
    AVERAGE_VALUE = "AverageValue"


@dataclass(frozen=True, slots=True)
class MeasuredMetric:
    """An External or Object metric: its items, in thousandths, and its target."""

    target_type: TargetType
    target_milli: int
    values_milli: tuple[int, ...]
    is_object: bool = False

    @property
    def failure_reason(self) -> str:
        """The reason of condition ScalingActive where the metric cannot be evaluated."""
        return FAILED_GET_OBJECT_METRIC if self.is_object else FAILED_GET_EXTERNAL_METRIC


@dataclass(frozen=True, slots=True)
class ProposedReplicas:
    """A metric worked out elsewhere (CPU, memory, pods) by the count that it proposes."""

    replicas: int
    is_external: bool = False


@dataclass(frozen=True, slots=True)
class UsageRatio:
    """A metric worked out elsewhere by the ratio of its use to its target over all ready pods."""

    ratio: float
    is_external: bool = False


@dataclass(frozen=True, slots=True)
class FailedMetric:
    """A metric that cannot be evaluated; `reason` is the one that condition ScalingActive gets."""

    reason: str
    is_external: bool = False


Metric: TypeAlias = MeasuredMetric | ProposedReplicas | UsageRatio | FailedMetric


@dataclass(frozen=True, slots=True)
class PodCounts:
    """A target as HPA counts it; `matching` pods are those of the selector, ready or not."""

    spec: int
    status: int
    ready: int
    matching: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """What one metric asks for, and the value that the status shows for it in thousandths, if any."""

    replicas: int
    value_milli: int | None = None
    average_value_milli: int | None = None


def can_see_at_zero(metric: Metric) -> bool:
    """Whether the metric has a value without any pod (External and Object), so that it may lead out of zero."""
    return isinstance(metric, MeasuredMetric) or metric.is_external


def propose(metric: Metric, pods: PodCounts, tolerance: Tolerance) -> Proposal | FailedMetric:
    """One metric's proposal, or why it has none."""
    match metric:
        case FailedMetric():
            return metric
        case ProposedReplicas():
            return Proposal(metric.replicas)
        case UsageRatio():
            return Proposal(propose_ratio(metric.ratio, pods.spec, pods.ready, tolerance))
        case MeasuredMetric():
            if not metric.values_milli:
                return FailedMetric(metric.failure_reason, is_external=True)
            if metric.target_type is TargetType.AVERAGE_VALUE:
                return _average_value(metric, pods, tolerance)
            return _value(metric, pods, tolerance)


def _average_value(metric: MeasuredMetric, pods: PodCounts, tolerance: Tolerance) -> Proposal:
    add_up = sum_for_value if metric.is_object else sum_for_average_value
    total = add_up(metric.values_milli)
    replicas = propose_average_value(total, metric.target_milli, pods.status, tolerance)
    if float(total) >= float(MAXIMUM_INT64):
        return Proposal(replicas, average_value_milli=MAXIMUM_INT64)
    average = math.ceil(float(total) / float(pods.status)) if pods.status else None
    return Proposal(replicas, average_value_milli=average)


def _value(metric: MeasuredMetric, pods: PodCounts, tolerance: Tolerance) -> Proposal | FailedMetric:
    total = sum_for_value(metric.values_milli)
    is_in_band = tolerance.holds(float(total) / float(metric.target_milli))
    if pods.spec > 0 and pods.matching == 0 and not is_in_band:
        return FailedMetric(metric.failure_reason, is_external=True)
    return Proposal(propose_value(total, metric.target_milli, pods.spec, pods.ready, tolerance), value_milli=total)
