"""What one replica has been seen to do, as `.status.learned.capacity` shows it to people and to the next controller."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import Field

from autoscaler.api.conditions import DATE_TIME, rfc3339
from policies.capacity.learned_capacity import LearnedCapacity
from policies.capacity.memory import CapacityMemory
from policies.capacity.samples import MAXIMUM_CLASSES, LoadSample
from policies.capacity.utilization import LEAST_TRIM, MOST_TRIM, safe_utilization
from policies.parameter_model import ParameterModel

# Seven numbers of four digits and their signs, for each class of load.
MAXIMUM_SAMPLES_CHARACTERS = MAXIMUM_CLASSES * 7 * 12


class LearnedCapacityStatus(ParameterModel):
    """One replica at the policy's latency objectives, for the requests that come now."""

    prefill_tokens_per_second: float | None = Field(
        default=None,
        gt=0,
        description="Computed prompt tokens a second, if it did nothing else. Null: not learned yet.",
    )
    decode_tokens_per_second: float | None = Field(
        default=None, gt=0, description="Generated tokens a second, if it did nothing else."
    )
    tokens_in_flight: float | None = Field(default=None, gt=0, description="Tokens it then holds.")
    safe_utilization_percent: float | None = Field(
        default=None, ge=0, le=100, description="How much of that it may be given."
    )
    trim_percent: float = Field(
        default=100.0,
        gt=0,
        description=(
            "By this the part that may be given differs from what the law leaves to slow requests: trimmed by what was "
            "outside the objectives."
        ),
    )
    uncertainty_percent: float | None = Field(
        default=None,
        ge=0,
        le=100,
        description="Standard deviation of the capacity; the part above 10 is taken off it already.",
    )
    windows: float = Field(default=0.0, ge=0, description="Minutes that it was learned from, older ones counting less.")
    law: str = Field(default="", max_length=64, description="The known kind of replica that it was nearest to.")
    begun: str | None = Field(default=None, description="Since when it has been learned.", json_schema_extra=DATE_TIME)
    begun_because: str = Field(default="", max_length=256, description="Why it began anew then.")
    template: str | None = Field(default=None, max_length=64, description="Identifies what its pods are made of.")
    samples: str = Field(
        default="",
        max_length=MAXIMUM_SAMPLES_CHARACTERS,
        description="What was measured, by load; for the next controller.",
    )


def learned_capacity_status(memory: CapacityMemory) -> LearnedCapacityStatus:
    """The memory as `.status` shows it; numbers in four digits."""
    known = memory.capacity
    return LearnedCapacityStatus(
        prefill_tokens_per_second=_short(known.prefill_tokens_per_second) if known else None,
        decode_tokens_per_second=_short(known.decode_tokens_per_second) if known else None,
        tokens_in_flight=_short(known.tokens_in_flight) if known else None,
        safe_utilization_percent=round(100 * known.safe_utilization, 2) if known else None,
        trim_percent=round(100 * memory.trim, 2),
        uncertainty_percent=round(100 * known.uncertainty, 1) if known else None,
        windows=round(known.samples, 1) if known else 0.0,
        law=known.law if known else "",
        begun=rfc3339(memory.begun_at_seconds),
        begun_because=memory.begun_because,
        template=memory.template,
        samples=" ".join(",".join(f"{number:.4g}" for number in _row(sample)) for sample in memory.samples),
    )


def restore_capacity(status: Mapping[str, Any]) -> CapacityMemory | None:
    """The memory in a status document; None where there is none or it cannot be read."""
    learned = status.get("learned")
    document = learned.get("capacity") if isinstance(learned, Mapping) else None
    try:
        saved = None if document is None else LearnedCapacityStatus.model_validate(document)
        begun = None if saved is None or saved.begun is None else datetime.fromisoformat(saved.begun)
    except ValueError:  # a ValidationError is one
        return None
    if saved is None or begun is None:
        return None
    return CapacityMemory(
        begun_at_seconds=begun.timestamp(),
        begun_because=saved.begun_because,
        template=saved.template,
        trim=min(max(saved.trim_percent / 100, LEAST_TRIM), MOST_TRIM),
        samples=_samples(saved.samples),
        capacity=_capacity(saved),
    )


def _capacity(saved: LearnedCapacityStatus) -> LearnedCapacity | None:
    prefill, decode, tokens = saved.prefill_tokens_per_second, saved.decode_tokens_per_second, saved.tokens_in_flight
    utilization = saved.safe_utilization_percent
    if prefill is None or decode is None or tokens is None or utilization is None:
        return None
    safe, uncertainty = safe_utilization(utilization / 100, 1.0), (saved.uncertainty_percent or 0.0) / 100
    return LearnedCapacity(prefill, decode, tokens, safe, uncertainty, saved.windows, saved.law)


def _short(number: float) -> float:
    return float(f"{number:.4g}")


def _row(sample: LoadSample) -> tuple[float, ...]:
    return (
        sample.weight,
        sample.step_seconds,
        sample.generated_tokens_per_second,
        sample.prompts_per_second,
        sample.context_tokens,
        sample.prompt_tokens,
        sample.cached_tokens,
    )


def _samples(text: str) -> tuple[LoadSample, ...]:
    found = []
    for word in text.split():
        try:
            row = [float(number) for number in word.split(",")]
        except ValueError:
            continue
        if len(row) == 7 and all(math.isfinite(number) and number >= 0 for number in row) and min(row[:6]) > 0:
            found.append(LoadSample(*row))
    return tuple(found[:MAXIMUM_CLASSES])
