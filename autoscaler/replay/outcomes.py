"""What did the users of a simulated pool get? Counts of all requests, latencies, and a view of the last two minutes."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from autoscaler.replay.serving_replica import Request

WINDOW_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class LatencyObjectives:
    """What a request must get to count as served well; the token latency is the mean over one answer."""

    time_to_first_token_seconds: float
    inter_token_latency_seconds: float

    def are_met_by(self, time_to_first_token_seconds: float, inter_token_latency_seconds: float) -> bool:
        """Whether one request got both."""
        return (
            time_to_first_token_seconds <= self.time_to_first_token_seconds
            and inter_token_latency_seconds <= self.inter_token_latency_seconds
        )


class RequestLatencies:
    """Of every finished request, in 12 bytes: arrival since `started_at_seconds`, time to first token, mean gap."""

    def __init__(self, started_at_seconds: float) -> None:
        self.started_at_seconds = started_at_seconds
        self.arrived = array("f")
        self.first_token = array("f")
        self.token_gap = array("f")


class RequestOutcomes:
    """Counts since the start. `arrived` = finished + rejected + dropped + those still in the pool."""

    def __init__(self, objectives: LatencyObjectives, latencies: RequestLatencies | None = None) -> None:
        """`latencies` gets every finished request, where somebody wants them all; there is no recent view then."""
        self._objectives = objectives
        self._latencies = latencies
        self._recent: deque[tuple[float, float, bool]] = deque()  # finished at, time to first token, is met
        self.arrived = 0
        self.finished = 0
        self.met = 0
        self.rejected = 0  # longer than a replica's cache
        self.dropped = 0  # on a replica that was killed at the end of its grace
        self.lost_to_reclaims = 0  # of them: on a node that was reclaimed
        self.finished_tokens = 0  # prompts and answers of the finished requests

    @property
    def latencies(self) -> RequestLatencies | None:
        """Every finished request, where they are kept."""
        return self._latencies

    def add_finished(self, requests: Sequence[Request]) -> None:
        """Takes finished requests, in order of time for each replica."""
        latencies, recent = self._latencies, self._recent
        longest_wait = self._objectives.time_to_first_token_seconds
        longest_gap = self._objectives.inter_token_latency_seconds
        for request in requests:
            arrived_at, first_token_at, finished_at = request.arrived_at, request.first_token_at, request.finished_at
            if first_token_at is None or finished_at is None:
                raise ValueError("a request that has not finished was reported as finished")
            first_token = first_token_at - arrived_at
            outputs = request.output_tokens
            gap = (finished_at - first_token_at) / (outputs - 1) if outputs > 1 else 0.0
            is_met = first_token <= longest_wait and gap <= longest_gap
            self.met += is_met
            self.finished_tokens += request.input_tokens + outputs
            if latencies is not None:
                latencies.arrived.append(arrived_at - latencies.started_at_seconds)
                latencies.first_token.append(first_token)
                latencies.token_gap.append(gap)
            else:
                recent.append((finished_at, first_token, is_met))
        self.finished += len(requests)

    def forget_old(self, now_seconds: float) -> None:
        """Drops what has left the window."""
        while self._recent and self._recent[0][0] < now_seconds - WINDOW_SECONDS:
            self._recent.popleft()

    @property
    def recent_met_share(self) -> float | None:
        """Share of the requests finished in the last two minutes that met both objectives; None without any."""
        if not self._recent:
            return None
        return sum(is_met for _, _, is_met in self._recent) / len(self._recent)

    def recent_time_to_first_token_seconds(self, share: float) -> float | None:
        """The exact `share` quantile over the last two minutes; None without any finished request."""
        if not self._recent:
            return None
        ordered = sorted(first_token for _, first_token, _ in self._recent)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
