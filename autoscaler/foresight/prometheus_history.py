"""What was the load of every pool in the last weeks? Read from Prometheus once, in pieces, the newest first.

The last days are read in bins, as the weights and the interval of a forecast are learned from them. Older days only
shape the usual day: they are read coarser, and the coarser the longer Prometheus has taken for the last days.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import numpy as np

from autoscaler.clock import Clock
from autoscaler.foresight.daemon_executor import DaemonExecutor
from autoscaler.foresight.foresight import HistoryRequest, PastUnavailable, WorkPast
from autoscaler.foresight.past_pieces import SECONDS_PER_DAY, Loads, Piece, PieceReader
from autoscaler.prometheus.answer import FailureKind, PrometheusFailure
from autoscaler.prometheus.settings import QuerySettings
from autoscaler.prometheus.source import RangeSource
from forecasting.parameters import REPLAYED_DAYS

logger = logging.getLogger(__name__)

# Queries under way at a time: Prometheus has its other cores for everybody else.
PARALLEL = 2
# Numbers of one answer: 4 MB of JSON.
ANSWER_NUMBERS = 144_000
LONGEST_PIECE_MOMENTS = 288
SMALLEST_PIECE_MOMENTS = 12
# Bins that share a value in older days: the finest that Prometheus has time for.
STRIDES = (3, 6, 12)
READ_WITHIN_SECONDS = 40.0


class PrometheusWorkHistory:
    """A WorkHistory of few and large queries: each is about all pools."""

    def __init__(self, source: RangeSource, settings: QuerySettings, clock: Clock) -> None:
        self._source = source
        self._settings = settings
        self._clock = clock

    def read(
        self, requests: Sequence[HistoryRequest], ends_at_seconds: float, bin_seconds: int
    ) -> WorkPast | PastUnavailable:
        """Loads up to `ends_at_seconds`. Where Prometheus stops answering, what was read until then is the past."""
        began_seconds = self._clock.monotonic_seconds()
        days = max(request.days for request in requests)
        bins = days * SECONDS_PER_DAY // bin_seconds
        reader = PieceReader(self._source, self._settings, requests, bin_seconds)
        failure = reader.prepare(ends_at_seconds, days)
        if failure is not None:
            return PastUnavailable(failure.message)
        loads = np.full((bins, len(requests)), np.nan)
        read_bins = 0
        for outcome in self._pieces(reader, ends_at_seconds, loads.shape, bin_seconds):
            if isinstance(outcome, PrometheusFailure):
                failure = outcome
                break
            end = bins - read_bins
            loads[end - len(outcome) : end] = outcome
            read_bins += len(outcome)
        if failure is not None and read_bins == 0:
            return PastUnavailable(failure.message)
        for column, request in enumerate(requests):
            loads[: bins - request.days * SECONDS_PER_DAY // bin_seconds, column] = np.nan
        known = np.flatnonzero(np.isfinite(loads).any(axis=1))
        seconds = round(self._clock.monotonic_seconds() - began_seconds, 1)
        logger.info(
            "the past of the load was read",
            extra={
                "pools": len(requests),
                "bins": read_bins,
                "known": round(float(np.isfinite(loads).mean()), 4),
                "seconds": seconds,
            },
        )
        warnings = () if failure is None else (f"only {read_bins} of {bins} bins were read: {failure.message}",)
        return WorkPast(ends_at_seconds, loads[known[0] :] if len(known) else loads[:0], warnings)

    def _pieces(
        self, reader: PieceReader, ends_at_seconds: float, shape: tuple[int, ...], bin_seconds: int
    ) -> Iterator[Loads | PrometheusFailure]:
        """The past in pieces (bins, pools), the newest first; a failure ends it."""
        began_seconds = self._clock.monotonic_seconds()
        bins, pools = shape
        fine = min(bins, round(REPLAYED_DAYS * SECONDS_PER_DAY / bin_seconds))
        moments = max(SMALLEST_PIECE_MOMENTS, min(LONGEST_PIECE_MOMENTS, ANSWER_NUMBERS // pools))
        done, stride = 0, 1
        threads = DaemonExecutor()
        while done < bins:
            if done == fine:
                taken = self._clock.monotonic_seconds() - began_seconds
                stride = _affordable_stride(taken / fine, bins - fine, READ_WITHIN_SECONDS - taken)
            newest = Piece(ends_at_seconds - done * bin_seconds, moments * stride, stride)
            until = fine if done < fine else bins
            # The first one finds out what there is.
            wave = _pieces_from(newest, until - done, bin_seconds)[: PARALLEL if done else 1]
            for piece, loads in zip(wave, list(threads.map(reader.read, wave)), strict=True):
                if isinstance(loads, PrometheusFailure):
                    if not _is_too_much(loads) or moments <= SMALLEST_PIECE_MOMENTS:
                        yield loads
                        return
                    moments //= 2
                    break
                yield loads
                done += piece.bins


def _pieces_from(newest: Piece, bins: int, bin_seconds: int) -> list[Piece]:
    """Pieces like the newest one, and a shorter last one, that make up so many bins."""
    return [
        Piece(newest.ends_at_seconds - place * bin_seconds, min(newest.bins, bins - place), newest.stride)
        for place in range(0, bins, newest.bins)
    ]


def _affordable_stride(seconds_a_bin: float, bins: int, left_seconds: float) -> int:
    """How many bins share a value in the older days, where one bin has taken so long until now."""
    strides = [stride for stride in STRIDES if bins % stride == 0] or [1]
    return next((stride for stride in strides if seconds_a_bin * bins / stride <= left_seconds), strides[-1])


def _is_too_much(failure: PrometheusFailure) -> bool:
    return failure.kind in (FailureKind.TOO_LARGE, FailureKind.TIMEOUT) or failure.status == 422
