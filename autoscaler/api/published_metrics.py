"""What a pool's status says for those who scale by our metrics: the desired count and the signals, each with its time.

It stands in the status so that every replica of the service answers the same, also after a restart or a change of the
leader.
"""

from __future__ import annotations

from pydantic import Field

from autoscaler.api.conditions import DATE_TIME
from policies.parameter_model import UNIQUE_NAMES, ParameterModel

MAXIMUM_METRICS = 64
MAXIMUM_PROBLEM_CHARACTERS = 512


class PublishedMetric(ParameterModel):
    """One metric: a value, or why there is none."""

    name: str = Field(min_length=1, max_length=128, description="Name of the metric.")
    value: str | None = Field(
        default=None, pattern="^[0-9]{1,19}[mkMGTPE]?$", description="Quantity, in thousandths at the finest."
    )
    problem: str = Field(
        default="", max_length=MAXIMUM_PROBLEM_CHARACTERS, description="Why there is no value; empty with a value."
    )
    time: str = Field(description="When the oldest sample in it was taken.", json_schema_extra=DATE_TIME)


class PublishedMetrics(ParameterModel):
    """All metrics of a pool as of one decision."""

    decided_at: str = Field(description="When they were decided.", json_schema_extra=DATE_TIME)
    values: tuple[PublishedMetric, ...] = Field(
        default=(), max_length=MAXIMUM_METRICS, json_schema_extra=UNIQUE_NAMES, description="The metrics by name."
    )
