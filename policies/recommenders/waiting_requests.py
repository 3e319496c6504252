"""How many replicas does the queue inside the engines ask for?"""

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


class WaitingRequestsParameters(ParameterModel):
    """Requests that have reached an engine and wait for room in its batch."""

    per_replica: float = Field(
        gt=0, le=1e9, description="Waiting requests that one replica may have. No default: a queue is a choice."
    )


NAME = "waitingRequests"


def recommend_waiting_requests(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """Replicas = waiting requests / perReplica.

    The queue is empty until the latency objective is lost, so this vote acts late; it is here because people know it.
    """
    parameters = decision_input.parameters.signals.waiting_requests
    if parameters is None:
        return ()
    waiting = known_signal(decision_input.metrics, Signal.WAITING_REQUESTS)
    if isinstance(waiting, NoOpinion):
        return (abstention(NAME, waiting),)
    per_replica = parameters.per_replica
    requests = over_all_replicas(waiting, full=per_replica)
    return (
        vote(
            NAME,
            Reason.WAITING_REQUESTS,
            requests.likely,
            per_replica,
            "waiting requests ({} at {} a replica) need",
            {"waitingRequests": requests.likely, "waitingRequestsPerReplica": per_replica},
            terms=(requests.likely, per_replica),
            cautious_demand=requests.cautious,
        ),
    )
