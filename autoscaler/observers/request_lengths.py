"""How much do prompts and answers differ in length? From the engines' histograms of finished requests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from autoscaler.engines import ENGINES
from autoscaler.engines.engine_metrics import MetricKind
from autoscaler.observers.request_means import unseen_seconds
from policies.capacity.request_lengths import RequestLengths
from policies.signals import Signal

# With fewer a deviation would be the chance of a few odd requests.
LEAST_REQUESTS = 200.0
# What came so long ago counts 1 / e of what comes now: kinds of requests come and go with the hours.
MEMORY_SECONDS = 900.0
_BOTH = (Signal.PROMPT_TOKENS_PER_REQUEST, Signal.GENERATION_TOKENS_PER_REQUEST)

Rates: TypeAlias = Mapping[float, float]
"""Finished requests per second by upper edge in tokens, cumulative."""


def tells_lengths(engine: str) -> bool:
    """Whether an engine (a key of ENGINES) has histograms of both: sums and counts alone tell no more than means."""
    sources = [ENGINES[engine].signals.get(signal) for signal in _BOTH]
    return all(source is not None and source.kind is MetricKind.HISTOGRAM for source in sources)


class SeenLengths:
    """What was seen in about the last quarter of an hour; `value` is None until 200 requests have finished."""

    def __init__(self) -> None:
        self.value: RequestLengths | None = None
        self._prompts: dict[float, float] = {}
        self._answers: dict[float, float] = {}
        self._at_seconds: float | None = None

    def update(self, prompts: Rates, answers: Rates, window_seconds: float, now_seconds: float) -> None:
        """A new window. Nothing in it leaves the lengths as they are."""
        if not prompts or not answers:
            return
        seconds = unseen_seconds(self._at_seconds, window_seconds, now_seconds)
        self._at_seconds = now_seconds
        self._prompts = _with(self._prompts, prompts, seconds)
        self._answers = _with(self._answers, answers, seconds)
        self.value = request_lengths(self._prompts, self._answers) or self.value


def _with(before: Mapping[float, float], rates: Rates, seconds: float) -> dict[float, float]:
    kept = math.exp(-seconds / MEMORY_SECONDS)
    numbers = {edge: rate for edge, rate in rates.items() if math.isfinite(rate)}
    return {edge: kept * before.get(edge, 0.0) + rate * seconds for edge, rate in numbers.items()}


def request_lengths(prompts: Mapping[float, float], answers: Mapping[float, float]) -> RequestLengths | None:
    """The lengths by cumulative counts by upper edge, in tokens; None below 200 prompts or answers.

    A bucket's requests are taken to be of the geometric mean of its edges; those of the open last one, twice as long
    as its edge. Answers of one token have no gaps and are in no class.
    """
    prompt_classes, answer_classes = _classes(prompts), _classes(answers)
    if min(_count(prompt_classes), _count(answer_classes)) < LEAST_REQUESTS:
        return None
    requests, mean = _count(answer_classes), _mean(answer_classes)
    return RequestLengths(
        prompt_variation=_short(_variation(prompt_classes)),
        answers=tuple(
            (_short(length / mean), _short(count / requests)) for length, count in answer_classes if length > 1.0
        ),
    )


def _short(number: float) -> float:
    # Every record holds it. A length of few tokens beside thousands stays one.
    return float(f"{round(number, 6):.3g}")


def _classes(buckets: Mapping[float, float]) -> list[tuple[float, float]]:
    """(tokens, requests) of each bucket that has any; counts that seem to sink are taken for flat."""
    found = []
    lower, below = 0.0, 0.0
    for edge in sorted(edge for edge, count in buckets.items() if math.isfinite(count) and edge > 0):
        count = max(buckets[edge], below)
        if count > below:
            length = 2.0 * max(lower, 0.5) if math.isinf(edge) else math.sqrt((lower or edge / 2.0) * edge)
            found.append((length, count - below))
        lower, below = edge, count
    return found


def _count(classes: list[tuple[float, float]]) -> float:
    return sum(count for _, count in classes)


def _mean(classes: list[tuple[float, float]]) -> float:
    return sum(length * count for length, count in classes) / _count(classes)


def _variation(classes: list[tuple[float, float]]) -> float:
    square = sum(length * length * count for length, count in classes) / _count(classes)
    return math.sqrt(max(0.0, square / _mean(classes) ** 2 - 1.0))
