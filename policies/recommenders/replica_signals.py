"""What is known of a signal over all replicas, and what do the replicas that are not seen stand for?"""

from __future__ import annotations

import math
from typing import NamedTuple

from policies.observation import MetricsObservation, ObservationUnavailable
from policies.reasons import Reason
from policies.recommendation import NoOpinion
from policies.signals import PoolSignal, Signal

# Unseen replicas are taken at their peers' mean, but a few peers may not speak for many: at most a quarter is added.
LARGEST_EXTRAPOLATION = 1.25


def known_signal(metrics: MetricsObservation | ObservationUnavailable, signal: Signal) -> PoolSignal | NoOpinion:
    """The signal of a pool where at least one replica's value is known (fresh or held), else why there is none.

    A sum that is no number, infinite or negative is unknown too, whatever it was made of.
    """
    if isinstance(metrics, ObservationUnavailable):
        return NoOpinion(Reason.SIGNAL_UNKNOWN, metrics.message)
    pool_signal = metrics.signals.get(signal)
    if pool_signal is None:
        return NoOpinion(Reason.SIGNAL_ABSENT, f"the engine exposes no {signal.value}")
    if pool_signal.known_replicas == 0:
        asked = pool_signal.unknown_replicas
        why = f"{signal.value} is unknown for all {asked} ready replicas" if asked else "no replica is ready"
        return NoOpinion(Reason.SIGNAL_UNKNOWN, why)
    if not 0.0 <= pool_signal.total < math.inf:
        return NoOpinion(Reason.SIGNAL_UNKNOWN, f"{signal.value} adds up to {pool_signal.total}, which is no quantity")
    return pool_signal


class Estimate(NamedTuple):
    """A sum over all ready replicas, seen or not: `likely` judges growth, `cautious` (never less) judges shrinking."""

    likely: float
    cautious: float


def over_all_replicas(signal: PoolSignal, full: float) -> Estimate:
    """The signal's sum with unknown replicas at their peers' mean (likely) and as full as they may be (cautious).

    `full` is what a replica holds when it has its share of load, in the signal's unit; peers that hold more raise it.
    A held value is as good as a fresh one for growth, and as good as unknown for shrinking.
    What replicas hold that are not ready, or stand still, counts for shrinking alone: an overloaded engine fails its
    probes and its load is not gone, but what piles up on one replica is not the pool's load either.
    3 replicas at 10, 20 and 30, a fourth unknown, full = 25: likely 60 x 4/3, at most 60 x 1.25 = 75; cautious 60 + 30.
    """
    unseen_replicas = signal.unknown_replicas + signal.held_replicas
    if unseen_replicas == 0:
        return Estimate(signal.total, signal.total + signal.unsteady_total)
    likely = signal.total * min(signal.ready_replicas / signal.known_replicas, LARGEST_EXTRAPOLATION)
    seen = signal.total - signal.held_total
    cautious = max(likely, seen + unseen_replicas * max(full, signal.maximum))
    return Estimate(likely, cautious + signal.unsteady_total)
