"""Which latencies is a pool held to?"""

from __future__ import annotations

from pydantic import Field

from policies.parameter_model import ParameterModel


class LatencyObjectives(ParameterModel):
    """What a request should get. A replica's capacity is learned for it, and the safe utilisation kept by it."""

    time_to_first_token_p99_milliseconds: int = Field(
        default=2000,
        ge=10,
        le=600_000,
        description=(
            "Time to first token that 99 % of requests should stay within. Default 2000: what people accept of a chat. "
            "An edge of the engine's histogram (vLLM: 250, 500, 750, 1000, 2500, 5000) is measured best."
        ),
    )
    inter_token_latency_p99_milliseconds: int = Field(
        default=50,
        ge=1,
        le=60_000,
        description=(
            "Mean time per output token of one request that 99 % of requests should stay within. Default 50: twice as "
            "fast as people read. An edge of the engine's histogram (vLLM: 10, 25, 50, 75, 100) is measured best."
        ),
    )

    @property
    def time_to_first_token_seconds(self) -> float:
        """The first objective in seconds."""
        return self.time_to_first_token_p99_milliseconds / 1000.0

    @property
    def inter_token_latency_seconds(self) -> float:
        """The second objective in seconds."""
        return self.inter_token_latency_p99_milliseconds / 1000.0
