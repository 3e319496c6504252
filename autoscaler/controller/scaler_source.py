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


class ScalersOfTick:
    """Reads another source once a tick and keeps what it gave, so that all of a tick sees the same objects.

    A second reading within a tick may differ from the first; and of a folder a change counts when two ticks have
    seen it.
    """

    def __init__(self, source: ScalerSource) -> None:
        self._source = source
        self._newest: Sequence[InferenceScaler | InvalidInferenceScaler] = ()

    def scalers(self) -> Sequence[InferenceScaler | InvalidInferenceScaler]:
        """What the source has now; to be asked once a tick, by the loop."""
        self._newest = self._source.scalers()
        return self._newest

    def newest(self) -> Sequence[InferenceScaler | InvalidInferenceScaler]:
        """What the loop has last been given."""
        return self._newest
