"""How many replicas' time do the requests take that arrive now? It keeps growing where the replicas are saturated."""

from __future__ import annotations

from typing import NamedTuple

from policies.capacity.learned_capacity import LearnedCapacity
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.reasons import Reason
from policies.recommendation import NoOpinion
from policies.recommenders.replica_signals import Estimate, known_signal, over_all_replicas
from policies.signals import Signal

# Half a minute tells of a burst sooner, and errs more: it asks for a tenth less.
RECENT_SHARE = 0.9


class RequestShape(NamedTuple):
    """The mean request of a pool: tokens of its prompt, those of them that are computed, tokens of its answer."""

    prompt_tokens: float
    computed_prompt_tokens: float  # the rest was found in the prefix cache
    generated_tokens: float


class WorkRate(NamedTuple):
    """Work that arrives, in replica-seconds per second, over the last minute and the last half.

    Of unseen replicas see `Estimate`. `arrivals_per_second` are requests, None where only tokens are known.
    """

    last_minute: Estimate
    last_half_minute: Estimate
    arrivals_per_second: float | None
    seconds_per_request: float | None

    @property
    def largest(self) -> tuple[float, float]:
        """max(g60, 0.9 g30), as it judges growth and as it judges shrinking."""
        minute, recently = self.last_minute, self.last_half_minute
        return (
            max(minute.likely, RECENT_SHARE * recently.likely),
            max(minute.cautious, RECENT_SHARE * recently.cautious),
        )


def request_shape(metrics: MetricsObservation) -> RequestShape | None:
    """The mean request; None until enough requests have finished."""
    prompt, generated = metrics.prompt_tokens_per_request, metrics.generation_tokens_per_request
    if prompt is None or generated is None:
        return None
    return RequestShape(prompt, prompt * (1.0 - (metrics.prefix_cache_hit_share or 0.0)), generated)


def work_rate(metrics: MetricsObservation | ObservationUnavailable, capacity: LearnedCapacity) -> WorkRate | NoOpinion:
    """g = lambda x (I (1 - h) / V_P + O / V_D): 8 requests/s x (2000 x 0.8 / 16 000 + 300 / 750) = 4.0.

    Requests of which too few have finished to tell their size are taken by the tokens that the engines process
    instead; so are those of an engine that does not tell what waits. An unseen replica's full share is its safe
    utilisation.
    """
    if isinstance(metrics, ObservationUnavailable):
        return NoOpinion(Reason.SIGNAL_UNKNOWN, metrics.message)
    shape = request_shape(metrics)
    if shape is None:
        return _from_processed_tokens(metrics, capacity)
    seconds = capacity.work_seconds(shape.computed_prompt_tokens, shape.generated_tokens)
    arrived = known_signal(metrics, Signal.REQUESTS_ARRIVED)
    if isinstance(arrived, NoOpinion):
        return _from_processed_tokens(metrics, capacity) if arrived.reason is Reason.SIGNAL_ABSENT else arrived
    recently = known_signal(metrics, Signal.REQUESTS_ARRIVED_RECENTLY)
    full = capacity.safe_utilization / seconds if seconds > 0 else 0.0
    minute = over_all_replicas(arrived, full)
    half = minute if isinstance(recently, NoOpinion) else over_all_replicas(recently, full)
    return WorkRate(_times(minute, seconds), _times(half, seconds), minute.likely, seconds)


def tokens_per_second_of_a_replica(metrics: MetricsObservation, capacity: LearnedCapacity) -> float | None:
    """Prompt and generated tokens per second, cached ones included, of requests of the pool's present shape that one
    replica may be given: u (I + O) / (I (1 - h) / V_P + O / V_D) = 0.70 x 2300 / 0.5 = 3220. None without a shape.
    """
    shape = request_shape(metrics)
    if shape is None:
        return None
    seconds = capacity.work_seconds(shape.computed_prompt_tokens, shape.generated_tokens)
    tokens = shape.prompt_tokens + shape.generated_tokens
    return capacity.safe_utilization * tokens / seconds if seconds > 0 else None


def _times(estimate: Estimate, factor: float) -> Estimate:
    return Estimate(estimate.likely * factor, estimate.cautious * factor)


def _from_processed_tokens(metrics: MetricsObservation, capacity: LearnedCapacity) -> WorkRate | NoOpinion:
    prompts = known_signal(metrics, Signal.PROMPT_TOKENS)
    generated = known_signal(metrics, Signal.GENERATION_TOKENS)
    if isinstance(prompts, NoOpinion):
        return prompts
    if isinstance(generated, NoOpinion):
        return generated
    computed_share = 1.0 - (metrics.prefix_cache_hit_share or 0.0)
    full_rate = capacity.safe_utilization * capacity.decode_tokens_per_second
    prompt = _times(over_all_replicas(prompts, 0.0), computed_share / capacity.prefill_tokens_per_second)
    answers = _times(over_all_replicas(generated, full_rate), 1.0 / capacity.decode_tokens_per_second)
    work = Estimate(prompt.likely + answers.likely, prompt.cautious + answers.cautious)
    return WorkRate(work, work, None, None)
