"""A recorded past that a test has made up, and an executor that does its work when the test says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoscaler.foresight.foresight import HistoryRequest, PastUnavailable, WorkPast
from autoscaler.observers.metrics import PoolKey


class FakeWorkHistory:
    """Knows the loads of some pools up to any moment; `problem` stands for a Prometheus that does not answer."""

    def __init__(self, loads: Mapping[PoolKey, NDArray[np.float64]] | None = None) -> None:
        self.loads = dict(loads or {})
        self.problem: str | None = None
        self.asked: list[tuple[PoolKey, ...]] = []

    def read(
        self, requests: Sequence[HistoryRequest], ends_at_seconds: float, bin_seconds: int
    ) -> WorkPast | PastUnavailable:
        self.asked.append(tuple(request.query.key for request in requests))
        if self.problem is not None:
            return PastUnavailable(self.problem)
        known = [self.loads.get(request.query.key, np.empty(0)) for request in requests]
        bins = max(len(each) for each in known)
        columns = [np.concatenate([np.full(bins - len(each), np.nan), each]) for each in known]
        return WorkPast(ends_at_seconds, np.stack(columns, axis=1))


class PatientExecutor(Executor):
    """Keeps what it is given until `work` is called; at once with `is_prompt`."""

    def __init__(self, is_prompt: bool = True) -> None:
        self.is_prompt = is_prompt
        self._waiting: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.append(lambda: future.set_result(fn(*args, **kwargs)))
        if self.is_prompt:
            self.work()
        return future

    def work(self) -> None:
        waiting, self._waiting = self._waiting, []
        for job in waiting:
            job()
