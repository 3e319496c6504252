"""What does the trigger of a ScaledObject ask us for?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from autoscaler.external_metrics.values import DESIRED_REPLICAS

# What KEDA itself reads from the same map, and sends along.
_KEYS_OF_KEDA = frozenset({"scalerAddress", "enableTLS", "unsafeSsl"})
_KEYS = frozenset({"inferenceScaler", "metric", "threshold", "activationThreshold"})

# KEDA makes a quantity of it, an int64 of thousandths: a smaller share would be zero, and a larger one no number.
SMALLEST_THRESHOLD = 0.001
LARGEST_THRESHOLD = 1e15


@dataclass(frozen=True, slots=True)
class Trigger:
    """A metric of one InferenceScaler.

    `threshold` is how much of it one replica carries, from 0.001 on; the target runs at all while the metric is above
    `activation_threshold` (strictly, as everywhere in KEDA).
    """

    namespace: str
    inference_scaler: str
    metric: str
    threshold: float
    activation_threshold: float


@dataclass(frozen=True, slots=True)
class InvalidTrigger:
    """Why a trigger means nothing; `message` names the field."""

    message: str


def read_trigger(namespace: str, scaled_object: str, metadata: Mapping[str, str]) -> Trigger | InvalidTrigger:
    """The trigger of a ScaledObject by its metadata.

    `inferenceScaler` is the ScaledObject's name where it is left out, `metric` is the decided count. A key that is
    neither ours nor KEDA's is refused: a misspelt one would be a metric that nobody asked for.
    """
    strange = sorted(key for key in metadata.keys() - _KEYS - _KEYS_OF_KEDA if not key.endswith("FromEnv"))
    if strange:
        return InvalidTrigger(f"metadata.{strange[0]} is not known; {', '.join(sorted(_KEYS))} are")
    given = {key: text.strip() for key, text in metadata.items()}
    name = given.get("inferenceScaler") or scaled_object
    if not namespace or not name:
        return InvalidTrigger("a ScaledObject without a namespace and a name")
    metric = given.get("metric") or DESIRED_REPLICAS
    threshold = _threshold(metric, given.get("threshold"))
    if isinstance(threshold, InvalidTrigger):
        return threshold
    activation = _number("activationThreshold", given.get("activationThreshold") or "0")
    if isinstance(activation, InvalidTrigger):
        return activation
    return Trigger(namespace, name, metric, threshold, activation)


def _threshold(metric: str, text: str | None) -> float | InvalidTrigger:
    if metric == DESIRED_REPLICAS:
        # The count is decided already: any other share per replica would give another count.
        return 1.0 if text in (None, "", "1") else InvalidTrigger(f"metadata.threshold of {metric} can only be 1")
    if not text:
        return InvalidTrigger(f"metadata.threshold is missing: how much of {metric} does one replica carry?")
    threshold = _number("threshold", text)
    if isinstance(threshold, float) and not SMALLEST_THRESHOLD <= threshold <= LARGEST_THRESHOLD:
        return InvalidTrigger(f"metadata.threshold: {text} is not from {SMALLEST_THRESHOLD:g} to {LARGEST_THRESHOLD:g}")
    return threshold


def _number(key: str, text: str) -> float | InvalidTrigger:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        return InvalidTrigger(f"metadata.{key}: {text!r} is not a number of zero or more")
    return number
