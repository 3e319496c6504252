"""How many replicas does the rate of tokens ask for?"""

from __future__ import annotations

from pydantic import Field

from policies.parameter_model import ParameterModel


class TokenRateParameters(ParameterModel):
    """Prompt and generated tokens per second."""

    per_replica_per_second: float = Field(
        gt=0,
        le=1e12,
        description="Prompt plus generated tokens per second that one replica should do.",
    )
