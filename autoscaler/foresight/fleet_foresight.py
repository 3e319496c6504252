"""What will the load of every pool be? One forecaster for all, fed by the ticks, begun with the recorded past."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from autoscaler.foresight.arriving_work import read_work
from autoscaler.foresight.cohort import Cohort, Foreseen
from autoscaler.foresight.foresight import HistoryRequest, PastUnavailable, SeenPool, WorkHistory, no_past
from autoscaler.foresight.work_bins import ClosedBin, WorkBins
from autoscaler.observers.metrics import PoolKey
from forecasting.forecast import Forecast, ForecastUnavailable, UnavailableReason
from forecasting.parameters import ForecastingParameters

logger = logging.getLogger(__name__)

# A past that could not be read is asked for again after a minute, then twice as long each time.
FIRST_RETRY_SECONDS = 60.0
LONGEST_RETRY_SECONDS = 900.0
# Each cohort costs about a millisecond a bin however few its pools: more than so many are read anew as one.
MAXIMUM_COHORTS = 6
# After a longer silence (a standby that takes over) the past is read anew; until then the time between is missing.
LONGEST_SILENCE_BINS = 2
# A cohort that has missed a day knows nothing of now, and catching up would take seconds.
LONGEST_CATCH_UP_BINS = 288
# What closed while a past was being read, to catch up with; an hour.
KEPT_BINS = 12


@dataclass(frozen=True, slots=True)
class _Read:
    """What a background job made: the cohort, and why it begins without a past, if it does."""

    cohort: Cohort
    problem: str | None


class FleetForesight:
    """A Foresight. `foresee` is called by one thread; the past is read and replayed on the executor."""

    def __init__(
        self, history: WorkHistory, executor: Executor, parameters: ForecastingParameters | None = None
    ) -> None:
        self._history = history
        self._executor = executor
        self._parameters = parameters or ForecastingParameters()
        self._bins = WorkBins(self._parameters.bin_seconds)
        self._recent: deque[ClosedBin] = deque(maxlen=KEPT_BINS)
        self._cohorts: list[Cohort] = []
        self._without_past: frozenset[PoolKey] = frozenset()
        self._is_all_old = False
        self._job: Future[_Read] | None = None
        self._retry_at_seconds = -math.inf
        self._retry_after_seconds = FIRST_RETRY_SECONDS
        self._newest: Mapping[PoolKey, Foreseen] = {}

    def newest(self, key: PoolKey) -> Forecast | None:
        """What was said of a pool at the last tick; None where that was no forecast. Any thread may ask."""
        foreseen = self._newest.get(key)
        return foreseen.said if foreseen is not None and isinstance(foreseen.said, Forecast) else None

    def foresee(
        self, pools: Sequence[SeenPool], now_seconds: float
    ) -> Mapping[PoolKey, Forecast | ForecastUnavailable]:
        """Of each pool what a decision looks at of its newest forecast, or why there is none.

        A bin that has closed is taken up first.
        """
        closed = self._bins.take({pool.key: read_work(pool.metrics, pool.replicas) for pool in pools}, now_seconds)
        if closed is not None:
            self._close(closed)
        if self._job is not None and self._job.done():
            self._finish(self._job, now_seconds)
        self._forget_all_but({pool.key for pool in pools})
        if self._job is None and now_seconds >= self._retry_at_seconds:
            self._read_past(self._those_without_past(pools), now_seconds)
        holders = {key: cohort for cohort in self._cohorts for key in cohort.keys}
        self._newest = {pool.key: _foreseen(holders.get(pool.key), pool.key) for pool in pools}
        return {key: each.for_a_decision for key, each in self._newest.items()}

    def _close(self, closed: ClosedBin) -> None:
        if self._recent and closed.number - self._recent[-1].number > LONGEST_SILENCE_BINS:
            self._is_all_old = True
            self._recent.clear()
        self._recent.append(closed)
        self._cohorts = [each for each in self._cohorts if closed.number - each.next_bin < LONGEST_CATCH_UP_BINS]
        for cohort in self._cohorts:
            cohort.advance(closed.number, closed.loads)

    def _finish(self, job: Future[_Read], now_seconds: float) -> None:
        """Puts the cohort whose past has been read in the place of those that knew its pools before.

        One that begins without a past takes no pool from another that has one.
        """
        self._job, self._retry_at_seconds = None, now_seconds + self._retry_after_seconds
        read = job.result()
        cohort = read.cohort
        if read.problem is not None:
            logger.warning("the recorded past of the load could not be read", extra={"problem": read.problem})
            self._retry_after_seconds = min(2 * self._retry_after_seconds, LONGEST_RETRY_SECONDS)
            self._without_past |= frozenset(cohort.keys)
            cohort.release([key for each in self._cohorts for key in each.keys])
        else:
            self._retry_at_seconds, self._retry_after_seconds = -math.inf, FIRST_RETRY_SECONDS
            self._without_past -= frozenset(cohort.keys)
            for each in self._cohorts:
                each.release(cohort.keys)
        for closed in self._recent:
            cohort.advance(closed.number, closed.loads)
        self._cohorts.append(cohort)

    def _forget_all_but(self, keys: Collection[PoolKey]) -> None:
        for cohort in self._cohorts:
            cohort.release([key for key in cohort.keys if key not in keys])
        self._cohorts = [cohort for cohort in self._cohorts if cohort.keys]
        self._without_past = self._without_past.intersection(keys)

    def _those_without_past(self, pools: Sequence[SeenPool]) -> list[SeenPool]:
        if self._is_all_old or len(self._cohorts) > MAXIMUM_COHORTS:
            return list(pools)
        known = {key for cohort in self._cohorts for key in cohort.keys}
        return [pool for pool in pools if pool.key not in known or pool.key in self._without_past]

    def _read_past(self, pools: Sequence[SeenPool], now_seconds: float) -> None:
        if not pools:
            return
        self._is_all_old = False
        bin_seconds = self._parameters.bin_seconds
        ends_at_seconds = float(now_seconds // bin_seconds * bin_seconds)
        requests = [HistoryRequest(pool.query, pool.parameters.history_days) for pool in pools]
        self._job = self._executor.submit(_read, self._history, requests, ends_at_seconds, self._parameters)


def _read(
    history: WorkHistory,
    requests: Sequence[HistoryRequest],
    ends_at_seconds: float,
    parameters: ForecastingParameters,
) -> _Read:
    past = history.read(requests, ends_at_seconds, parameters.bin_seconds)
    keys = [request.query.key for request in requests]
    if isinstance(past, PastUnavailable):
        return _Read(Cohort(keys, no_past(len(keys), ends_at_seconds), parameters), past.message)
    for warning in past.warnings:
        logger.warning("a part of the recorded past is missing", extra={"problem": warning})
    return _Read(Cohort(keys, past, parameters), None)


_PAST_IS_BEING_READ = ForecastUnavailable(
    UnavailableReason.READING_HISTORY, "the recorded past of its load is being read"
)


def _foreseen(cohort: Cohort | None, key: PoolKey) -> Foreseen:
    return Foreseen(_PAST_IS_BEING_READ, _PAST_IS_BEING_READ) if cohort is None else cohort.foreseen(key)
