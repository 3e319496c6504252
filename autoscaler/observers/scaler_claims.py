"""Which InferenceScalers name the same target, and which of them steers it: the oldest, then the first by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler, ScaleTargetRef
from policies.parameters import Mode

TargetName: TypeAlias = tuple[str, str, str, str]
"""(namespace, API group, kind, name)"""


def target_name(scaler: InferenceScaler, reference: ScaleTargetRef) -> TargetName:
    """One of what the scaler steers. Versions of one API group name the same object."""
    return (scaler.namespace, reference.api_version.rpartition("/")[0], reference.kind, reference.name)


class ScalerClaims:
    """The claims of all accepted InferenceScalers at one moment."""

    def __init__(self, scalers: Iterable[InferenceScaler | InvalidInferenceScaler]) -> None:
        claims: dict[TargetName, list[InferenceScaler]] = defaultdict(list)
        for scaler in scalers:
            if isinstance(scaler, InferenceScaler):
                for reference in scaler.spec.target_refs:
                    claims[target_name(scaler, reference)].append(scaler)
        self._claims = claims

    def rivals_of(self, scaler: InferenceScaler) -> Sequence[InferenceScaler]:
        """The others that steer its target before it may: older ones, and for a dry run any that writes.

        One in DryRun mode writes nothing, so it is nobody's rival: a policy can be tried beside the one in force.
        """
        names = [target_name(scaler, reference) for reference in scaler.spec.target_refs]
        claimed = {other.key: other for name in names for other in self._claims.get(name, ())}
        return [
            other
            for other in claimed.values()
            if other.key != scaler.key
            and other.spec.mode is not Mode.DRY_RUN
            and (scaler.spec.mode is Mode.DRY_RUN or _rank(other) < _rank(scaler))
        ]


def _rank(scaler: InferenceScaler) -> tuple[float, str]:
    return (scaler.created_at_seconds, scaler.name)
