"""In which form does an inference server expose our signals?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from policies.signals import Signal


class MetricKind(StrEnum):
    """How numbers are made of the series."""

    GAUGE = "gauge"
    COUNTER = "counter"  # becomes a rate per second
    HISTOGRAM = "histogram"  # classic: `_bucket`, `_sum`, `_count` are added to the name
    RATIO = "ratio"  # of two counters: tokens over requests, where there is no histogram
    INFO = "info"  # the numbers stand in labels, the value is always 1


@dataclass(frozen=True, slots=True)
class Metric:
    """One name under which a signal may be exposed.

    Of the series of one pod, those that differ in a `summed_over` label are parts of the whole and are added up; any
    other difference (pid, endpoint, tensor-parallel rank, the twin of a highly available Prometheus) is the same
    thing seen twice, and the largest counts. `times` and `divided_by` are another metric of the same pod.
    """

    name: str
    where: tuple[tuple[str, str], ...] = ()
    summed_over: tuple[str, ...] = ()
    times: Metric | None = None
    divided_by: Metric | None = None


@dataclass(frozen=True, slots=True)
class SignalSource:
    """Where a signal comes from: the first of `metrics` that a pod exposes counts for that pod.

    A required signal that is missing on a page that was scraped is unknown (most likely renamed); an optional one is
    absent. With `appears_with_traffic` the engine creates the series at the first request, so a page without any such
    series is that of a replica that has never served: zero.
    """

    kind: MetricKind
    metrics: tuple[Metric, ...]
    is_required: bool = False
    appears_with_traffic: bool = False


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """All that is known of an engine's page.

    A pod that exposes any of `page_marks` has been scraped; the time of that sample is the age of all its signals.
    `signals` lacks what the engine does not expose. With `counts_tokens_by_step` generated tokens are counted as they
    come, else only when their request has finished.
    """

    title: str
    signals: Mapping[Signal, SignalSource]
    page_marks: tuple[Metric, ...]
    counts_tokens_by_step: bool = False


def spelled(
    prefixes: tuple[str, ...], *names: str, summed_over: tuple[str, ...] = (), where: tuple[tuple[str, str], ...] = ()
) -> tuple[Metric, ...]:
    """Each name with each prefix, all prefixes of the first name first."""
    return tuple(Metric(prefix + name, where, summed_over) for name in names for prefix in prefixes)
