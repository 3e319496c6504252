"""What is expected of a pool's load, as `.status.forecast` shows it to people."""

from __future__ import annotations

from pydantic import Field

from autoscaler.api.conditions import DATE_TIME
from policies.parameter_model import ParameterModel


class ForecastStatus(ParameterModel):
    """The newest forecast in numbers; what is not known is null. Loads are tokens that arrive, per second."""

    mode: str = Field(max_length=16, description="Advise or Active.")
    acts: bool = Field(description="Whether it takes part in the decision now.")
    message: str = Field(max_length=1024, description="What it expects, how good it is, and why it acts or does not.")
    current_tokens_per_second: float | None = Field(default=None, ge=0, description="In the last five minutes.")
    expected_tokens_per_second: float | None = Field(
        default=None, ge=0, description="Most, until a replica ordered now could serve; at the quantile of the policy."
    )
    expected_replicas: float | None = Field(default=None, ge=0, description="Replicas that would carry it.")
    peak_tokens_per_second: float | None = Field(default=None, ge=0, description="Most within all of its reach.")
    peak_time: str | None = Field(default=None, description="When that begins.", json_schema_extra=DATE_TIME)
    loss_ratio: float | None = Field(
        default=None,
        ge=0,
        description="Its loss over that of the last value, on the pool's last days; below 1 is better.",
    )
