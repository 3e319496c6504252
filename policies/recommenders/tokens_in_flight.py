"""How many replicas hold the tokens that are in flight now?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from policies.capacity.learned_capacity import LearnedCapacity
from policies.load.work_rate import WorkRate, work_rate
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.parameter_model import ParameterModel
from policies.reasons import Reason
from policies.recommendation import NoOpinion, ScalingRecommendation, abstention, vote
from policies.recommenders.replica_signals import Estimate, known_signal, over_all_replicas
from policies.signals import PoolSignal, Signal

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput  # it holds the parameters below, so it cannot be imported here


class TokensInFlightParameters(ParameterModel):
    """Tokens of requests that are in the engines or wait for them."""

    per_replica: float | None = Field(
        default=None,
        gt=0,
        le=1e12,
        description=(
            "Tokens in flight that one replica should carry. Null (default): half of what it holds at the objectives, "
            "as far as that is learned, else half of the KV cache capacity in tokens that the engine reports."
        ),
    )


NAME = "tokensInFlight"
_WITHOUT_A_WORD = TokensInFlightParameters()

# Tokens in flight grow faster than the work that arrives: at the safe utilisation of 0.70 a replica holds about half
# of what it holds at its objectives. Where that is not learned, it is taken to be its KV cache (mean KV usage at a
# 50 ms token latency lies between 0.33 and 0.66 for prompts of 750 to 4300 tokens).
SAFE_SHARE_OF_CAPACITY = 0.5
UTILIZATION_AT_THAT_SHARE = 0.70  # the safe utilisation at which the share is a half
# What has piled up is gone when the replicas ordered for it serve. So many times what the arrivals ask for is enough to
# work it off, and for arrivals that take more than is thought.
MOST_OF_WORK = 1.75


def recommend_tokens_in_flight(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """Replicas = W / perReplica, where W is what the engines hold and what waits for them, in tokens.

    W = KV tokens in use + waiting x (I (1 - h) + O / 2), with I and O the mean prompt and generated tokens of a request
    and h the share of prompt tokens found in the prefix cache: 192 000 + 12 x (2000 x 0.8 + 150) = 213 000.
    An engine without KV geometry: W = (running + waiting) x (I + O / 2).
    With the learned share it grows the pool to at most 1.75 times the replicas of the work rate, where all replicas'
    arrivals are known.
    No opinion where neither can be known, or where no perReplica is set, none is learned and the engine reports no
    capacity. It votes where the policy names it, and where it has objectives. An oversized pool holds fewer tokens than
    its load is worth, so this vote alone must not shrink it: beside it the rate of work votes, or is unknown.
    """
    parameters = decision_input.parameters.signals.tokens_in_flight
    if parameters is None:
        if decision_input.parameters.objectives is None:
            return ()
        parameters = _WITHOUT_A_WORD
    metrics = decision_input.metrics
    if isinstance(metrics, ObservationUnavailable):
        return (abstention(NAME, NoOpinion(Reason.SIGNAL_UNKNOWN, metrics.message)),)
    per_replica = parameters.per_replica or _safe_tokens(metrics, decision_input.learned_capacity)
    if isinstance(per_replica, NoOpinion):
        return (abstention(NAME, per_replica),)
    tokens = _tokens_in_flight(metrics, per_replica)
    if isinstance(tokens, NoOpinion):
        return (abstention(NAME, tokens),)
    if parameters.per_replica is None and decision_input.learned_capacity is not None:
        tokens = _bounded(tokens, per_replica, decision_input, metrics, decision_input.learned_capacity)
    return (
        vote(
            NAME,
            Reason.TOKENS_IN_FLIGHT,
            tokens.likely,
            per_replica,
            "tokens in flight ({} in all, {} is a replica's share) need",
            {"tokensInFlight": tokens.likely, "tokensPerReplica": per_replica},
            terms=(tokens.likely, per_replica),
            cautious_demand=tokens.cautious,
        ),
    )


def _safe_tokens(metrics: MetricsObservation, learned: LearnedCapacity | None) -> float | NoOpinion:
    """0.5 C u / 0.70 as learned: 0.5 x 54 000 = 27 000 at u = 0.70; else half of the KV cache."""
    if learned is not None:
        return SAFE_SHARE_OF_CAPACITY * learned.tokens_in_flight * learned.safe_utilization / UTILIZATION_AT_THAT_SHARE
    capacity = known_signal(metrics, Signal.KV_CACHE_CAPACITY_TOKENS)
    if isinstance(capacity, NoOpinion):
        return NoOpinion(capacity.reason, f"no perReplica is set and {capacity.message}")
    if capacity.mean <= 0:
        return NoOpinion(Reason.SIGNAL_UNKNOWN, "no perReplica is set and the engine reports a KV cache of no tokens")
    return SAFE_SHARE_OF_CAPACITY * capacity.mean


def _bounded(
    tokens: Estimate,
    per_replica: float,
    decision_input: DecisionInput,
    metrics: MetricsObservation,
    learned: LearnedCapacity,
) -> Estimate:
    """The tokens, as far as they make the pool grow to no more than the bound; the present count is always within."""
    present = float(decision_input.replicas.spec)
    if tokens.cautious <= per_replica * present:
        return tokens  # what bounds it need not be known
    most = _most_replicas(metrics, learned)
    if most is None:
        return tokens
    most_tokens = per_replica * max(most, present)
    return Estimate(min(tokens.likely, most_tokens), min(tokens.cautious, most_tokens))


def _most_replicas(metrics: MetricsObservation, learned: LearnedCapacity) -> float | None:
    """1.75 times those that the work rate asks for; None where some replica's arrivals are not known."""
    arrived = known_signal(metrics, Signal.REQUESTS_ARRIVED)
    if isinstance(arrived, NoOpinion) or arrived.unknown_replicas or arrived.held_replicas:
        return None
    work = work_rate(metrics, learned)
    return MOST_OF_WORK * work.largest[0] / learned.safe_utilization if isinstance(work, WorkRate) else None


def _tokens_in_flight(metrics: MetricsObservation, full: float) -> Estimate | NoOpinion:
    used = known_signal(metrics, Signal.KV_CACHE_USED_TOKENS)
    running = known_signal(metrics, Signal.RUNNING_REQUESTS)
    waiting = known_signal(metrics, Signal.WAITING_REQUESTS)
    if isinstance(waiting, NoOpinion):
        return waiting
    if isinstance(used, PoolSignal):
        held = over_all_replicas(used, full)
        return _with_waiting(held, waiting, _tokens_of_a_waiting_request(metrics, used, running))
    if used.reason is Reason.SIGNAL_UNKNOWN:
        return used
    if isinstance(running, NoOpinion):
        return running
    return _from_request_counts(metrics, running, waiting, full)


def _from_request_counts(
    metrics: MetricsObservation, running: PoolSignal, waiting: PoolSignal, full: float
) -> Estimate | NoOpinion:
    prompt, generated = metrics.prompt_tokens_per_request, metrics.generation_tokens_per_request
    if prompt is None or generated is None:
        if running.total + waiting.total == 0:
            return over_all_replicas(running, full)
        return NoOpinion(Reason.SIGNAL_UNKNOWN, "the tokens of a request are unknown: too few requests have finished")
    tokens = prompt + generated / 2
    held = over_all_replicas(running, full / tokens if tokens > 0 else full)
    return _with_waiting(Estimate(held.likely * tokens, held.cautious * tokens), waiting, tokens)


def _with_waiting(held: Estimate, waiting: PoolSignal, tokens_of_a_request: float | None) -> Estimate | NoOpinion:
    if waiting.total == 0:
        return held
    if tokens_of_a_request is None:
        return NoOpinion(Reason.SIGNAL_UNKNOWN, "the tokens of a waiting request are unknown: too few have finished")
    queued = over_all_replicas(waiting, full=0.0)  # a full replica is in `held`; here only its peers' longest queue
    return Estimate(
        held.likely + queued.likely * tokens_of_a_request, held.cautious + queued.cautious * tokens_of_a_request
    )


def _tokens_of_a_waiting_request(
    metrics: MetricsObservation, used: PoolSignal, running: PoolSignal | NoOpinion
) -> float | None:
    """I (1 - h) + O / 2; before enough have finished, what a running request holds; None where neither is known."""
    prompt, generated = metrics.prompt_tokens_per_request, metrics.generation_tokens_per_request
    if prompt is not None and generated is not None:
        return prompt * (1.0 - (metrics.prefix_cache_hit_share or 0.0)) + generated / 2
    if isinstance(running, PoolSignal) and running.mean > 0:
        return used.mean / running.mean
    return None
