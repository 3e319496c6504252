"""How many replicas does the rate of tokens ask for?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from policies.parameter_model import ParameterModel
from policies.reasons import Reason
from policies.recommendation import NoOpinion, ScalingRecommendation, abstention, vote
from policies.recommenders.replica_signals import known_signal, over_all_replicas
from policies.signals import Signal

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput  # it holds the parameters below, so it cannot be imported here


class TokenRateParameters(ParameterModel):
    """Prompt and generated tokens per second."""

    per_replica_per_second: float = Field(
        gt=0,
        le=1e12,
        description="Prompt plus generated tokens per second that one replica should do.",
    )


NAME = "tokenRate"


def recommend_token_rate(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """Replicas = (prompt tokens + generated tokens per second, over the last minute) / perReplicaPerSecond.

    What is processed, not what arrives: it stops growing where the replicas are saturated, so a pool needs another
    vote beside it that sees the queue. No opinion unless both counters are known.
    """
    parameters = decision_input.parameters.signals.token_rate
    if parameters is None:
        return ()
    prompt = known_signal(decision_input.metrics, Signal.PROMPT_TOKENS)
    generated = known_signal(decision_input.metrics, Signal.GENERATION_TOKENS)
    if isinstance(prompt, NoOpinion):
        return (abstention(NAME, prompt),)
    if isinstance(generated, NoOpinion):
        return (abstention(NAME, generated),)
    full = parameters.per_replica_per_second
    prompts, generations = over_all_replicas(prompt, full), over_all_replicas(generated, full=0.0)
    rate = prompts.likely + generations.likely
    return (
        vote(
            NAME,
            Reason.TOKEN_RATE,
            rate,
            full,
            "token rate ({} a second at {} a replica) needs",
            {
                "promptTokensPerSecond": prompts.likely,
                "generationTokensPerSecond": generations.likely,
                "tokensPerSecondPerReplica": full,
            },
            terms=(rate, full),
            cautious_demand=prompts.cautious + generations.cautious,
        ),
    )
