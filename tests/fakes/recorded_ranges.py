"""A Prometheus that knows a past which a test has made up: one function for each thing that is asked of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from autoscaler.prometheus.answer import PrometheusFailure
from autoscaler.prometheus.range_answer import RangeQuestion, RangeSeries, RangeVector
from autoscaler.prometheus.source import RangeAnswer
from autoscaler.prometheus.workload_names import WORKLOAD_LABEL

NAMES = (
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:num_requests_waiting",
    "vllm:request_success_total",
)

Answers = Callable[[RangeQuestion], RangeAnswer]


def nothing(question: RangeQuestion) -> RangeAnswer:
    """No series."""
    return RangeVector([])


def series_of(labels: Mapping[str, str], values: float | NDArray[np.float64], question: RangeQuestion) -> RangeSeries:
    """The same value at each moment, or one each."""
    return RangeSeries(labels, np.broadcast_to(np.asarray(values, np.float64), (question.steps,)))


def workload(name: str, values: float | NDArray[np.float64], question: RangeQuestion) -> RangeSeries:
    """A row of a workload in the namespace "inference"."""
    return series_of({"namespace": "inference", WORKLOAD_LABEL: name}, values, question)


class _PassingClock:
    """Moves on by itself with each question."""

    def __init__(self) -> None:
        self.at_seconds = 0.0

    def now_seconds(self) -> float:
        return self.at_seconds

    def monotonic_seconds(self) -> float:
        return self.at_seconds


class FakeRanges:
    """A RangeSource that keeps what it was asked. With `failure` nothing is answered."""

    def __init__(
        self,
        *,
        names: tuple[str, ...] = NAMES,
        processed: Answers = nothing,
        recorded: Answers | None = None,
        waiting: Answers = nothing,
        finished: Answers = nothing,
        parts_among_rows: float = 1.0,
        failure: PrometheusFailure | None = None,
        seconds_a_question: float = 0.0,
    ) -> None:
        self.asked: list[RangeQuestion] = []
        self.clock = _PassingClock()
        self._failure = failure
        self._seconds_a_question = seconds_a_question
        self._lock = threading.Lock()
        self._answers: dict[str, Answers] = {
            "the recorded days": lambda question: RangeVector([series_of({}, 1.0, question)] if recorded else []),
            "the names of counters": lambda question: RangeVector(
                [series_of({"__name__": name}, 1.0, question) for name in names]
            ),
            "parts among rows": lambda question: RangeVector([series_of({}, parts_among_rows, question)]),
            "the recorded load": recorded or nothing,
            "the past load": processed,
            "the past queues": waiting,
            "the past requests": finished,
        }

    def ask_range(self, question: RangeQuestion) -> RangeAnswer:
        """As the function of its name says."""
        with self._lock:
            self.asked.append(question)
            self.clock.at_seconds += self._seconds_a_question
        return self._failure or self._answers[question.name](question)

    def asked_for(self, name: str) -> list[RangeQuestion]:
        """The questions of this name."""
        return [question for question in self.asked if question.name == name]
