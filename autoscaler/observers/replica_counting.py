"""How many of a target's replicas are ready, starting, stuck and terminating.

Counts are relative to what was asked for (`spec`): ready replicas first, then those that start in time, then the
stuck ones, and never more than `spec` together. So the surge pods of a rollout, which exist beside the replicas asked
for, are no supply; nor are they demand, since every vote is a load over a capacity, and the load that surge pods carry
is the pool's own load, which all of its pods together carry only once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from autoscaler.kubernetes_gateway.watched_objects import WatchedPod
from policies.observation import ReplicaCounts

# A pod that the scheduler could not place for two minutes waits for a node that may never come.
UNSCHEDULABLE_LIMIT_SECONDS = 120.0
# A replica that was asked for and of which no pod exists is about to be made; if that lasts, a quota or an
# admission webhook refuses it.
MISSING_LIMIT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class SeenReplica:
    """One replica, of one or several pods. `starting_since_seconds` counts while it is not ready."""

    is_ready: bool
    is_terminating: bool
    starting_since_seconds: float
    unschedulable_since_seconds: float | None


def pods_by_replica(
    pods: Iterable[WatchedPod], replica_of: Callable[[WatchedPod], str]
) -> Mapping[str, Sequence[WatchedPod]]:
    """The pods of each replica, by the replica's name."""
    groups: dict[str, list[WatchedPod]] = defaultdict(list)
    for pod in pods:
        groups[replica_of(pod)].append(pod)
    return groups


def seen_replicas(groups: Mapping[str, Sequence[WatchedPod]], pods_per_replica: int) -> tuple[SeenReplica, ...]:
    """The replicas that the pods make up.

    A replica of several pods is ready when that many of its pods are, and terminating when nothing of it is left but
    terminating pods (a group that is being restarted has both old and new ones, and is starting).
    """
    return tuple(_replica(members, pods_per_replica) for members in groups.values())


def _replica(members: Sequence[WatchedPod], pods_per_replica: int) -> SeenReplica:
    live = [pod for pod in members if not pod.is_terminating]
    unready = [pod for pod in live if not pod.is_ready]
    waiting = [pod.unschedulable_since_seconds for pod in unready if pod.unschedulable_since_seconds is not None]
    return SeenReplica(
        is_ready=len(live) - len(unready) >= pods_per_replica,
        is_terminating=not live,
        starting_since_seconds=max((_starting_since(pod) for pod in unready or live), default=0.0),
        unschedulable_since_seconds=min(waiting, default=None),
    )


def _starting_since(pod: WatchedPod) -> float:
    """When the pod began to start: it was made, or it lost its readiness (a crash: the model is loaded again)."""
    return max(pod.created_at_seconds, pod.ready_changed_at_seconds or 0.0)


def live_replicas(replicas: Iterable[SeenReplica]) -> int:
    """How many replicas exist and are not terminating."""
    return sum(not replica.is_terminating for replica in replicas)


def count_replicas(
    replicas: Sequence[SeenReplica],
    spec: int,
    status: int,
    limit_seconds: float,
    missing_since_seconds: float | None,
    now_seconds: float,
) -> ReplicaCounts:
    """The counts now. A replica that has not become ready within `limit_seconds` is stuck.

    `missing_since_seconds` is since when fewer replicas exist than were asked for, or None.
    """
    live = [replica for replica in replicas if not replica.is_terminating]
    in_time = sum(_starts_in_time(replica, limit_seconds, now_seconds) for replica in live if not replica.is_ready)
    ready = min(sum(replica.is_ready for replica in live), spec)
    starting = min(in_time, spec - ready)
    stuck = min(sum(not replica.is_ready for replica in live) - in_time, spec - ready - starting)
    missing = spec - ready - starting - stuck
    is_missing_for_long = missing_since_seconds is not None and now_seconds - missing_since_seconds >= (
        MISSING_LIMIT_SECONDS
    )
    return ReplicaCounts(
        spec=spec,
        status=status,
        ready=ready,
        starting=starting + (0 if is_missing_for_long else missing),
        stuck=stuck + (missing if is_missing_for_long else 0),
        terminating=len(replicas) - len(live),
    )


def _starts_in_time(replica: SeenReplica, limit_seconds: float, now_seconds: float) -> bool:
    since = replica.unschedulable_since_seconds
    if since is not None and now_seconds - since >= UNSCHEDULABLE_LIMIT_SECONDS:
        return False
    return now_seconds - replica.starting_since_seconds < limit_seconds
