"""What did a policy come to in a run? The figures of the report, and everything a picture needs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from autoscaler.replay.node_result import NodeResult
from autoscaler.replay.outcomes import RequestLatencies
from autoscaler.replay.simulated_pool import CountChange, SimulatedPool
from autoscaler.replay.timeline import TimelinePoint


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Median and 99th percentile in seconds over all finished requests; None without any."""

    p50_seconds: float | None
    p99_seconds: float | None


@dataclass(frozen=True, slots=True)
class PoolResult:
    """One pool under one policy, from the start of a run to its end.

    `requests` are those that arrived; `met` of them met all objectives. Requests that were refused (too long), dropped
    (killed with their replica) or not finished ten minutes after the end count as not met. Hours are of replicas that
    exist, starting and draining ones included; where nodes were simulated, accelerator-hours and dollars are those of
    whole nodes. Tokens are prompts and answers of finished requests.
    """

    policy: str
    seed: int
    started_at_seconds: float
    ended_at_seconds: float
    requests: int
    met: int
    rejected: int
    dropped: int
    unfinished: int
    time_to_first_token: Quantiles
    inter_token_latency: Quantiles
    replica_hours: float
    accelerator_hours: float
    cost_dollars: float
    tokens: int
    preemptions: int
    max_replicas: int
    changes: tuple[CountChange, ...]
    points: tuple[TimelinePoint, ...]
    latencies: RequestLatencies
    was_stopped: bool = False  # before the end, by Ctrl-C
    nodes: NodeResult | None = None  # where nodes were simulated
    lost_to_reclaims: int = 0  # of the dropped requests: with a node that was reclaimed
    short_seconds: float | None = None  # where only rates were run: with more load than was served within objectives
    short_requests: int | None = None  # those that arrived in these seconds

    @property
    def is_of_rates(self) -> bool:
        """Whether no single requests were run, so that nothing is known of what each of them got."""
        return self.short_seconds is not None

    @property
    def short_share(self) -> float | None:
        """The part of the time in which it was short; None where single requests were run."""
        return None if self.short_seconds is None else self.short_seconds / max(self.hours * 3600.0, 1.0)

    @property
    def attainment(self) -> float | None:
        """Share of the requests that met all objectives; None without a request, or where only rates were run."""
        return self.met / self.requests if self.requests and not self.is_of_rates else None

    @property
    def scale_ups(self) -> int:
        """How often the count was raised."""
        return sum(change.to_replicas > change.from_replicas for change in self.changes)

    @property
    def scale_downs(self) -> int:
        """How often the count was lowered."""
        return sum(change.to_replicas < change.from_replicas for change in self.changes)

    @property
    def reversals(self) -> int:
        """How often a change went the other way than the change before it."""
        signs = [change.to_replicas > change.from_replicas for change in self.changes]
        return sum(later != earlier for earlier, later in pairwise(signs))

    @property
    def hours(self) -> float:
        """How long the run was."""
        return (self.ended_at_seconds - self.started_at_seconds) / 3600.0

    @property
    def tokens_per_accelerator_second(self) -> float | None:
        """Tokens by accelerator seconds paid for; None without any replica."""
        return self.tokens / (self.accelerator_hours * 3600.0) if self.accelerator_hours else None

    @property
    def dollars_per_million_tokens(self) -> float | None:
        """Cost by tokens; None without any token."""
        return self.cost_dollars / self.tokens * 1e6 if self.tokens else None


def quantiles(values: np.ndarray[tuple[int], np.dtype[np.float32]]) -> Quantiles:
    """Exact quantiles (no interpolation beyond neighbours); None for no values."""
    if not len(values):
        return Quantiles(None, None)
    median, high = np.quantile(values, (0.5, 0.99))
    return Quantiles(float(median), float(high))


@dataclass(frozen=True, slots=True)
class CostSoFar:
    """What had been paid for at the end of the run; the requests in flight then may finish later, for nothing."""

    replica_seconds: float
    at_seconds: float
    nodes: NodeResult | None = None


def pool_result(
    pool: SimulatedPool,
    policy: str,
    seed: int,
    started_at_seconds: float,
    cost: CostSoFar,
    points: tuple[TimelinePoint, ...],
    dollars_per_accelerator_hour: float,
    was_stopped: bool,
) -> PoolResult:
    """The result of a pool that has been run to its end. Its setup must keep latencies."""
    outcomes, latencies, each = pool.outcomes, pool.outcomes.latencies, pool.setup.sampled_one_in
    if latencies is None:
        raise ValueError(f"pool {pool.setup.name} was set up without keeps_latencies")
    replica_hours = cost.replica_seconds / 3600.0
    accelerator_hours = replica_hours * pool.setup.profile.accelerators_per_replica
    cost_dollars = accelerator_hours * dollars_per_accelerator_hour
    if cost.nodes is not None:
        accelerator_hours, cost_dollars = cost.nodes.accelerator_hours, cost.nodes.cost_dollars
    return PoolResult(
        policy=policy,
        seed=seed,
        started_at_seconds=started_at_seconds,
        ended_at_seconds=cost.at_seconds,
        requests=outcomes.arrived * each,
        met=outcomes.met * each,
        rejected=outcomes.rejected * each,
        dropped=outcomes.dropped * each,
        unfinished=pool.requests_in_flight,
        time_to_first_token=quantiles(np.frombuffer(latencies.first_token, dtype=np.float32)),
        inter_token_latency=quantiles(np.frombuffer(latencies.token_gap, dtype=np.float32)),
        replica_hours=replica_hours,
        accelerator_hours=accelerator_hours,
        cost_dollars=cost_dollars,
        tokens=outcomes.finished_tokens * each,
        preemptions=pool.preemptions,
        max_replicas=max((point.wanted for point in points), default=pool.spec_replicas),
        changes=tuple(pool.count_changes),
        points=points,
        latencies=latencies,
        was_stopped=was_stopped,
        nodes=cost.nodes,
        lost_to_reclaims=outcomes.lost_to_reclaims * each,
    )
