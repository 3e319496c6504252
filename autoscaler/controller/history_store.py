"""What was remembered of each pool: in memory, restored from `.status` when this process has not seen the pool yet."""

from __future__ import annotations

from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.api.status import restore_history
from policies.history import ScalingHistory, new_history


class HistoryStore:
    """Histories by pool. A recreated InferenceScaler (another uid) begins anew."""

    def __init__(self) -> None:
        self._histories: dict[tuple[str, str], tuple[str, ScalingHistory]] = {}

    def recall(self, scaler: InferenceScaler, spec_replicas: int, now_seconds: float) -> ScalingHistory:
        """The pool's history: from memory, else from `.status`, else a new one that begins now.

        What a restored history does not cover, `decide` finds by its times: nothing is scaled down before a full
        window has been seen.
        """
        kept = self._histories.get(scaler.key)
        if kept is not None and kept[0] == scaler.uid:
            return kept[1]
        return restore_history(scaler.status) or new_history(now_seconds, spec_replicas)

    def remember(self, scaler: InferenceScaler, history: ScalingHistory) -> None:
        """Keeps the pool's newest history."""
        self._histories[scaler.key] = (scaler.uid, history)

    def forget_all(self) -> None:
        """Drops everything, so that a process that becomes leader again starts from `.status`."""
        self._histories.clear()

    def retain(self, keys: frozenset[tuple[str, str]]) -> None:
        """Drops the pools that exist no longer."""
        for key in self._histories.keys() - keys:
            del self._histories[key]
