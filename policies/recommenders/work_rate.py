"""How many replicas does the work ask for that arrives, at what this pool's replicas have been seen to do?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.load.work_rate import WorkRate, work_rate
from policies.observation import MetricsObservation
from policies.reasons import Reason
from policies.recommendation import NoOpinion, ScalingRecommendation, abstention, vote
from policies.recommenders.replica_signals import known_signal
from policies.signals import PoolSignal, Signal

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput  # it holds the parameters, so it cannot be imported here

NAME = "workRate"


def recommend_work_rate(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """Replicas = max(g60, 0.9 g30) / u, where g is the work that arrives and u the safe utilisation: 4.0 / 0.70 = 5.71.

    It votes where the policy has objectives and states no tokenRate of its own. While the capacity is not learned yet
    it is unknown, which lets other votes grow the pool and none shrink it; a pool without any request needs none.
    """
    parameters = decision_input.parameters
    if parameters.objectives is None or parameters.signals.token_rate is not None:
        return ()
    metrics, capacity = decision_input.metrics, decision_input.learned_capacity
    if capacity is None:
        return (_not_learned(decision_input),)
    work = work_rate(metrics, capacity)
    if isinstance(work, NoOpinion):
        return (abstention(NAME, work),)
    likely, cautious = work.largest
    utilization = capacity.safe_utilization
    words, terms = _in_words(work, likely)
    return (
        vote(
            NAME,
            Reason.WORK_RATE,
            likely,
            utilization,
            f"work rate ({words} at {{}} a replica) needs",
            {
                "workPerSecondLastMinute": work.last_minute.likely,
                "workPerSecondLastHalfMinute": work.last_half_minute.likely,
                "safeUtilization": utilization,
            },
            terms=(*terms, utilization),
            cautious_demand=cautious,
        ),
    )


def _in_words(work: WorkRate, likely: float) -> tuple[str, tuple[float, ...]]:
    """Words for the work, and their terms."""
    if work.arrivals_per_second is None or work.seconds_per_request is None:
        return "{} replicas' time", (likely,)
    words = "{} replicas' time: {} requests a second take {} s of one each"
    return words, (likely, work.arrivals_per_second, work.seconds_per_request)


def _not_learned(decision_input: DecisionInput) -> ScalingRecommendation:
    metrics = decision_input.metrics
    if isinstance(metrics, MetricsObservation):
        absent = next(
            (s for s in (Signal.RUNNING_REQUESTS, Signal.GENERATION_TOKENS) if s not in metrics.signals), None
        )
        if absent is not None:
            why = f"nothing can be learned of a replica: the engine exposes no {absent.value}"
            return abstention(NAME, NoOpinion(Reason.SIGNAL_ABSENT, why))
        if _is_idle(metrics):
            return vote(NAME, Reason.WORK_RATE, 0.0, 1.0, "work rate (no requests) needs", {})
        return abstention(NAME, NoOpinion(Reason.SIGNAL_UNKNOWN, "the capacity of a replica is not learned yet"))
    return abstention(NAME, NoOpinion(Reason.SIGNAL_UNKNOWN, metrics.message))


def _is_idle(metrics: MetricsObservation) -> bool:
    needed = (Signal.RUNNING_REQUESTS, Signal.WAITING_REQUESTS, Signal.GENERATION_TOKENS)
    known = [known_signal(metrics, signal) for signal in needed]
    return all(
        isinstance(signal, PoolSignal) and signal.total == 0 and signal.fresh_replicas == metrics.ready_replicas
        for signal in known
    )
