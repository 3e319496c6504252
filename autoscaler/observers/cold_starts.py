"""Which replicas have just finished their first start, and how long did its phases take?

Only a start of which the beginning was seen counts: what a pod says of itself does not tell the first time it became
Ready from a later one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.api.learned import restore_starts
from autoscaler.kubernetes_gateway.watched_objects import WatchedPod
from policies.cold_start import KEPT_STARTS, ColdStart, ObservedStart, learn_cold_start

# Times of conditions and containers are in whole seconds.
RESOLUTION_SECONDS = 1.0

_Start = tuple[str, float]
"""A replica's name and when its first pod was made: names come again, in a StatefulSet for every new pod."""


@dataclass(frozen=True, slots=True)
class LearnedStarts:
    """The last starts of a pool, oldest first, and the cold start that they teach (None: no start has been seen)."""

    starts: tuple[ObservedStart, ...]
    cold_start: ColdStart | None


@dataclass(frozen=True, slots=True)
class _Memory:
    uid: str
    prior_seconds: float
    learned: LearnedStarts
    under_way: frozenset[_Start] = frozenset()


class ColdStarts:
    """Remembers each pool's last starts; what a predecessor has saved in `.status` is taken up where it left off."""

    def __init__(self) -> None:
        self._memories: dict[tuple[str, str], _Memory] = {}

    def learn(
        self, scaler: InferenceScaler, replicas: Mapping[str, Sequence[WatchedPod]], pods_per_replica: int
    ) -> LearnedStarts:
        """What is known of the pool's starts now. `replicas` has the pods of each replica by its name."""
        prior_seconds = float(scaler.spec.cold_start.prior_seconds)
        before = self._memories.get(scaler.key)
        if before is None or before.uid != scaler.uid:
            starts = restore_starts(scaler.status)
            before = _Memory(scaler.uid, prior_seconds, _learned(starts, prior_seconds))
        under_way, finished = set(), []
        for name, pods in replicas.items():
            if pods[0].is_ready and not before.under_way:
                continue  # nearly always: all are up, and nothing was starting
            start = _start(name, pods)
            if start in before.under_way or _begins(pods):
                if _is_up(pods, pods_per_replica):
                    finished.append(pods)
                elif not any(_was_up_before(pod) for pod in pods):
                    under_way.add(start)
        learned = before.learned
        if finished or prior_seconds != before.prior_seconds:
            finished.sort(key=_ended_at_seconds)
            starts = (*learned.starts, *(_observed(pods) for pods in finished))[-KEPT_STARTS:]
            learned = _learned(starts, prior_seconds)
        self._memories[scaler.key] = _Memory(scaler.uid, prior_seconds, learned, frozenset(under_way))
        return learned

    def retain(self, keys: Collection[tuple[str, str]]) -> None:
        """Forgets the pools that exist no longer."""
        for key in self._memories.keys() - keys:
            del self._memories[key]


def _learned(starts: tuple[ObservedStart, ...], prior_seconds: float) -> LearnedStarts:
    return LearnedStarts(starts, learn_cold_start(starts, prior_seconds) if starts else None)


def _start(name: str, pods: Sequence[WatchedPod]) -> _Start:
    return name, min(pod.created_at_seconds for pod in pods)


def _begins(pods: Sequence[WatchedPod]) -> bool:
    """Whether no pod of the replica is ready yet. With a ready one it might be a replacement in an old group."""
    return not any(pod.is_ready for pod in pods)


def _was_up_before(pod: WatchedPod) -> bool:
    """Of an unready pod: its readiness went away after its containers had started, or they are not the first."""
    if pod.is_terminating or pod.has_restarted:
        return True
    if pod.is_ready or pod.ready_changed_at_seconds is None or pod.started_at_seconds is None:
        return False
    return pod.ready_changed_at_seconds > pod.started_at_seconds + RESOLUTION_SECONDS


def _is_up(pods: Sequence[WatchedPod], pods_per_replica: int) -> bool:
    return len(pods) >= pods_per_replica and all(
        pod.is_ready and not pod.has_restarted and not pod.is_terminating for pod in pods
    )


def _ended_at_seconds(pods: Sequence[WatchedPod]) -> float:
    return max(pod.ready_changed_at_seconds or 0.0 for pod in pods)


def _observed(pods: Sequence[WatchedPod]) -> ObservedStart:
    """The phases of a replica's start: each ends when its last pod has got so far."""
    began = min(pod.created_at_seconds for pod in pods)
    node, began = _phase([pod.scheduled_at_seconds for pod in pods], began)
    image, began = _phase([pod.started_at_seconds for pod in pods], began)
    load, _ = _phase([pod.ready_changed_at_seconds for pod in pods], began)
    return ObservedStart(node, image, load)


def _phase(ends: Sequence[float | None], began: float) -> tuple[float | None, float]:
    """Seconds of a phase and its end; where no end is known, None and the beginning, for the next phase to count."""
    known = [end for end in ends if end is not None]
    if not known:
        return None, began
    end = max(began, *known)
    return end - began, end
