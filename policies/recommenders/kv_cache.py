"""How many replicas keep the KV cache below its limit?"""

from __future__ import annotations

from pydantic import Field

from policies.parameter_model import ParameterModel


class KVCacheParameters(ParameterModel):
    """The share of the KV cache in use."""

    headroom_percent: float = Field(
        default=15,
        ge=0,
        le=95,
        description="Percent of the KV cache that should stay free. Default 15: preemptions begin where none is free.",
    )
