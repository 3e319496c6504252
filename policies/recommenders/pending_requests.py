"""How many replicas do the requests ask for that have not reached an engine yet?"""

from __future__ import annotations

from pydantic import Field

from policies.parameter_model import ParameterModel


class PendingRequestsParameters(ParameterModel):
    """Requests that a gateway holds back: seen without any replica, so they also wake a pool from zero."""

    query: str = Field(
        min_length=1, max_length=4096, description="PromQL; the sum over its series is the pending requests."
    )
    per_replica: float = Field(gt=0, le=1e9, description="Pending requests that justify one replica.")
