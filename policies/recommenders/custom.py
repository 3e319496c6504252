"""How many replicas does a user's own quantity ask for?"""

from __future__ import annotations

from pydantic import Field

from policies.parameter_model import ParameterModel


class CustomParameters(ParameterModel):
    """Any PromQL, with the meaning of a HorizontalPodAutoscaler's External metric with an AverageValue target."""

    name: str = Field(
        min_length=1,
        max_length=63,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="Names the vote; lower case letters, digits and dashes, unique within the policy.",
    )
    query: str = Field(min_length=1, max_length=4096, description="PromQL; the sum over its series is the quantity.")
    per_replica: float = Field(gt=0, le=1e15, description="The quantity that justifies one replica, in its own unit.")
