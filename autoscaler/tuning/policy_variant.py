"""What is a policy's document with other values of some parameters?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler, parse_inference_scaler
from autoscaler.tuning.dimension import Value, Values
from policies.recommenders.forecast import ForecastMode

FORECAST_MODE = "forecast.mode"
_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class NoSuchItem:
    """A path that leads to an item of a list which the document does not have."""

    path: str


def path_parts(path: str) -> tuple[str | int, ...]:
    """`behavior.scaleDown.policies[0].value` as ("behavior", "scaleDown", "policies", 0, "value")."""
    return tuple(name or int(index) for name, index in _PART.findall(path))


def short_path(path: str) -> str:
    """`scaleDown.stabilizationWindowSeconds` of the whole path: the last word alone may stand in several blocks."""
    return ".".join(path.split(".")[-2:])


def is_set(content: Mapping[str, Any], path: str) -> bool:
    """Whether the document's spec has something at a path, if only null."""
    return _walk(content, path) is not _ABSENT


def with_values(content: Mapping[str, Any], values: Values) -> dict[str, Any] | NoSuchItem:
    """The document with values set below its spec; blocks that are missing are made, items of lists are not."""
    changed: dict[str, Any] = deepcopy(dict(content))
    for path, value in values.items():
        if not _set(changed, path, value):
            return NoSuchItem(path)
    return changed


def parse_variant(content: Mapping[str, Any], values: Values) -> InferenceScaler | tuple[str, ...]:
    """The policy with other values, or what is wrong with it, a sentence a problem."""
    changed = with_values(content, values)
    if isinstance(changed, NoSuchItem):
        around = changed.path.rpartition("]")[0] + "]"
        return (f"spec.{around} is not in the policy; write it there first",)
    scaler = parse_inference_scaler(changed)
    return scaler.problems if isinstance(scaler, InvalidInferenceScaler) else scaler


def effective_value(scaler: InferenceScaler, path: str) -> Value:
    """What a policy has at a path with its defaults applied; None where a block around it is left out.

    A policy without a word on forecasts is one whose forecast is off, unless it names no vote at all.
    """
    if path == FORECAST_MODE and scaler.spec.parameters.forecast is None:
        return ForecastMode.OFF.value
    found: Any = {
        **scaler.spec.model_dump(mode="json", by_alias=True),
        **scaler.spec.parameters.model_dump(mode="json", by_alias=True),
    }
    for part in path_parts(path):
        if found is None:
            return None
        found = found[part]
    value: Value = found
    return value


def _walk(content: Mapping[str, Any], path: str) -> Any:
    found: Any = content.get("spec")
    for part in path_parts(path):
        if isinstance(part, int):
            found = found[part] if isinstance(found, list) and part < len(found) else _ABSENT
        else:
            found = found.get(part, _ABSENT) if isinstance(found, Mapping) else _ABSENT
    return found


def _set(document: dict[str, Any], path: str, value: Value) -> bool:
    parts = path_parts(path)
    place: Any = document["spec"]
    for part, following in pairwise(parts):
        if isinstance(part, int):
            if part >= len(place):
                return False
            place = place[part]
            continue
        if place.get(part) is None:
            if isinstance(following, int):
                return False
            place[part] = {}
        place = place[part]
    place[parts[-1]] = value
    return True
