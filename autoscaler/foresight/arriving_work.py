"""How much work arrives at a pool? What its replicas do, and what is left waiting more than before.

Tokens that are processed end at what the replicas can do; those that arrive do not:

    arriving = processed + change of (waiting + held back) x (I + O) + change of running x O / 2

per second, with I and O the mean prompt and generated tokens of a request: of a waiting request all is still to be
done, of a running one half of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.observation import MetricsObservation, ObservationUnavailable, ReplicaCounts
from policies.recommendation import NoOpinion
from policies.recommenders.pending_requests import PENDING_REQUESTS
from policies.recommenders.query_values import known_query
from policies.recommenders.replica_signals import known_signal, over_all_replicas
from policies.sight import LEAST_COVERAGE
from policies.signals import Signal


@dataclass(frozen=True, slots=True)
class WorkReading:
    """One look at a pool: tokens processed per second (prompt and generated), and the requests not yet done with.

    `waiting_requests` are in the engines' queues or held back by a gateway. The sizes are None before enough requests
    have finished.
    """

    processed_per_second: float
    waiting_requests: float
    running_requests: float
    prompt_tokens_per_request: float | None
    generation_tokens_per_request: float | None


def read_work(metrics: MetricsObservation | ObservationUnavailable, replicas: ReplicaCounts) -> WorkReading | None:
    """The pool's work now; None where it cannot be told. A pool at zero replicas does nothing, and may have a queue."""
    if isinstance(metrics, ObservationUnavailable):
        return None
    pending = known_query(metrics, PENDING_REQUESTS)
    held_back = 0.0 if isinstance(pending, NoOpinion) else pending
    prompt, generated = metrics.prompt_tokens_per_request, metrics.generation_tokens_per_request
    if replicas.spec == 0 and metrics.ready_replicas == 0:
        return WorkReading(0.0, held_back, 0.0, prompt, generated)
    if metrics.coverage < LEAST_COVERAGE:
        return None
    processed = [_sum(metrics, signal) for signal in (Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS)]
    if processed[0] is None or processed[1] is None:
        return None
    waiting, running = _sum(metrics, Signal.WAITING_REQUESTS), _sum(metrics, Signal.RUNNING_REQUESTS)
    return WorkReading(processed[0] + processed[1], (waiting or 0.0) + held_back, running or 0.0, prompt, generated)


def arriving_per_second(
    mean_processed_per_second: float, first: WorkReading, last: WorkReading, seconds: float
) -> float:
    """What arrived per second between two readings `seconds` apart, never negative.

    Where the sizes of requests are not known, what the replicas have done is all that is known.
    """
    prompt, generated = last.prompt_tokens_per_request, last.generation_tokens_per_request
    if prompt is None or generated is None or seconds <= 0:
        return mean_processed_per_second
    left = (last.waiting_requests - first.waiting_requests) * (prompt + generated)
    left += (last.running_requests - first.running_requests) * generated / 2
    return max(0.0, mean_processed_per_second + left / seconds)


def _sum(metrics: MetricsObservation, signal: Signal) -> float | None:
    found = known_signal(metrics, signal)
    return None if isinstance(found, NoOpinion) else over_all_replicas(found, full=0.0).likely
