"""The port through which the wished-for InferenceScalers come: from the API server, or from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler


class ScalerSource(Protocol):
    """All InferenceScalers that this process looks after, valid or not."""

    def scalers(self) -> Sequence[InferenceScaler | InvalidInferenceScaler]:
        """The newest known objects, in a stable order. Never blocks on the network."""
        ...
