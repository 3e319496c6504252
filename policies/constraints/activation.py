"""When does a pool go to sleep at zero replicas, and when does it wake up?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.constraints.constraint import Limited
from policies.observation import MetricsObservation
from policies.reasons import Reason
from policies.recommendation import ScalingRecommendation
from policies.signals import PoolSignal, Signal
from policies.wording import duration

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput
    from policies.history import ScalingHistory
    from policies.situation import Situation

# A cold start of minutes is paid for at every waking, so a pool goes to sleep only after a pause that lasts.
IDLE_SECONDS_BEFORE_ZERO = 600.0
# These must be seen, for every ready replica, and be zero. Counters prove that nothing came between two samples.
PROOFS_OF_IDLENESS = (Signal.RUNNING_REQUESTS, Signal.WAITING_REQUESTS, Signal.REQUESTS_FINISHED)


def idle_since(
    decision_input: DecisionInput, history: ScalingHistory, recommendations: tuple[ScalingRecommendation, ...]
) -> float | None:
    """Since when it is proven that there are no requests; None where there are some, or where it is not known."""
    metrics = decision_input.metrics
    if not isinstance(metrics, MetricsObservation):
        return None
    if not all(_is_proven_zero(metrics.signals.get(signal)) for signal in PROOFS_OF_IDLENESS):
        return None
    elsewhere = (vote for vote in recommendations if not (vote.reads_replicas or vote.is_exact or vote.is_forecast))
    if any(vote.replicas != 0.0 for vote in elsewhere):
        return None
    return decision_input.now_seconds if history.idle_since_seconds is None else history.idle_since_seconds


def _is_proven_zero(signal: PoolSignal | None) -> bool:
    if signal is None or signal.unsteady_total > 0.0:
        return False
    return signal.fresh_replicas == signal.ready_replicas > 0 and signal.total == 0.0


def limit_last_replica(situation: Situation, replicas: int) -> Limited:
    """Keeps one replica until the pool has been idle for ten minutes; counts above zero pass."""
    if replicas > 0 or situation.bounds.minimum > 0:
        return Limited(replicas, Reason.NOT_LIMITED, "")
    since = situation.idle_since_seconds
    if since is None:
        return Limited(1, Reason.RECENTLY_ACTIVE, "kept at 1: it is not proven that there are no requests")
    idle_seconds = situation.now_seconds - since
    if idle_seconds < IDLE_SECONDS_BEFORE_ZERO:
        message = f"kept at 1: idle for {duration(idle_seconds)} of {duration(IDLE_SECONDS_BEFORE_ZERO)}"
        return Limited(1, Reason.RECENTLY_ACTIVE, message)
    return Limited(0, Reason.SCALED_TO_ZERO, f"no request for {duration(idle_seconds)}")


def wake_up(situation: Situation, replicas: int) -> Limited:
    """From zero straight to what the votes that need no replica ask for: no rate, no window, no tolerance."""
    binding = situation.binding
    if binding is None:
        return Limited(replicas, Reason.NOT_LIMITED, "nothing is known that could ask for a replica")
    if replicas == 0:
        return Limited(replicas, Reason.SCALED_TO_ZERO, "asleep: nothing asks for a replica")
    return Limited(replicas, binding.reason, f"woken up by {binding.recommender}")


def leave_alone(situation: Situation, replicas: int) -> Limited:
    """Zero: a target that stands at zero and that we did not put there is switched off by somebody, and stays so."""
    del situation, replicas
    return Limited(0, Reason.SCALING_DISABLED, "the target stands at zero and it was not put there by this scaler")
