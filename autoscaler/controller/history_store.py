"""What was remembered of each pool: in memory, restored from `.status` when this process has not seen the pool yet."""

from __future__ import annotations

from dataclasses import replace

from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.api.learned import restore_bursts
from autoscaler.api.learned_capacity import restore_capacity
from autoscaler.api.status import restore_history
from policies.bursts import BurstMemory
from policies.capacity.memory import CapacityMemory
from policies.constraints.node_move import LONGEST_REST_SECONDS
from policies.history import MoveMemory, ScalingHistory, new_history
from policies.load.rise import TimedArrivals


class HistoryStore:
    """Histories by pool. A recreated InferenceScaler (another uid) begins anew."""

    def __init__(self) -> None:
        self._histories: dict[tuple[str, str], tuple[str, ScalingHistory]] = {}
        self._capacities: dict[tuple[str, str], tuple[str, CapacityMemory]] = {}
        self._bursts: dict[tuple[str, str], tuple[str, BurstMemory]] = {}
        self._arrivals: dict[tuple[str, str], tuple[str, tuple[TimedArrivals, ...]]] = {}

    def recall(self, scaler: InferenceScaler, spec_replicas: int, now_seconds: float) -> ScalingHistory:
        """The pool's history: from memory, else from `.status`, else a new one that begins now.

        What a restored history does not cover, `decide` finds by its times: nothing is scaled down before a full
        window has been seen.
        """
        uid, history = self._histories.get(scaler.key, ("", None))
        if history is None or uid != scaler.uid:
            history = _restored(scaler, spec_replicas, now_seconds)
        return _not_after(history, now_seconds)

    def remember(self, scaler: InferenceScaler, history: ScalingHistory) -> None:
        """Keeps the pool's newest history."""
        self._histories[scaler.key] = (scaler.uid, history)

    def recall_capacity(self, scaler: InferenceScaler) -> CapacityMemory | None:
        """What is remembered of a replica's capacity: from memory, else from `.status`; None where nothing is."""
        uid, capacity = self._capacities.get(scaler.key, ("", None))
        return capacity if capacity is not None and uid == scaler.uid else restore_capacity(scaler.status)

    def remember_capacity(self, scaler: InferenceScaler, capacity: CapacityMemory) -> None:
        """Keeps what is newest of the pool's capacity."""
        self._capacities[scaler.key] = (scaler.uid, capacity)

    def recall_bursts(self, scaler: InferenceScaler) -> BurstMemory:
        """The pool's last bursts: from memory, else from `.status`."""
        uid, bursts = self._bursts.get(scaler.key, ("", None))
        return bursts if bursts is not None and uid == scaler.uid else BurstMemory(restore_bursts(scaler.status))

    def remember_bursts(self, scaler: InferenceScaler, bursts: BurstMemory) -> None:
        """Keeps what is newest of the pool's bursts."""
        self._bursts[scaler.key] = (scaler.uid, bursts)

    def recall_arrivals(self, scaler: InferenceScaler) -> tuple[TimedArrivals, ...]:
        """The arrivals of the last minutes, as far as this process has seen them."""
        uid, arrivals = self._arrivals.get(scaler.key, ("", ()))
        return arrivals if uid == scaler.uid else ()

    def remember_arrivals(self, scaler: InferenceScaler, arrivals: tuple[TimedArrivals, ...]) -> None:
        """Keeps the arrivals of the last minutes. Nobody saves them: after a restart they are soon seen again."""
        self._arrivals[scaler.key] = (scaler.uid, arrivals)

    def forget_all(self) -> None:
        """Drops everything, so that a process that becomes leader again starts from `.status`."""
        self._histories.clear()
        self._capacities.clear()
        self._bursts.clear()
        self._arrivals.clear()

    def retain(self, keys: frozenset[tuple[str, str]]) -> None:
        """Drops the pools that exist no longer."""
        for key in self._histories.keys() - keys:
            del self._histories[key]
        for key in self._capacities.keys() - keys:
            del self._capacities[key]
        for key in self._bursts.keys() - keys:
            del self._bursts[key]
        for key in self._arrivals.keys() - keys:
            del self._arrivals[key]


def _restored(scaler: InferenceScaler, spec_replicas: int, now_seconds: float) -> ScalingHistory:
    """The history in `.status`, else a new one.

    A zero that came after the last save, or of which nothing is saved (`--config`), may be ours: a process may die
    between its write and its save. Where the policy itself goes to zero it is taken for sleep, since a pool that is
    wrongly taken for switched off would not wake up for anything.
    """
    saved = restore_history(scaler.status)
    history = new_history(now_seconds, spec_replicas) if saved is None else saved
    is_known = saved is not None and saved.last_seen_replicas == 0
    if spec_replicas == 0 and scaler.spec.min_replicas == 0 and not is_known:
        return replace(history, is_scaled_to_zero=True)
    return history


def _not_after(history: ScalingHistory, now_seconds: float) -> ScalingHistory:
    """The history with what it calls the future as of now: a clock was set back, or one that ran ahead has saved it.

    Left as they are, such times would hold the count up, and rescales back, for as long as the clocks differ.
    """
    if not history.recommendations or history.recommendations[-1].at_seconds <= now_seconds:
        return history  # the newest is the last
    return replace(
        history,
        complete_since_seconds=min(history.complete_since_seconds, now_seconds),
        recommendations=tuple(
            each._replace(at_seconds=min(each.at_seconds, now_seconds)) for each in history.recommendations
        ),
        scale_events=tuple(
            each._replace(at_seconds=min(each.at_seconds, now_seconds)) for each in history.scale_events
        ),
        blind_since_seconds=_until(history.blind_since_seconds, now_seconds),
        low_coverage_since_seconds=_until(history.low_coverage_since_seconds, now_seconds),
        idle_since_seconds=_until(history.idle_since_seconds, now_seconds),
        node_move=None if history.node_move is None else _move_not_after(history.node_move, now_seconds),
    )


def _move_not_after(memory: MoveMemory, now_seconds: float) -> MoveMemory:
    return replace(
        memory,
        settled_since_seconds=_until(memory.settled_since_seconds, now_seconds),
        begun_at_seconds=_until(memory.begun_at_seconds, now_seconds),
        rests_until_seconds=_until(memory.rests_until_seconds, now_seconds + LONGEST_REST_SECONDS),
    )


def _until(moment: float | None, now_seconds: float) -> float | None:
    return None if moment is None else min(moment, now_seconds)
