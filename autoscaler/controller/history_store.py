"""What was remembered of each pool: in memory, restored from `.status` when this process has not seen the pool yet."""

from __future__ import annotations

from dataclasses import replace

from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.api.status import restore_history
from policies.history import ScalingHistory, TimedRecommendation

# A saved history older than this does not prove what happened since: more than two of the 30 s heartbeats were missed.
MAXIMUM_GAP_SECONDS = 75.0


class HistoryStore:
    """Histories by pool. A recreated InferenceScaler (another uid) begins anew."""

    def __init__(self) -> None:
        self._histories: dict[tuple[str, str], tuple[str, ScalingHistory]] = {}

    def recall(self, scaler: InferenceScaler, spec_replicas: int, now_seconds: float) -> ScalingHistory:
        """The pool's history: from memory, else from `.status`, else a new one that begins now.

        A new or gap-ridden history starts with the present size as its first recommendation, as the
        HorizontalPodAutoscaler's does, so nothing is scaled down before a full window has been seen.
        """
        kept = self._histories.get(scaler.key)
        if kept is not None and kept[0] == scaler.uid:
            return kept[1]
        saved = restore_history(scaler.status)
        if saved is None:
            return ScalingHistory(
                complete_since_seconds=now_seconds,
                recommendations=(TimedRecommendation(now_seconds, spec_replicas),),
            )
        if 0.0 <= now_seconds - saved.saved_at_seconds <= MAXIMUM_GAP_SECONDS:
            return saved.history
        # A clock that went back (negative gap) proves as little as a long gap.
        return replace(
            saved.history,
            complete_since_seconds=now_seconds,
            recommendations=(TimedRecommendation(now_seconds, spec_replicas),),
            scale_events=(),
            blind_since_seconds=None,
            low_coverage_since_seconds=None,
            last_low_coverage_step_seconds=None,
        )

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
