"""How many replicas does the queue inside the engines ask for?"""

from __future__ import annotations

from pydantic import Field

from policies.parameter_model import ParameterModel


class WaitingRequestsParameters(ParameterModel):
    """Requests that have reached an engine and wait for room in its batch."""

    per_replica: float = Field(
        gt=0, le=1e9, description="Waiting requests that one replica may have. No default: a queue is a choice."
    )
