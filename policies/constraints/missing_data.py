"""What may happen while a pool cannot be seen, in whole or in part?"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from policies.parameter_model import ParameterModel


class FallbackBehavior(StrEnum):
    """What the fallback's count means."""

    STATIC = "Static"
    CURRENT_IF_HIGHER = "CurrentIfHigher"


class FallbackParameters(ParameterModel):
    """The count that a pool goes to when it has not been seen for `holdSeconds`."""

    replicas: int = Field(ge=0, le=100_000, description="Replicas to run while blind.")
    behavior: FallbackBehavior = Field(
        default=FallbackBehavior.CURRENT_IF_HIGHER,
        description=(
            "CurrentIfHigher (default): never fewer than the last desired count. Static: exactly `replicas`, even "
            "where that is fewer (within the scale-down rules)."
        ),
    )


class MissingDataParameters(ParameterModel):
    """How long the last desired count is held while nothing is seen, and what then."""

    hold_seconds: int = Field(
        default=120,
        ge=0,
        le=86_400,
        description="Seconds without usable metrics before the fallback rules. Default 120: a Prometheus restart.",
    )
    fallback: FallbackParameters | None = Field(
        default=None, description="Without it the last desired count is held for as long as the pool is not seen."
    )
