"""What did the users of a simulated pool get? Counts of all requests, latencies, and a view of the last two minutes."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoscaler.replay.serving_replica import Request
from autoscaler.replay.trace import FloatArray

WINDOW_SECONDS = 120.0
JUDGED_AT_ONCE = 1024  # finished requests


@dataclass(frozen=True, slots=True)
class LatencyObjectives:
    """What a request must get to count as served well; the token latency is the mean over one answer."""

    time_to_first_token_seconds: float
    inter_token_latency_seconds: float

    def are_met_by(
        self, time_to_first_token_seconds: float | FloatArray, inter_token_latency_seconds: float | FloatArray
    ) -> NDArray[np.bool_]:
        """Whether a request got both, or each of several."""
        is_met: NDArray[np.bool_] = np.logical_and(
            time_to_first_token_seconds <= self.time_to_first_token_seconds,
            inter_token_latency_seconds <= self.inter_token_latency_seconds,
        )
        return is_met


class RequestLatencies:
    """Of every finished request, in 12 bytes: arrival since `started_at_seconds`, time to first token, mean gap."""

    def __init__(self, started_at_seconds: float) -> None:
        self.started_at_seconds = started_at_seconds
        self.arrived = array("f")
        self.first_token = array("f")
        self.token_gap = array("f")

    def add(self, arrived_at: FloatArray, first_token: FloatArray, token_gap: FloatArray) -> None:
        """Takes several requests: when they arrived (simulated unix time), and how long they waited for tokens."""
        for kept, values in (
            (self.arrived, arrived_at - self.started_at_seconds),
            (self.first_token, first_token),
            (self.token_gap, token_gap),
        ):
            kept.frombytes(values.astype(np.float32).tobytes())


class RequestOutcomes:
    """Counts since the start. `arrived` = finished + rejected + dropped + those still in the pool."""

    def __init__(self, objectives: LatencyObjectives, latencies: RequestLatencies | None = None) -> None:
        """`latencies` gets every finished request, where somebody wants them all; there is no recent view then."""
        self._objectives = objectives
        self._latencies = latencies
        self._recent: deque[tuple[float, float, bool]] = deque()  # finished at, time to first token, is met
        self._unjudged: list[Request] = []  # finished, and judged many at a time: that costs a quarter
        self._met = 0
        self._finished_tokens = 0
        self.arrived = 0
        self.finished = 0
        self.rejected = 0  # longer than a replica's cache
        self.dropped = 0  # on a replica that was killed at the end of its grace
        self.lost_to_reclaims = 0  # of them: on a node that was reclaimed

    @property
    def met(self) -> int:
        """Finished requests that met both objectives."""
        self._judge()
        return self._met

    @property
    def finished_tokens(self) -> int:
        """Prompts and answers of the finished requests."""
        self._judge()
        return self._finished_tokens

    @property
    def latencies(self) -> RequestLatencies | None:
        """Every finished request, where they are kept."""
        self._judge()
        return self._latencies

    def add_finished(self, requests: Sequence[Request]) -> None:
        """Takes finished requests, in order of time for each replica."""
        self.finished += len(requests)
        self._unjudged += requests
        if len(self._unjudged) >= JUDGED_AT_ONCE:
            self._judge()

    def _judge(self) -> None:
        """Counts those that met the objectives, and keeps the latencies."""
        requests = self._unjudged
        if not requests:
            return
        self._unjudged = []
        arrived_at = np.array([request.arrived_at for request in requests])
        first_token_at = np.array([request.first_token_at for request in requests], dtype=np.float64)
        finished_at = np.array([request.finished_at for request in requests], dtype=np.float64)
        output_tokens = np.array([request.output_tokens for request in requests])
        first_token = first_token_at - arrived_at
        gap = (finished_at - first_token_at) / np.maximum(output_tokens - 1, 1)
        if not (np.isfinite(first_token) & np.isfinite(gap)).all():
            raise ValueError("a request that has not finished was reported as finished")
        is_met = self._objectives.are_met_by(first_token, gap)
        self._met += int(np.count_nonzero(is_met))
        self._finished_tokens += int(output_tokens.sum()) + sum(request.input_tokens for request in requests)
        if self._latencies is not None:
            self._latencies.add(arrived_at, first_token, gap)
        else:
            self._recent.extend(zip(finished_at.tolist(), first_token.tolist(), is_met.tolist(), strict=True))

    def forget_old(self, now_seconds: float) -> None:
        """Drops what has left the window."""
        if self._latencies is not None:
            return
        self._judge()
        while self._recent and self._recent[0][0] < now_seconds - WINDOW_SECONDS:
            self._recent.popleft()

    @property
    def recent_met_share(self) -> float | None:
        """Share of the requests finished in the last two minutes that met both objectives; None without any."""
        self._judge()
        if not self._recent:
            return None
        return sum(is_met for _, _, is_met in self._recent) / len(self._recent)

    def recent_time_to_first_token_seconds(self, share: float) -> float | None:
        """The exact `share` quantile over the last two minutes; None without any finished request."""
        self._judge()
        if not self._recent:
            return None
        ordered = sorted(first_token for _, first_token, _ in self._recent)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
