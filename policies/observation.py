"""What was seen of one pool: its replicas, its signals, and what could not be seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from policies.capacity.request_lengths import RequestLengths
from policies.reasons import Reason
from policies.signals import PoolSignal, Signal


@dataclass(frozen=True, slots=True)
class ReplicaCounts:
    """Replicas (not pods: a replica may be several pods) of a target, by what they can do.

    `spec` is `.spec.replicas` of the scale subresource, what was last asked for; `status` its `.status.replicas`,
    which holds surge pods during a rollout. Supply is `ready + starting`; stuck and terminating replicas serve nobody,
    and those on a node that is about to go serve until then.
    """

    spec: int
    status: int
    ready: int
    starting: int = 0  # not ready yet, and still within the time a start may take
    stuck: int = 0  # not ready for longer than that, unschedulable, or wedged
    terminating: int = 0
    wedged: int = 0  # of the stuck: ready, hold requests, and finish none
    outlasting: int = 0  # of the stuck: a smaller count may take working replicas away before these
    leaving: int = 0  # on a node that is noticed, being deleted, gone or not Ready: whatever state they are in
    leaving_ready: int = 0  # of the leaving: they serve until their node goes

    @property
    def supply(self) -> int:
        """Replicas that serve or soon will."""
        return self.ready + self.starting

    @property
    def serving(self) -> int:
        """Replicas that serve now, for however long."""
        return self.ready + self.leaving_ready

    def without_wedged(self, wedged: int) -> ReplicaCounts:
        """The counts where so many of the ready replicas are wedged: to the API server they are as good as any."""
        wedged = min(wedged, self.ready)
        return replace(
            self,
            ready=self.ready - wedged,
            stuck=self.stuck + wedged,
            wedged=self.wedged + wedged,
            outlasting=self.outlasting + wedged,
        )


@dataclass(frozen=True, slots=True)
class QueryValue:
    """The answer to a user's own PromQL: the sum over its series, and the age of the oldest of them."""

    value: float
    age_seconds: float


@dataclass(frozen=True, slots=True)
class QueryUnknown:
    """A user's own PromQL that gave no number (error, empty, NaN, infinite, negative, too old). Never zero."""

    why: str


@dataclass(frozen=True, slots=True)
class PoolLatency:
    """Latency of a pool over the last two minutes; None where not known.

    `is_censored` is True when a quantile lies beyond the last finite bucket: the true value is at least what is given.
    `inter_token_latency_evenness_floor` is the ratio p99 / p50 that perfectly even gaps would show with the engine's
    buckets; only a larger ratio says anything. `mean_time_per_output_token_seconds` is over requests, where the engine
    counts no requests over tokens. `outside_objectives_share` is the larger of two shares of requests: of those whose
    first token, and of those whose mean gap, is outside the policy's objective.
    """

    time_to_first_token_p99_seconds: float | None = None
    inter_token_latency_p50_seconds: float | None = None
    inter_token_latency_p99_seconds: float | None = None
    inter_token_latency_evenness_floor: float | None = None
    is_censored: bool = False
    mean_time_per_output_token_seconds: float | None = None
    outside_objectives_share: float | None = None
    measured_at_seconds: float | None = None  # when the newest of these came in


@dataclass(frozen=True, slots=True)
class MetricsObservation:
    """What Prometheus said of a pool at one tick.

    `signals` has an entry for each signal that the engine exposes (with zero known replicas where nothing was seen);
    a signal that is not in it is absent: the engine has none, and its votes abstain.
    Means over finished requests are None until 20 requests have finished.
    """

    signals: Mapping[Signal, PoolSignal]
    queries: Mapping[str, QueryValue | QueryUnknown]
    ready_replicas: int
    fresh_replicas: int  # ready replicas with a new sample within two scrape intervals
    prompt_tokens_per_request: float | None = None
    generation_tokens_per_request: float | None = None
    request_lengths: RequestLengths | None = None
    prefix_cache_hit_share: float | None = None
    latency: PoolLatency = PoolLatency()
    warnings: tuple[str, ...] = ()
    wedged_replicas: tuple[str, ...] = ()  # names; what they show is in no signal, nor are they among the ready ones
    unsteady_replicas: int = 0  # with requests, and not ready or standing still (`PoolSignal.unsteady_total`)
    kind: Literal["observed"] = "observed"

    @property
    def coverage(self) -> float:
        """Share of ready replicas with fresh samples; 1.0 for a pool without ready replicas (nothing is missing)."""
        return self.fresh_replicas / self.ready_replicas if self.ready_replicas else 1.0


@dataclass(frozen=True, slots=True)
class ObservationUnavailable:
    """Why nothing was seen at all at this tick (Prometheus unreachable, timed out, rejected the query, ...)."""

    reason: Reason
    message: str
    kind: Literal["unavailable"] = "unavailable"
