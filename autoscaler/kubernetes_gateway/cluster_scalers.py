"""The InferenceScalers of the cluster, read from their watch and parsed once a version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler, parse_inference_scaler
from autoscaler.kubernetes_gateway.watched_kind import WatchedKind


class ClusterScalers:
    """A ScalerSource on the watch of InferenceScalers."""

    def __init__(self, watched: WatchedKind[dict[str, Any]]) -> None:
        self._watched = watched
        self._parsed: dict[tuple[str, str], tuple[str, InferenceScaler | InvalidInferenceScaler]] = {}

    def scalers(self) -> Sequence[InferenceScaler | InvalidInferenceScaler]:
        """All of them by namespace and name. One that is being deleted is no longer among them."""
        parsed: dict[tuple[str, str], tuple[str, InferenceScaler | InvalidInferenceScaler]] = {}
        for document in self._watched.all():
            metadata = document["metadata"]
            if "deletionTimestamp" in metadata:
                continue
            key = (metadata["namespace"], metadata["name"])
            version = metadata["resourceVersion"]
            known = self._parsed.get(key)
            parsed[key] = known if known and known[0] == version else (version, parse_inference_scaler(document))
        self._parsed = parsed
        return tuple(scaler for _, (_, scaler) in sorted(parsed.items()))
