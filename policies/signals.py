"""Which quantities steer a pool, and what may be known of each: a value, nothing ever (absent), or nothing yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Signal(StrEnum):
    """A quantity of one replica. Gauges hold their value, counters their rate per second over the last minute."""

    RUNNING_REQUESTS = "runningRequests"
    WAITING_REQUESTS = "waitingRequests"
    KV_CACHE_USAGE = "kvCacheUsage"  # share of the KV cache in use, 0-1
    KV_CACHE_USED_TOKENS = "kvCacheUsedTokens"  # derived: usage x capacity
    KV_CACHE_CAPACITY_TOKENS = "kvCacheCapacityTokens"  # from the engine's cache configuration
    PROMPT_TOKENS = "promptTokensTotal"
    GENERATION_TOKENS = "generationTokensTotal"
    PREEMPTIONS = "preemptionsTotal"
    REQUESTS_FINISHED = "requestsFinishedTotal"
    REQUESTS_ARRIVED = "requestsArrived"  # derived, per second: finished + growth of running and waiting in a minute
    REQUESTS_ARRIVED_RECENTLY = "requestsArrivedRecently"  # the same over half a minute
    TIME_TO_FIRST_TOKEN = "timeToFirstTokenSeconds"
    INTER_TOKEN_LATENCY = "interTokenLatencySeconds"  # of every gap between two tokens
    TIME_PER_OUTPUT_TOKEN = "timePerOutputTokenSeconds"  # the mean gap of one request
    PROMPT_TOKENS_PER_REQUEST = "promptTokensPerRequest"
    GENERATION_TOKENS_PER_REQUEST = "generationTokensPerRequest"
    PREFIX_CACHE_HITS = "prefixCacheHitsTotal"
    PREFIX_CACHE_QUERIES = "prefixCacheQueriesTotal"
    CACHE_CONFIG = "cacheConfig"


@dataclass(frozen=True, slots=True)
class Sample:
    """A known value of one replica and how old it is. A held sample is an old one that nothing newer has replaced."""

    value: float
    age_seconds: float
    is_held: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that should be there and is not: the scrape failed, it is too old, NaN or infinite. Never zero."""

    why: str


@dataclass(frozen=True, slots=True)
class PoolSignal:
    """One signal over the ready replicas of a pool.

    `total` and `maximum` are over the replicas with a value (fresh or held), `held_total` over the held ones alone; all
    are 0.0 when no replica has one, which `known_replicas` tells apart from a true zero.
    """

    total: float
    maximum: float
    fresh_replicas: int
    held_replicas: int = 0
    unknown_replicas: int = 0
    oldest_age_seconds: float = 0.0
    held_total: float = 0.0
    unsteady_total: float = 0.0  # of replicas that are not ready, or stand still; in none of the others

    @property
    def known_replicas(self) -> int:
        """Replicas whose value counts: fresh or held."""
        return self.fresh_replicas + self.held_replicas

    @property
    def ready_replicas(self) -> int:
        """All replicas that should have a value."""
        return self.known_replicas + self.unknown_replicas

    @property
    def mean(self) -> float:
        """Mean over the known replicas; 0.0 when none is known."""
        return self.total / self.known_replicas if self.known_replicas else 0.0


def over_replicas(readings: Iterable[Sample | Unknown], unsteady_total: float = 0.0) -> PoolSignal:
    """One reading a ready replica -> the pool's signal. No readings: all counts are zero.

    `unsteady_total` is what replicas hold that are not ready, or stand still. Sums have nine significant digits: what
    stands behind them is the noise of adding floats, and would make records long.
    """
    total = maximum = oldest_age_seconds = held_total = 0.0
    fresh = held = unknown = 0
    for reading in readings:
        if isinstance(reading, Unknown):
            unknown += 1
            continue
        total += reading.value
        if fresh + held == 0 or reading.value > maximum:
            maximum = reading.value
        oldest_age_seconds = max(oldest_age_seconds, reading.age_seconds)
        if reading.is_held:
            held += 1
            held_total += reading.value
        else:
            fresh += 1
    return PoolSignal(
        _nine_digits(total),
        _nine_digits(maximum),
        fresh,
        held,
        unknown,
        oldest_age_seconds,
        _nine_digits(held_total),
        _nine_digits(unsteady_total),
    )


def _nine_digits(value: float) -> float:
    return value if value % 1 == 0 else float(f"{value:.9g}")
