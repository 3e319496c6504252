"""How many replicas does a user's own quantity ask for?"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field, model_validator

from policies.hpa.metric_proposal import milli_target, milli_value
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.parameter_model import CelRule, ParameterModel
from policies.reasons import Reason
from policies.recommendation import NoOpinion, ScalingRecommendation, abstention, vote
from policies.recommenders.query_values import known_query

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput  # it holds the parameters below, so it cannot be imported here


_ONE_TARGET = "give perReplica or perPool, one of them"


class CustomParameters(ParameterModel):
    """Any PromQL, with the meaning of a HorizontalPodAutoscaler's External metric."""

    name: str = Field(
        min_length=1,
        max_length=63,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="Names the vote; lower case letters, digits and dashes, unique within the policy.",
    )
    query: str = Field(min_length=1, max_length=4096, description="PromQL; the sum over its series is the quantity.")
    per_replica: float | None = Field(
        default=None,
        ge=0.001,
        le=1e12,
        description=(
            "The quantity that justifies one replica, in its own unit: an AverageValue target of HPA. 0.001 is the "
            "least that HPA can tell."
        ),
    )
    per_pool: float | None = Field(
        default=None,
        ge=0.001,
        le=1e12,
        description=(
            "In place of perReplica: what the quantity should be, however many replicas there are (a share, a "
            "latency): a Value target of HPA. The ready replicas are multiplied by quantity / perPool."
        ),
    )

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("has(self.perReplica) != has(self.perPool)", _ONE_TARGET, ".perReplica"),
    )

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if (self.per_replica is None) == (self.per_pool is None):
            raise ValueError(_ONE_TARGET)
        return self


def custom_query_name(parameters: CustomParameters) -> str:
    """The vote's name, and the name that the query's answer is found under: `custom/NAME`."""
    return f"custom/{parameters.name}"


def recommend_custom(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """One vote a query: replicas = value / perReplica, or the ready replicas x value / perPool.

    Both are in thousandths, as an External metric is read: 30 sessions at 7 a replica are 30 000 / 7000 = 4.29, and a
    latency of 3 where 2 should be asks for 1.5 times the ready replicas. At zero replicas it is value / perPool.
    """
    metrics, counts = decision_input.metrics, decision_input.replicas
    # As HPA has it: a pool at zero counts as one replica.
    ready_replicas = counts.ready if counts.spec > 0 else 1
    return tuple(
        _recommend(parameters, metrics, ready_replicas) for parameters in decision_input.parameters.signals.custom
    )


def _recommend(
    parameters: CustomParameters, metrics: MetricsObservation | ObservationUnavailable, ready_replicas: int
) -> ScalingRecommendation:
    name = custom_query_name(parameters)
    value = known_query(metrics, name)
    if isinstance(value, NoOpinion):
        return abstention(name, value, reads_replicas=False)
    if parameters.per_pool is not None:
        return vote(
            name,
            Reason.CUSTOM,
            milli_value(value),
            milli_target(parameters.per_pool),
            "{} ({} where {} should be, {} ready) needs",
            {"value": value, "valuePerPool": parameters.per_pool, "readyReplicas": float(ready_replicas)},
            terms=(parameters.name, value, parameters.per_pool, float(ready_replicas)),
            ready_replicas=ready_replicas,
            reads_replicas=False,
        )
    assert parameters.per_replica is not None
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
