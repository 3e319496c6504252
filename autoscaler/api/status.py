"""The InferenceScaler's status: what `kubectl get` and `describe` show, and the memory that survives a restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from autoscaler.api.conditions import Condition
from policies.history import ScalingHistory
from policies.parameter_model import ParameterModel

MAXIMUM_RECORD_CHARACTERS = 32_768


class SavedHistory(ParameterModel):
    """What must survive a restart, as one bounded JSON text: it is for the controller, not for a person."""

    saved_at_seconds: float = Field(description="Unix time up to which the history holds.")
    text: str = Field(max_length=MAXIMUM_RECORD_CHARACTERS, description="The history as JSON.")


class InferenceScalerStatus(ParameterModel):
    """What the controller last saw, decided and did."""

    observed_generation: int = Field(default=0, ge=0, description="Generation of the spec that was judged.")
    spec_replicas: int | None = Field(default=None, ge=0, description="Replicas asked for in the target.")
    ready_replicas: int | None = Field(default=None, ge=0, description="Replicas that serve.")
    starting_replicas: int | None = Field(default=None, ge=0, description="Replicas starting in time.")
    desired_replicas: int | None = Field(default=None, ge=0, description="Replicas decided.")
    binding_reason: str = Field(default="", max_length=64, description="Which rule or limit gave the count.")
    message: str = Field(default="", max_length=4096, description="The decision in one sentence.")
    reason_since: str | None = Field(default=None, description="Since when count and reason are these; RFC 3339.")
    last_scale_time: str | None = Field(default=None, description="When the count was last written; RFC 3339.")
    conditions: tuple[Condition, ...] = Field(default=(), max_length=16)
    history: SavedHistory | None = None
    last_record: str | None = Field(
        default=None, max_length=MAXIMUM_RECORD_CHARACTERS, description="Decision record that `explain` reads."
    )


@dataclass(frozen=True, slots=True)
class RestoredHistory:
    """A history as it was saved, and until when it is known to hold."""

    saved_at_seconds: float
    history: ScalingHistory


_HISTORY: TypeAdapter[ScalingHistory] = TypeAdapter(ScalingHistory)


def save_history(history: ScalingHistory, now_seconds: float) -> SavedHistory | None:
    """The history for `.status`; None when it would be larger than its bound (a restart then sees a new window)."""
    text = _HISTORY.dump_json(history).decode()
    return SavedHistory(saved_at_seconds=now_seconds, text=text) if len(text) <= MAXIMUM_RECORD_CHARACTERS else None


def restore_history(status: Mapping[str, Any]) -> RestoredHistory | None:
    """The history in a status document; None where there is none or it cannot be read (both mean: unknown)."""
    saved = read_status(status).history
    if saved is None:
        return None
    try:
        return RestoredHistory(saved.saved_at_seconds, _HISTORY.validate_json(saved.text))
    except ValidationError:
        return None


def read_status(document: Mapping[str, Any]) -> InferenceScalerStatus:
    """A status document as a value; an empty one where it is missing or not of this form (an older version's)."""
    try:
        return InferenceScalerStatus.model_validate(document)
    except ValidationError:
        return InferenceScalerStatus()
