"""How many replicas hold the tokens that are in flight now?"""

from __future__ import annotations

from pydantic import Field

from policies.parameter_model import ParameterModel


class TokensInFlightParameters(ParameterModel):
    """Tokens of requests that are in the engines or wait for them."""

    per_replica: float | None = Field(
        default=None,
        gt=0,
        le=1e12,
        description=(
            "Tokens in flight that one replica should carry. Null (default): half of the KV cache capacity in tokens "
            "that the engine reports."
        ),
    )
