"""How many of a target's replicas are ready, starting, stuck and terminating.

Counts are relative to what was asked for (`spec`): ready replicas first, then those that start in time, then the stuck
ones, then those whose node is about to go, and never more than `spec` together. So the surge pods of a rollout, which
exist beside the replicas asked for, are no supply; nor are they demand, since every vote is a load over a capacity, and
the load that surge pods carry is the pool's own load, which all of its pods together carry only once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from autoscaler.kubernetes_gateway.watched_objects import WatchedPod
from policies.cold_start import ColdStart
from policies.observation import ReplicaCounts

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
    number: int | None = None  # of a target that takes the highest numbers away first
    is_leaving: bool = False  # one of its pods is on a node that is about to go


def pods_by_replica(
    pods: Iterable[WatchedPod], replica_of: Callable[[WatchedPod], str]
) -> Mapping[str, Sequence[WatchedPod]]:
    """The pods of each replica, by the replica's name."""
    groups: dict[str, list[WatchedPod]] = defaultdict(list)
    for pod in pods:
        groups[replica_of(pod)].append(pod)
    return groups


def seen_replicas(
    groups: Mapping[str, Sequence[WatchedPod]],
    pods_per_replica: int,
    number_of: Callable[[str], int | None] = lambda _: None,
    is_leaving: Callable[[WatchedPod], bool] = lambda _: False,
) -> tuple[SeenReplica, ...]:
    """The replicas that the pods make up.

    A replica of several pods is ready when all of them are there and ready, and terminating when nothing of it is left
    but terminating pods (a group that is being restarted has both old and new ones, and is starting). `number_of` gives
    the number of a replica by its name, where the target's replicas have any. `is_leaving` tells of a pod whose node is
    about to go: with it goes the whole replica.
    """
    return tuple(_replica(members, pods_per_replica, number_of(name), is_leaving) for name, members in groups.items())


def _replica(
    members: Sequence[WatchedPod], pods_per_replica: int, number: int | None, is_leaving: Callable[[WatchedPod], bool]
) -> SeenReplica:
    live = [pod for pod in members if not pod.is_terminating]
    unready = [pod for pod in live if not pod.is_ready]
    waiting = [pod.unschedulable_since_seconds for pod in unready if pod.unschedulable_since_seconds is not None]
    return SeenReplica(
        is_ready=len(live) >= pods_per_replica and bool(live) and not unready,
        is_terminating=not live,
        starting_since_seconds=max((_starting_since(pod) for pod in unready or live), default=0.0),
        unschedulable_since_seconds=min(waiting, default=None),
        number=number,
        is_leaving=any(map(is_leaving, live)),
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
    cold_start: ColdStart,
    missing_since_seconds: float | None,
    now_seconds: float,
) -> ReplicaCounts:
    """The counts now. A replica that has had no node, or has not become ready, for longer than a start may is stuck.

    `missing_since_seconds` is since when fewer replicas exist than were asked for, or None.
    """
    existing = [replica for replica in replicas if not replica.is_terminating]
    live = [replica for replica in existing if not replica.is_leaving]
    late = [each for each in live if not each.is_ready and not _starts_in_time(each, cold_start, now_seconds)]
    ready = min(sum(replica.is_ready for replica in live), spec)
    starting = min(sum(not replica.is_ready for replica in live) - len(late), spec - ready)
    stuck = min(len(late), spec - ready - starting)
    leaving = min(len(existing) - len(live), spec - ready - starting - stuck)
    leaving_ready = min(sum(replica.is_leaving and replica.is_ready for replica in existing), leaving)
    missing = spec - ready - starting - stuck - leaving
    is_missing_for_long = missing_since_seconds is not None and now_seconds - missing_since_seconds >= (
        MISSING_LIMIT_SECONDS
    )
    return ReplicaCounts(
        spec=spec,
        status=status,
        ready=ready,
        starting=starting + (0 if is_missing_for_long else missing),
        stuck=stuck + (missing if is_missing_for_long else 0),
        terminating=len(replicas) - len(existing),
        outlasting=min(stuck, _outlasting(live, late)),
        leaving=leaving,
        leaving_ready=leaving_ready,
    )


def _outlasting(live: Sequence[SeenReplica], late: Sequence[SeenReplica]) -> int:
    """How many of the late replicas have a lower number than one that works, so that they would go after it."""
    if not late:
        return 0
    highest = max((each.number for each in live if each.number is not None and each not in late), default=-1)
    return sum(each.number is not None and each.number < highest for each in late)


def _starts_in_time(replica: SeenReplica, cold_start: ColdStart, now_seconds: float) -> bool:
    since = replica.unschedulable_since_seconds
    if since is not None and now_seconds - since >= cold_start.node_limit_seconds:
        return False
    return now_seconds - replica.starting_since_seconds < cold_start.start_limit_seconds
