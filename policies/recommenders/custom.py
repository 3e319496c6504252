"""How many replicas does a user's own quantity ask for?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from policies.hpa.metric_proposal import milli_target, milli_value
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.parameter_model import ParameterModel
from policies.reasons import Reason
from policies.recommendation import NoOpinion, ScalingRecommendation, abstention, vote
from policies.recommenders.query_values import known_query

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput  # it holds the parameters below, so it cannot be imported here


class CustomParameters(ParameterModel):
    """Any PromQL, with the meaning of a HorizontalPodAutoscaler's External metric with an AverageValue target."""

    name: str = Field(
        min_length=1,
        max_length=63,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="Names the vote; lower case letters, digits and dashes, unique within the policy.",
    )
    query: str = Field(min_length=1, max_length=4096, description="PromQL; the sum over its series is the quantity.")
    per_replica: float = Field(
        ge=0.001,
        le=1e12,
        description="The quantity that justifies one replica, in its own unit. 0.001 is the least that HPA can tell.",
    )


def custom_query_name(parameters: CustomParameters) -> str:
    """The vote's name, and the name that the query's answer is found under: `custom/NAME`."""
    return f"custom/{parameters.name}"


def recommend_custom(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """One vote a query: replicas = value / perReplica, both in thousandths, as an External metric is read."""
    metrics = decision_input.metrics
    return tuple(_recommend(parameters, metrics) for parameters in decision_input.parameters.signals.custom)


def _recommend(
    parameters: CustomParameters, metrics: MetricsObservation | ObservationUnavailable
) -> ScalingRecommendation:
    name = custom_query_name(parameters)
    value = known_query(metrics, name)
    if isinstance(value, NoOpinion):
        return abstention(name, value, reads_replicas=False)
    return vote(
        name,
        Reason.CUSTOM,
        milli_value(value),
        milli_target(parameters.per_replica),
        "{} ({} at {} a replica) needs",
        {"value": value, "valuePerReplica": parameters.per_replica},
        terms=(parameters.name, value, parameters.per_replica),
        reads_replicas=False,
    )
