"""What does one engine expose on its /metrics page? Counters and latency histograms, as the engines count them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

# vLLM V1's upper edges, in seconds; the last bucket is open.
TIME_TO_FIRST_TOKEN_EDGES = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
INTER_TOKEN_LATENCY_EDGES = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5),
    *(5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
# In tokens; there they end at the largest model length.
REQUEST_LENGTH_EDGES = (
    *(1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0),
    *(1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0, 50_000.0, 100_000.0),
)


class LatencyHistogram:
    """Observations by bucket (not cumulative); an observation on an edge belongs to the bucket below it.

    Most observations fall into the bucket of the one before: `place` is that bucket, above `low` and up to `high`.
    """

    __slots__ = ("_edges", "counts", "high", "low", "place", "seconds")

    def __init__(self, edges: Sequence[float]) -> None:
        self._edges = (-inf, *edges, inf)
        self.counts = [0.0] * (len(edges) + 1)  # whole numbers; floats, as they come
        self.seconds = 0.0  # the sum of all observations
        self.place, self.low, self.high = 0, -inf, edges[0]

    def observe(self, seconds: float, times: float = 1.0) -> None:
        """Adds `times` observations of one value."""
        if not self.low < seconds <= self.high:
            self.look_up(seconds)
        self.counts[self.place] += times
        self.seconds += seconds * times

    def look_up(self, seconds: float) -> None:
        """Makes the bucket of this value the present one."""
        self.place = place = bisect_left(self._edges, seconds) - 1
        self.low, self.high = self._edges[place], self._edges[place + 1]


@dataclass(frozen=True, slots=True)
class ServingSnapshot:
    """One reading of one replica: gauges as they stand, counters since the replica started."""

    running_requests: int
    waiting_requests: int
    kv_cache_usage: float
    prompt_tokens: int
    generation_tokens: int
    preemptions: int
    finished_requests: int
    finished_prompt_tokens: int
    finished_generation_tokens: int
    prefix_queried_tokens: int
    prefix_hit_tokens: int
    time_to_first_token_counts: tuple[float, ...]  # whole numbers
    inter_token_latency_counts: tuple[float, ...]
    inter_token_latency_seconds: float
    time_per_output_token_counts: tuple[float, ...]  # one observation a request
    time_per_output_token_seconds: float
    prompt_length_counts: tuple[int, ...]  # of finished requests, as the next
    answer_length_counts: tuple[int, ...]


class ServingCounters:
    """The counters of one replica; they only grow."""

    __slots__ = (
        "answer_lengths",
        "finished_generation_tokens",
        "finished_prompt_tokens",
        "finished_requests",
        "generation_tokens",
        "inter_token_latency",
        "preemptions",
        "prefix_hit_tokens",
        "prefix_queried_tokens",
        "prompt_lengths",
        "prompt_tokens",
        "time_per_output_token",
        "time_to_first_token",
    )

    def __init__(self) -> None:
        self.prompt_tokens = 0  # counted when a prompt is complete, cached tokens included
        self.generation_tokens = 0.0  # a whole number
        self.preemptions = 0
        self.finished_requests = 0
        self.finished_prompt_tokens = 0
        self.finished_generation_tokens = 0
        self.prefix_queried_tokens = 0
        self.prefix_hit_tokens = 0
        self.time_to_first_token = LatencyHistogram(TIME_TO_FIRST_TOKEN_EDGES)
        self.inter_token_latency = LatencyHistogram(INTER_TOKEN_LATENCY_EDGES)
        self.time_per_output_token = LatencyHistogram(INTER_TOKEN_LATENCY_EDGES)
        self.prompt_lengths = [0] * (len(REQUEST_LENGTH_EDGES) + 1)
        self.answer_lengths = [0] * (len(REQUEST_LENGTH_EDGES) + 1)

    def snapshot(self, running_requests: int, waiting_requests: int, kv_cache_usage: float) -> ServingSnapshot:
        """The counters as they stand, with the gauges of the same moment."""
        return ServingSnapshot(
            running_requests=running_requests,
            waiting_requests=waiting_requests,
            kv_cache_usage=kv_cache_usage,
            prompt_tokens=self.prompt_tokens,
            generation_tokens=int(self.generation_tokens),
            preemptions=self.preemptions,
            finished_requests=self.finished_requests,
            finished_prompt_tokens=self.finished_prompt_tokens,
            finished_generation_tokens=self.finished_generation_tokens,
            prefix_queried_tokens=self.prefix_queried_tokens,
            prefix_hit_tokens=self.prefix_hit_tokens,
            time_to_first_token_counts=tuple(self.time_to_first_token.counts),
            inter_token_latency_counts=tuple(self.inter_token_latency.counts),
            inter_token_latency_seconds=self.inter_token_latency.seconds,
            time_per_output_token_counts=tuple(self.time_per_output_token.counts),
            time_per_output_token_seconds=self.time_per_output_token.seconds,
            prompt_length_counts=tuple(self.prompt_lengths),
            answer_length_counts=tuple(self.answer_lengths),
        )
