"""The InferenceScaler's status: what `kubectl get` and `describe` show, and the memory that survives a restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError

from autoscaler.api.accelerator_pool import AcceleratorPoolStatus
from autoscaler.api.conditions import CONDITION_LIST, DATE_TIME, Condition
from autoscaler.api.forecast_status import ForecastStatus
from autoscaler.api.learned import LearnedStatus
from autoscaler.api.published_metrics import PublishedMetrics
from autoscaler.api.saved_history import from_json, to_json
from policies.history import ScalingHistory
from policies.parameter_model import ParameterModel

MAXIMUM_RECORD_CHARACTERS = 32_768
MAXIMUM_MESSAGE_CHARACTERS = 4096


class InferenceScalerStatus(ParameterModel):
    """What the controller last saw, decided and did."""

    observed_generation: int = Field(default=0, ge=0, description="Generation of the spec that was judged.")
    spec_replicas: int | None = Field(default=None, ge=0, description="Replicas asked for in the target.")
    ready_replicas: int | None = Field(default=None, ge=0, description="Replicas that serve.")
    starting_replicas: int | None = Field(default=None, ge=0, description="Replicas starting in time.")
    desired_replicas: int | None = Field(default=None, ge=0, description="Replicas decided.")
    accelerators_desired: int | None = Field(default=None, ge=0, description="Accelerators of the desired replicas.")
    binding_reason: str = Field(default="", max_length=64, description="Which rule or limit gave the count.")
    message: str = Field(default="", max_length=MAXIMUM_MESSAGE_CHARACTERS, description="The decision in one sentence.")
    reason_since: str | None = Field(
        default=None, description="Since when count and reason are these.", json_schema_extra=DATE_TIME
    )
    last_scale_time: str | None = Field(
        default=None, description="When the count was last written.", json_schema_extra=DATE_TIME
    )
    conditions: tuple[Condition, ...] = Field(default=(), max_length=16, json_schema_extra=CONDITION_LIST)
    external_metrics: PublishedMetrics | None = Field(
        default=None, description="What a HorizontalPodAutoscaler is told; only in mode ExternalMetric."
    )
    forecast: ForecastStatus | None = Field(default=None, description="The load that is expected, and what it does.")
    learned: LearnedStatus | None = Field(default=None, description="What the pool itself has taught.")
    history: str | None = Field(
        default=None, max_length=MAXIMUM_RECORD_CHARACTERS, description="The controller's memory, as JSON."
    )
    last_record: str | None = Field(
        default=None, max_length=MAXIMUM_RECORD_CHARACTERS, description="Decision record that `explain` reads."
    )


def save_history(history: ScalingHistory) -> str:
    """The history for `.status`, in a short form of bounded size."""
    return to_json(history)


def restore_history(status: Mapping[str, Any]) -> ScalingHistory | None:
    """The history in a status document; None where there is none or it cannot be read (both mean: unknown)."""
    text = read_status(status).history
    return None if text is None else from_json(text)


def status_document(status: InferenceScalerStatus | AcceleratorPoolStatus) -> dict[str, Any]:
    """The status for a merge patch of the status subresource; what is not known is null, which removes it."""
    return {"status": status.model_dump(mode="json", by_alias=True)}


def read_status(document: Mapping[str, Any]) -> InferenceScalerStatus:
    """A status document as a value. What is missing, or not of this version's form, is left at its default."""
    try:
        return InferenceScalerStatus.model_validate(document)
    except ValidationError as error:
        # After a roll-back a newer program's fields stand there; the memory in the others must not be lost with them.
        foreign = {each["loc"][0] for each in error.errors(include_url=False)}
        return InferenceScalerStatus.model_validate(
            {name: value for name, value in document.items() if name not in foreign}
        )
