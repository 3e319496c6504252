"""What the watches say of a pool's target: its count, its pods, and who else steers it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler, ScaleTargetRef
from autoscaler.api.pod_requests import PodRequests
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, Forbidden, NotFound
from autoscaler.kubernetes_gateway.connection import FIELD_MANAGER
from autoscaler.kubernetes_gateway.discovery import ServedKind
from autoscaler.kubernetes_gateway.label_selector import LabelSelector
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.kubernetes_gateway.watched_kind import WatchedKind
from autoscaler.kubernetes_gateway.watched_objects import WatchedPod
from autoscaler.kubernetes_gateway.watched_target import TargetScale, WatchedTarget
from autoscaler.observers.cold_starts import ColdStarts
from autoscaler.observers.foreign_writer import CountHistory, is_ours, judge_count
from autoscaler.observers.leaving_nodes import LeavingNodes, read_nodes
from autoscaler.observers.metrics import PoolKey
from autoscaler.observers.pod_claims import PodClaims
from autoscaler.observers.replica_counting import (
    SeenReplica,
    count_replicas,
    live_replicas,
    pods_by_replica,
    seen_replicas,
)
from autoscaler.observers.replica_groups import NUMBERED_KINDS, belongs_to, number_of, replica_of
from autoscaler.observers.scaler_claims import ScalerClaims, TargetName, target_name
from autoscaler.observers.workload import (
    CompetingWriter,
    LivePod,
    ScaleTarget,
    TargetPart,
    Workload,
    WorkloadUnavailable,
)
from policies.capacity_split import CapacityType, TargetCounts
from policies.cold_start import learn_cold_start
from policies.history import LONGEST_GAP_SECONDS
from policies.reasons import Reason

# Watches are heard of at least every 40 s while all is well (reflector.py), so an older one is broken.
MAXIMUM_CACHE_AGE_SECONDS = 60.0
FOREIGN_WRITER_WINDOW_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class _SeenTarget:
    """A target as found in the caches."""

    target: WatchedTarget
    scale: TargetScale
    place: ScaleTarget


@dataclass(frozen=True, slots=True)
class _SeenPart:
    """A target with its own pods, the replicas that they make up, and who else has set its count."""

    seen: _SeenTarget
    pods: Sequence[WatchedPod]
    foreign_pods: int
    groups: Mapping[str, Sequence[WatchedPod]]
    replicas: tuple[SeenReplica, ...]
    competitors: tuple[CompetingWriter, ...]


class KubernetesWorkloadObserver:
    """Sees pools through the watches of a `WatchedCluster`; never waits for the network.

    `scalers` gives all InferenceScalers, so that two with the same target can be told apart.
    """

    def __init__(
        self,
        cluster: WatchedCluster,
        scalers: Callable[[], Sequence[InferenceScaler | InvalidInferenceScaler]],
        foreign_writer_window_seconds: float = FOREIGN_WRITER_WINDOW_SECONDS,
        field_manager: str = FIELD_MANAGER,
        maximum_cache_age_seconds: float = MAXIMUM_CACHE_AGE_SECONDS,
        written_count: Callable[[ScaleTarget], int | None] = lambda _: None,
        asked_for: Callable[[PoolKey, Sequence[TargetPart]], int | None] = lambda *_: None,
    ) -> None:
        """`written_count` gives the count that this process last wrote to a target, None where it wrote none.

        `asked_for` gives the count that the counts of two targets were made for, None where that is not known: while
        shares change both may stand for more than that.
        """
        self._cluster = cluster
        self._scalers = scalers
        self._foreign_writer_window_seconds = foreign_writer_window_seconds
        self._field_manager = field_manager
        self._maximum_cache_age_seconds = maximum_cache_age_seconds
        self._written_count = written_count
        self._asked_for = asked_for
        self._claims_at_seconds = float("nan")
        self._claims = ScalerClaims(())
        self._counts: dict[tuple[PoolKey, str], CountHistory] = {}
        self._missing: dict[PoolKey, tuple[str, float]] = {}
        self._cold_starts = ColdStarts()
        self._pod_claims = PodClaims()
        self._leaving_nodes = LeavingNodes(None, 0.0)
        self._pairs: dict[str, tuple[WatchedTarget, TargetScale]] = {}

    def observe_workload(self, scaler: InferenceScaler, now_seconds: float) -> Workload | WorkloadUnavailable:
        """The pool's workload now; unavailable while a watch it rests on is not read yet, forbidden or stale."""
        self._refresh_claims(now_seconds)
        parts: list[_SeenPart] = []
        for reference in scaler.spec.target_refs:
            part = self._observe_target(scaler, reference, now_seconds)
            if isinstance(part, WorkloadUnavailable):
                return part
            parts.append(part)
        ages = self._ages(scaler)
        if isinstance(ages, WorkloadUnavailable):
            return ages
        return self._workload(scaler, parts, ages, now_seconds)

    def _observe_target(
        self, scaler: InferenceScaler, reference: ScaleTargetRef, now_seconds: float
    ) -> _SeenPart | WorkloadUnavailable:
        """One target with its own pods and whoever else writes its count."""
        seen = self._find_target(scaler, reference)
        if isinstance(seen, WorkloadUnavailable):
            return seen
        kind = seen.place.kind
        matched = self._pods(scaler.namespace, seen.scale.selector)
        pods = [pod for pod in matched if belongs_to(pod, kind, seen.place.name) is not False]
        ambiguity = self._ambiguity(target_name(scaler, reference), seen, pods, now_seconds)
        if ambiguity is not None:
            return ambiguity
        groups = pods_by_replica(pods, lambda pod: replica_of(pod, kind))
        number = number_of if kind in NUMBERED_KINDS else _no_number
        replicas = seen_replicas(groups, seen.scale.pods_per_replica, number, self._leaving_nodes.takes_away)
        competitors = self._look_at_count(scaler, seen, now_seconds)
        return _SeenPart(seen, pods, len(matched) - len(pods), groups, replicas, tuple(competitors))

    def _workload(
        self, scaler: InferenceScaler, parts: Sequence[_SeenPart], age_seconds: float, now_seconds: float
    ) -> Workload:
        """All targets of the pool together, as if they were one."""
        first = parts[0].seen
        groups = {name: pods for part in parts for name, pods in part.groups.items()}
        learned = self._cold_starts.learn(scaler, groups, first.scale.pods_per_replica)
        cold_start = learned.cold_start or learn_cold_start((), scaler.spec.cold_start.prior_seconds)
        replicas = tuple(replica for part in parts for replica in part.replicas)
        targets = () if len(parts) == 1 else tuple(map(_target_part, CapacityType, parts))
        count = self._asked_for(scaler.key, targets)
        if count is None:
            count = sum(part.seen.scale.spec_replicas for part in parts)
        missing_since_seconds = self._missing_since(scaler, first.target.uid, replicas, count, now_seconds)
        return Workload(
            target=first.place,
            replicas=count_replicas(
                replicas,
                count,
                sum(part.seen.scale.status_replicas for part in parts),
                cold_start,
                missing_since_seconds,
                now_seconds,
            ),
            pods=tuple(
                _live_pod(pod, part.seen.place.kind) for part in parts for pod in part.pods if not pod.is_terminating
            ),
            foreign_pods=sum(part.foreign_pods for part in parts),
            competing_writers=(*self._other_autoscalers(scaler), *(who for part in parts for who in part.competitors)),
            is_paused=any(part.seen.scale.is_paused for part in parts),
            is_rolling_out=any(part.seen.scale.is_rolling_out for part in parts),
            template=first.target.template,
            cache_age_seconds=age_seconds,
            is_count_ours=_all_ours(self._is_ours(part.seen) for part in parts),
            accelerators_per_replica=scaler.spec.accelerators_per_replica or first.target.accelerators_per_replica,
            requests=reduce(PodRequests.at_least, (part.seen.target.requests for part in parts)),
            cold_start=learned.cold_start,
            starts=learned.starts,
            parts=targets,
        )

    def _is_ours(self, seen: _SeenTarget) -> bool | None:
        return is_ours(seen.target, seen.scale.spec_replicas, self._field_manager, self._written_count(seen.place))

    def _missing_since(
        self, scaler: InferenceScaler, uid: str, replicas: Sequence[SeenReplica], count: int, now_seconds: float
    ) -> float | None:
        """Since when fewer replicas exist than were asked for; None where all do."""
        if live_replicas(replicas) >= count:
            self._missing.pop(scaler.key, None)
            return None
        known = self._missing.get(scaler.key)
        since = known[1] if known is not None and known[0] == uid else now_seconds
        self._missing[scaler.key] = (uid, since)
        return since

    def _refresh_claims(self, now_seconds: float) -> None:
        """Once a tick: all pools of a tick are looked at with the same `now_seconds`."""
        if now_seconds == self._claims_at_seconds:
            return
        if now_seconds - self._claims_at_seconds > LONGEST_GAP_SECONDS:
            # Another process has led meanwhile: what it has learned stands in the statuses.
            self._cold_starts = ColdStarts()
        self._claims_at_seconds = now_seconds
        nodes = read_nodes(self._cluster.nodes, self._maximum_cache_age_seconds)
        self._leaving_nodes = LeavingNodes(nodes, now_seconds)
        scalers = self._scalers()
        self._claims = ScalerClaims(scalers)
        keys = {scaler.key for scaler in scalers}
        self._counts = {name: counts for name, counts in self._counts.items() if name[0] in keys}
        self._missing = {key: since for key, since in self._missing.items() if key in keys}
        self._cold_starts.retain(keys)
        self._pod_claims.forget_old(now_seconds)

    def _find_target(self, scaler: InferenceScaler, reference: ScaleTargetRef) -> _SeenTarget | WorkloadUnavailable:
        what = f"{reference.kind} ({reference.api_version}) {scaler.namespace}/{reference.name}"
        if not self._cluster.pods.watches(scaler.namespace):
            message = f"{what}: namespace {scaler.namespace} is not among those that this controller watches"
            return WorkloadUnavailable(Reason.TARGET_NOT_FOUND, message)
        kind = self._cluster.target_kind(reference.api_version, reference.kind)
        if kind.served is None:
            if isinstance(kind.problem, NotFound):
                return WorkloadUnavailable(Reason.TARGET_NOT_FOUND, f"{what}: no such kind: {kind.problem.message}")
            return _not_read_yet(what, kind.problem)
        if not kind.served.has_scale or not kind.served.is_namespaced:
            message = f"{what}: {kind.served.plural} have no scale subresource; name an object that has one"
            return WorkloadUnavailable(Reason.TARGET_NOT_SCALABLE, message)
        if kind.objects is None:
            return _not_read_yet(what, kind.problem)
        stale = self._staleness(kind.served.plural, kind.objects, scaler.namespace)
        if isinstance(stale, WorkloadUnavailable):
            return stale
        target = kind.objects.get((scaler.namespace, reference.name))
        if target is None or target.is_deleting:
            self._pairs.pop(kind.served.scale_path(scaler.namespace, reference.name), None)
            state = "does not exist" if target is None else "is being deleted"
            return WorkloadUnavailable(Reason.TARGET_NOT_FOUND, f"{what} {state}")
        return self._with_scale(what, kind.served, kind.objects, target)

    def _with_scale(
        self, what: str, served: ServedKind, objects: WatchedKind[WatchedTarget], target: WatchedTarget
    ) -> _SeenTarget | WorkloadUnavailable:
        path = served.scale_path(target.namespace, target.name)
        scale = target.scale
        if scale is None:
            pair = self._matching_pair(what, path, objects, target)
            if isinstance(pair, WorkloadUnavailable):
                return pair
            target, scale = pair
        if scale.selector is None:
            message = f"{what}: its scale subresource names no selector, so its pods cannot be found"
            return WorkloadUnavailable(Reason.TARGET_NOT_SCALABLE, message)
        place = ScaleTarget(target.namespace, served.kind, target.name, path, target.uid, target.resource_version)
        return _SeenTarget(target, scale, place)

    def _matching_pair(
        self, what: str, path: str, objects: WatchedKind[WatchedTarget], target: WatchedTarget
    ) -> tuple[WatchedTarget, TargetScale] | WorkloadUnavailable:
        """The newest object and scale that are of one moment: count, owners and version must belong together.

        While the watch and the scale catch up with each other the last pair stands; its version is old by then, so
        nothing can be written on it.
        """

        def watched_version() -> str | None:
            watched = objects.get((target.namespace, target.name))
            return watched.resource_version if watched is not None else None

        read = self._cluster.scales.want(path, watched_version)
        waited_seconds = self._cluster.monotonic_seconds() - read.wanted_since_seconds
        if read.scale is not None and read.resource_version == target.resource_version:
            self._pairs[path] = (target, read.scale)
        elif not read.is_current and waited_seconds > self._maximum_cache_age_seconds:
            self._pairs.pop(path, None)
        pair = self._pairs.get(path)
        if pair is not None and pair[0].uid == target.uid:
            return pair
        if read.problem is None:
            return WorkloadUnavailable(Reason.NOT_READ_YET, f"scale of {what}: not read yet")
        reason = Reason.FORBIDDEN if isinstance(read.problem, Forbidden) else Reason.FAILED_GET_SCALE
        return WorkloadUnavailable(reason, f"scale of {what}: {read.problem.message}")

    def _ages(self, scaler: InferenceScaler) -> float | WorkloadUnavailable:
        """Age of the oldest watch the workload is read from, or which of them cannot be used."""
        oldest = 0.0
        for reference in scaler.spec.target_refs:
            targets = self._cluster.target_kind(reference.api_version, reference.kind).objects
            oldest = max(oldest, targets.age_seconds_in(scaler.namespace) if targets is not None else 0.0)
        # Any: what the objects are does not matter for their age.
        kinds: tuple[tuple[str, WatchedKind[Any] | None], ...] = (
            ("inferencescalers", self._cluster.inference_scalers),  # None: they come from files
            ("pods", self._cluster.pods),
            ("horizontalpodautoscalers", self._cluster.horizontal_pod_autoscalers),
            ("scaledobjects", self._cluster.scaled_objects),
        )
        for name, watched in kinds:
            if watched is None:
                continue
            age = self._staleness(name, watched, scaler.namespace)
            if isinstance(age, WorkloadUnavailable):
                return age
            oldest = max(oldest, age)
        return oldest

    def _staleness(self, name: str, watched: WatchedKind[Any], namespace: str) -> float | WorkloadUnavailable:
        age, problem = watched.age_seconds_in(namespace), watched.problem_in(namespace)
        if age <= self._maximum_cache_age_seconds:
            return age
        if age == float("inf"):
            return _not_read_yet(name, problem)
        why = f": {problem.message}" if problem is not None else ""
        message = f"the watch of {name} was last heard of {age:.0f} s ago{why}"
        return WorkloadUnavailable(Reason.FORBIDDEN if isinstance(problem, Forbidden) else Reason.STALE_CACHE, message)

    def _pods(self, namespace: str, selector: LabelSelector | None) -> list[WatchedPod]:
        if selector is None:
            return []
        indexed = [(namespace, key, value) for key, value in selector.equalities]
        if indexed:
            rarest = min(indexed, key=lambda index_key: self._cluster.pods.count(namespace, index_key))
            candidates = self._cluster.pods.find(namespace, rarest)
        else:
            candidates = tuple(pod for pod in self._cluster.pods.all() if pod.namespace == namespace)
        return sorted((pod for pod in candidates if selector.matches(pod.labels)), key=lambda pod: pod.name)

    def _ambiguity(
        self, target: TargetName, seen: _SeenTarget, pods: Sequence[WatchedPod], now_seconds: float
    ) -> WorkloadUnavailable | None:
        """Says that pods are taken for another target as well: they must not be counted twice."""
        unowned = (pod.name for pod in pods if not belongs_to(pod, seen.place.kind, seen.place.name))
        rival = self._pod_claims.rival(target, unowned, now_seconds)
        if rival is None:
            return None
        (_, _, kind, name), pod = rival
        both = f"{target[2]} {target[3]} and {kind} {name}"
        message = f"the selectors of {both} both match pod {pod}, and its owner does not tell whose it is"
        return WorkloadUnavailable(Reason.AMBIGUOUS_SELECTOR, message)

    def _other_autoscalers(self, scaler: InferenceScaler) -> list[CompetingWriter]:
        names = [target_name(scaler, reference) for reference in scaler.spec.target_refs]
        claims = [
            claim
            for namespace, group, kind, name in names
            for watched in (self._cluster.horizontal_pod_autoscalers, self._cluster.scaled_objects)
            for claim in watched.find(namespace, (namespace, kind, name))
            if claim.group in ("", group)
        ]
        found = [CompetingWriter(Reason.COMPETING_AUTOSCALER, claim.who) for claim in claims]
        for rival in self._claims.rivals_of(scaler):
            who = f"InferenceScaler {rival.namespace}/{rival.name}"
            found.append(CompetingWriter(Reason.COMPETING_SCALER, who))
        return found

    def _look_at_count(self, scaler: InferenceScaler, seen: _SeenTarget, now_seconds: float) -> list[CompetingWriter]:
        memory_key = (scaler.key, seen.place.path)
        before = self._counts.get(memory_key)
        foreign, counts = judge_count(
            before if before is not None else _last_seen_count(scaler, seen.target),
            seen.target,
            seen.scale.spec_replicas,
            self._field_manager,
            self._foreign_writer_window_seconds,
            now_seconds,
            self._written_count(seen.place),
        )
        self._counts[memory_key] = counts
        if foreign is None:
            return []
        who = f'field manager "{foreign.manager}" (set {foreign.replicas} replicas {foreign.age_seconds:.0f} s ago)'
        return [CompetingWriter(Reason.COMPETING_WRITER, who)]


def _target_part(capacity_type: CapacityType, part: _SeenPart) -> TargetPart:
    """The counts of one of two targets; a replica has its node when one of its pods has."""
    live = {name: pods for name, pods in part.groups.items() if any(not pod.is_terminating for pod in pods)}
    placed = sum(any(pod.scheduled_at_seconds is not None for pod in pods) for pods in live.values())
    ready = sum(replica.is_ready and not replica.is_terminating for replica in part.replicas)
    return TargetPart(capacity_type, part.seen.place, TargetCounts(part.seen.scale.spec_replicas, ready, placed))


def _all_ours(parts: Iterable[bool | None]) -> bool | None:
    """Whether every count is ours; None where one cannot be told and none is another's."""
    known = tuple(parts)
    if all(known):
        return True
    return False if False in known else None


def _last_seen_count(scaler: InferenceScaler, target: WatchedTarget) -> CountHistory:
    """What a predecessor of this process saw, so that a write made while nobody was looking is noticed too.

    A count that nobody owns may be the predecessor's own last write, so it is taken as it is.
    """
    is_one = len(scaler.spec.target_refs) == 1  # of two, the status has the sum
    count = scaler.status.get("specReplicas") if target.owners and is_one else None
    return CountHistory(target.uid, settled_replicas=count if isinstance(count, int) else None)


def _not_read_yet(what: str, problem: ApiFailure | None) -> WorkloadUnavailable:
    if isinstance(problem, Forbidden):
        return WorkloadUnavailable(Reason.FORBIDDEN, f"{what} cannot be read: {problem.message}")
    if problem is None:
        return WorkloadUnavailable(Reason.NOT_READ_YET, f"{what} not read yet: the first list is under way")
    return WorkloadUnavailable(Reason.STALE_CACHE, f"{what} not read yet: {problem.message}")


def _no_number(replica: str) -> int | None:
    del replica
    return None


def _live_pod(pod: WatchedPod, target_kind: str) -> LivePod:
    replica = replica_of(pod, target_kind)
    ready_since_seconds = pod.ready_changed_at_seconds if pod.is_ready else None
    return LivePod(pod.name, replica, pod.is_ready, ready_since_seconds, pod.drained_at_seconds is not None)
