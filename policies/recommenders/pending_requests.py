"""How many replicas do the requests ask for that have not reached an engine yet?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from policies.parameter_model import ParameterModel
from policies.reasons import Reason
from policies.recommendation import NoOpinion, ScalingRecommendation, abstention, vote
from policies.recommenders.query_values import known_query

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput  # it holds the parameters below, so it cannot be imported here


class PendingRequestsParameters(ParameterModel):
    """Requests that a gateway holds back: seen without any replica, so they also wake a pool from zero."""

    query: str = Field(
        min_length=1, max_length=4096, description="PromQL; the sum over its series is the pending requests."
    )
    per_replica: float = Field(gt=0, le=1e9, description="Pending requests that justify one replica.")


PENDING_REQUESTS = "pendingRequests"


def recommend_pending_requests(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """Replicas = pending requests / perReplica. It needs no replica, so it acts at zero and beside dead engines."""
    parameters = decision_input.parameters.signals.pending_requests
    if parameters is None:
        return ()
    pending = known_query(decision_input.metrics, PENDING_REQUESTS)
    if isinstance(pending, NoOpinion):
        return (abstention(PENDING_REQUESTS, pending, reads_replicas=False),)
    per_replica = parameters.per_replica
    return (
        vote(
            PENDING_REQUESTS,
            Reason.PENDING_REQUESTS,
            pending,
            per_replica,
            "pending requests ({} at {} a replica) need",
            {"pendingRequests": pending, "pendingRequestsPerReplica": per_replica},
            terms=(pending, per_replica),
            reads_replicas=False,
        ),
    )
