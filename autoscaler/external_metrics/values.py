"""What is the answer to "metric M of the pools in namespace N that match selector S"? Values, or a named problem.

A value that is unknown or too old is a problem and never zero: whoever scales by it then changes nothing. Where a
selector takes in several pools, one that has no value spoils the answer, as the reader would add up the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from autoscaler.api.document import rfc3339_seconds
from autoscaler.api.published_metrics import PublishedMetric, PublishedMetrics
from autoscaler.api.quantity import milli_of_quantity
from autoscaler.controller.published_metrics import DESIRED_REPLICAS, METRIC_NAMES, is_metric_name
from autoscaler.external_metrics.selector import Selector
from policies.history import LONGEST_GAP_SECONDS
from policies.parameters import Mode

__all__ = [
    "DESIRED_REPLICAS",
    "METRIC_NAMES",
    "MetricSource",
    "MetricUnavailable",
    "MetricValue",
    "NotKnownYet",
    "PoolMetrics",
    "ProblemKind",
    "is_metric_name",
    "pool_labels",
    "read_metric",
]

# So long a decision holds without a newer one; after that, time has passed that nobody has looked at. A clock that is
# further ahead than that has made it at a time that nobody knows.
MAXIMUM_AGE_SECONDS = LONGEST_GAP_SECONDS

SCALER_LABEL = "scaler"
TARGET_LABEL = "target"
ENGINE_LABEL = "engine"


class ProblemKind(StrEnum):
    """What kind of error it is; the word is the reason of a Kubernetes Status."""

    NOT_FOUND = "NotFound"  # no such metric, no such pool: it stays so until somebody changes something
    UNAVAILABLE = "ServiceUnavailable"  # it should be there and is not known now


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One metric of one pool. `milli_value` is in thousandths, never negative; the time is its oldest sample's."""

    name: str
    labels: Mapping[str, str]
    milli_value: int
    timestamp_seconds: float


@dataclass(frozen=True, slots=True)
class MetricUnavailable:
    """Why there is no value, in a sentence for a person who reads `kubectl describe hpa`."""

    kind: ProblemKind
    message: str


@dataclass(frozen=True, slots=True)
class PoolMetrics:
    """What is known of one InferenceScaler's metrics.

    `published` is None where nothing has been decided yet. A pool in another mode than ExternalMetric publishes none;
    it is here to be named. `labels` are those of its metrics, `object_labels` the InferenceScaler's own.
    """

    namespace: str
    name: str
    mode: str
    labels: Mapping[str, str]
    published: PublishedMetrics | None
    object_labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotKnownYet:
    """This process has not read the pools yet."""

    why: str


class MetricSource(Protocol):
    """The newest metrics of all pools, from memory: it never waits for the network."""

    def pools_in(self, namespace: str) -> Sequence[PoolMetrics] | NotKnownYet:
        """The InferenceScalers of a namespace, by name; empty where there are none."""
        ...


def pool_labels(scaler: str, target: str, engine: str) -> dict[str, str]:
    """The labels that a pool's values are selected by."""
    return {SCALER_LABEL: scaler, TARGET_LABEL: target, ENGINE_LABEL: engine}


def read_metric(
    source: MetricSource, namespace: str, metric: str, selector: Selector, now_seconds: float
) -> tuple[MetricValue, ...] | MetricUnavailable:
    """One value for each pool that is selected and has the metric; at least one, or why there is none."""
    if not is_metric_name(metric):
        known = ", ".join(METRIC_NAMES)
        return _not_found(f"there is no metric {metric}; there are {known}, and custom-NAME of signals.custom")
    pools = source.pools_in(namespace)
    if isinstance(pools, NotKnownYet):
        return MetricUnavailable(ProblemKind.UNAVAILABLE, pools.why)
    serving = [pool for pool in pools if pool.mode == Mode.EXTERNAL_METRIC]
    if not serving:
        return _not_found(_why_none_serves(namespace, pools))
    selected = [pool for pool in serving if selector.matches(pool.labels)]
    if not selected:
        there = "; ".join(_labels_in_words(pool.labels) for pool in serving[:10])
        return _not_found(f"no InferenceScaler of namespace {namespace} matches the selector; there is {there}")
    found = [_value_of(pool, metric, now_seconds) for pool in selected]
    problems = [each for each in found if isinstance(each, MetricUnavailable)]
    values = tuple(each for each in found if isinstance(each, MetricValue))
    unknown = next((each for each in problems if each.kind is ProblemKind.UNAVAILABLE), None)
    if unknown is not None:
        return unknown
    # A pool that does not have the metric at all adds nothing to the others' sum.
    return values or problems[0]


def _value_of(pool: PoolMetrics, metric: str, now_seconds: float) -> MetricValue | MetricUnavailable:
    who = f"InferenceScaler {pool.namespace}/{pool.name}"
    if pool.published is None:
        return _unknown(f"nothing has been decided for {who} yet: `kubectl describe isc {pool.name}` says why")
    decided_at = rfc3339_seconds(pool.published.decided_at)
    if decided_at is None or now_seconds - decided_at > MAXIMUM_AGE_SECONDS:
        since = pool.published.decided_at
        return _unknown(
            f"nothing has been decided for {who} since {since}: `kubectl describe isc {pool.name}` says why"
        )
    if decided_at - now_seconds > MAXIMUM_AGE_SECONDS:
        return _unknown(
            f"the last decision for {who} bears a time to come, {pool.published.decided_at}: a clock was set back, or "
            "those of two replicas differ"
        )
    published = next((each for each in pool.published.values if each.name == metric), None)
    if published is None:
        return _not_found(f"{who} has no {metric}: neither its engine nor its policy has that signal")
    return _read(published, pool, who)


def _read(published: PublishedMetric, pool: PoolMetrics, who: str) -> MetricValue | MetricUnavailable:
    milli_value = milli_of_quantity(published.value) if published.value is not None else None
    taken_at = rfc3339_seconds(published.time)
    if milli_value is None or taken_at is None:
        return _unknown(f"{published.name} of {who} is not known: {published.problem or 'its value cannot be read'}")
    return MetricValue(published.name, pool.labels, milli_value, taken_at)


def _why_none_serves(namespace: str, pools: Sequence[PoolMetrics]) -> str:
    if not pools:
        return f"namespace {namespace} has no InferenceScaler"
    modes = ", ".join(f"{pool.name} is in mode {pool.mode}" for pool in pools[:10])
    return f"no InferenceScaler of namespace {namespace} is in mode ExternalMetric: {modes}"


def _labels_in_words(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in labels.items())


def _not_found(message: str) -> MetricUnavailable:
    return MetricUnavailable(ProblemKind.NOT_FOUND, message)


def _unknown(message: str) -> MetricUnavailable:
    return MetricUnavailable(ProblemKind.UNAVAILABLE, message)
