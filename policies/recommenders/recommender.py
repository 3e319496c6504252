"""Which votes are there? The table of all of them, in the order that a reader meets them."""

from __future__ import annotations

from typing import Protocol

from policies.decision_input import DecisionInput
from policies.recommendation import ScalingRecommendation
from policies.recommenders.custom import recommend_custom
from policies.recommenders.forecast import recommend_forecast
from policies.recommenders.inter_token_latency_divergence import recommend_inter_token_latency_divergence
from policies.recommenders.kv_cache import recommend_kv_cache
from policies.recommenders.load_rise import recommend_load_rise
from policies.recommenders.pending_requests import recommend_pending_requests
from policies.recommenders.recurring_bursts import recommend_recurring_bursts
from policies.recommenders.schedule import recommend_schedule
from policies.recommenders.token_rate import recommend_token_rate
from policies.recommenders.tokens_in_flight import recommend_tokens_in_flight
from policies.recommenders.waiting_requests import recommend_waiting_requests
from policies.recommenders.work_rate import recommend_work_rate

__all__ = ["RECOMMENDERS", "Recommender", "ScalingRecommendation"]


class Recommender(Protocol):
    """A pure function from the input to its votes: none where the policy does not use it, several only for `custom`."""

    def __call__(self, decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
        """The votes; one without an opinion says why."""
        ...


# Where two ask for the same count, the earlier one is named as the binding one.
RECOMMENDERS: dict[str, Recommender] = {
    "tokensInFlight": recommend_tokens_in_flight,
    "tokenRate": recommend_token_rate,
    "workRate": recommend_work_rate,
    "loadRise": recommend_load_rise,
    "kvCache": recommend_kv_cache,
    "waitingRequests": recommend_waiting_requests,
    "interTokenLatencyDivergence": recommend_inter_token_latency_divergence,
    "pendingRequests": recommend_pending_requests,
    "custom": recommend_custom,
    "recurringBursts": recommend_recurring_bursts,
    "schedule": recommend_schedule,
    "forecast": recommend_forecast,
}
