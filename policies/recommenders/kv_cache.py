"""How many replicas keep the KV cache below its limit?"""

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


class KVCacheParameters(ParameterModel):
    """The share of the KV cache in use."""

    headroom_percent: float = Field(
        default=15,
        ge=0,
        le=95,
        description=(
            "Percent of the KV cache that should stay free. Default 15: preemptions begin where none is free. A "
            "tokensInFlight without perReplica asks for more long before: this is for policies without it, or with a "
            "perReplica of more than 85 percent of the cache."
        ),
    )


NAME = "kvCache"


def recommend_kv_cache(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """Replicas = sum of KV usage over the replicas / (1 - headroom): 4 x 0.80 / 0.85 = 3.76."""
    parameters = decision_input.parameters.signals.kv_cache
    if parameters is None:
        return ()
    usage = known_signal(decision_input.metrics, Signal.KV_CACHE_USAGE)
    if isinstance(usage, NoOpinion):
        return (abstention(NAME, usage),)
    used = over_all_replicas(usage, full=1.0)
    highest = 1.0 - parameters.headroom_percent / 100.0
    return (
        vote(
            NAME,
            Reason.KV_CACHE,
            used.likely,
            highest,
            "KV cache (mean use {} %, at most {} %) needs",
            {"kvCacheUsageSum": used.likely, "kvCacheUsagePerReplica": highest},
            terms=(usage.mean * 100, highest * 100),
            cautious_demand=used.cautious,
        ),
    )
