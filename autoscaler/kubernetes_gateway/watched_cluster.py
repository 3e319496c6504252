"""Which resources are watched: our own objects, pods, other autoscalers, and every kind that somebody wants scaled.

The kinds of targets are not fixed: each kind that an InferenceScaler names is looked up at the API server and then
watched, also when it is installed later, and is let go when nobody has named it for a while. That, and reading the
scale subresource of kinds whose objects do not tell their count, happens in a thread of its own, so that readers
never wait for the network.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from autoscaler.clock import Clock
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.backoff import Backoff
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.kubernetes_gateway.discovery import ServedKind, discover, root_of
from autoscaler.kubernetes_gateway.node_departures import NodeDepartures
from autoscaler.kubernetes_gateway.object_store import ObjectStore
from autoscaler.kubernetes_gateway.reflector import ListGate, Reflector
from autoscaler.kubernetes_gateway.scale_reader import ScaleReader
from autoscaler.kubernetes_gateway.watched_kind import WatchedKind
from autoscaler.kubernetes_gateway.watched_launches import (
    GIVEN_UP_SELECTION,
    GivenUp,
    LaunchNotes,
    WatchedNodeClaim,
    reduce_given_up,
)
from autoscaler.kubernetes_gateway.watched_objects import (
    AutoscalerClaim,
    WatchedDaemonSet,
    WatchedNode,
    WatchedNodePool,
    WatchedPod,
    claim_index_keys,
    pod_index_keys,
    reduce_daemon_set,
    reduce_horizontal_pod_autoscaler,
    reduce_node_pool,
    reduce_own_object,
    reduce_pod,
    reduce_scaled_object,
)
from autoscaler.kubernetes_gateway.watched_target import WatchedTarget, target_reduction
from autoscaler.observers.capacity_buffers import API_VERSION as BUFFERS_API_VERSION
from autoscaler.observers.capacity_buffers import (
    POOL_LABEL,
    BuffersNotRead,
    BuffersNotServed,
    CapacityBufferSeen,
    reduce_capacity_buffer,
)
from policies.launch_breaker import LaunchResult

OWN_API_VERSION = "tokenscaler.io/v1alpha1"
# Events about objects of the whole cluster stand there.
EVENTS_NAMESPACE = "default"
# A kind that nobody has asked for during so long is no longer watched.
UNUSED_KIND_SECONDS = 600.0
# A served kind without /scale may get one by an update of its CRD.
DISCOVERY_REFRESH_SECONDS = 60.0
SUPERVISION_SECONDS = 1.0
GATHERING_SECONDS = 0.05

T = TypeVar("T")
Document = dict[str, Any]
KindName = tuple[str, str]
"""(apiVersion, kind)"""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class TargetKind:
    """What is known of a kind that somebody wants scaled; all None until it has been looked up."""

    served: ServedKind | None = None
    objects: WatchedKind[WatchedTarget] | None = None
    problem: ApiFailure | None = None
    asked_at_seconds: float = 0.0
    next_discovery_seconds: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(lambda: 0.0))


class WatchedCluster:
    """Everything that is watched. `namespaces` None: all of them, else only these (each with watches of its own)."""

    def __init__(
        self,
        connection: ApiConnection,
        clock: Clock,
        random: Callable[[], float],
        namespaces: tuple[str, ...] | None = None,
        watches_own_objects: bool = True,
        watches_nodes: bool = False,
        buffer_namespace: str | None = None,
    ) -> None:
        """`buffer_namespace` is where our CapacityBuffers are; None: we make none."""
        self._connection = connection
        self._clock = clock
        self._namespaces = namespaces
        self._backoff = Backoff(random)
        self._gate = ListGate()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._kinds: dict[KindName, TargetKind] = {}
        self._scalers_version = -1
        self._has_synced = False
        self._departures = NodeDepartures()
        self.scales = ScaleReader(connection, clock, self._wake.set)
        self.pods: WatchedKind[WatchedPod] = self._watch("v1", "pods", reduce_pod, pod_index_keys)
        self.horizontal_pod_autoscalers: WatchedKind[AutoscalerClaim] = self._watch(
            "autoscaling/v2", "horizontalpodautoscalers", reduce_horizontal_pod_autoscaler, claim_index_keys
        )
        self.scaled_objects: WatchedKind[AutoscalerClaim] = self._watch(
            "keda.sh/v1alpha1", "scaledobjects", reduce_scaled_object, claim_index_keys
        )
        self.inference_scalers: WatchedKind[Document] | None = None
        self.accelerator_pools: WatchedKind[Document] | None = None
        self.nodes: WatchedKind[WatchedNode] | None = None
        self.node_pools: WatchedKind[WatchedNodePool] | None = None
        # Watched where an AcceleratorPool has NodePools managed: only there anybody asks, and has the permission.
        self.launch_notes: Final = LaunchNotes()
        self.node_claims: WatchedKind[WatchedNodeClaim] | None = None
        self.given_up: WatchedKind[GivenUp] | None = None
        self.daemon_sets: WatchedKind[WatchedDaemonSet] | None = None
        self._buffer_namespace = buffer_namespace
        self.buffers: WatchedKind[CapacityBufferSeen] | None = None
        if watches_own_objects:
            self.inference_scalers = self._watch(
                OWN_API_VERSION, "inferencescalers", reduce_own_object, on_change=self._wake.set
            )
        if watches_nodes:
            self.nodes = self._watch(
                "v1", "nodes", self._departures.reduce, is_namespaced=False, on_change=self._look_for_departures
            )
            if watches_own_objects:
                self.accelerator_pools = self._watch(
                    OWN_API_VERSION,
                    "acceleratorpools",
                    reduce_own_object,
                    is_namespaced=False,
                    on_change=self._wake.set,
                )
                self.node_pools = self._watch("karpenter.sh/v1", "nodepools", reduce_node_pool, is_namespaced=False)
        self._thread = threading.Thread(target=self._supervise, name="watched kinds", daemon=True)

    @property
    def fixed_kinds(self) -> dict[str, WatchedKind[Any]]:
        """What is watched always, by the plural names that RBAC uses."""
        kinds: dict[str, WatchedKind[Any] | None] = {
            "pods": self.pods,
            "horizontalpodautoscalers": self.horizontal_pod_autoscalers,
            "scaledobjects": self.scaled_objects,
            "inferencescalers": self.inference_scalers,
            "acceleratorpools": self.accelerator_pools,
            "nodes": self.nodes,
            "nodepools": self.node_pools,
            "nodeclaims": self.node_claims,
            "events": self.given_up,
            "daemonsets": self.daemon_sets,
            "capacitybuffers": self.buffers,
        }
        return {name: kind for name, kind in kinds.items() if kind is not None}

    @property
    def has_synced(self) -> bool:
        """Whether what every pool needs, and every kind that was wanted at first, has been read once.

        Stays True from then on: a kind that is wanted later concerns only those who want it. So does one that cannot
        be read. Nodes and what steers them lie outside namespaces: who may not read them can still scale.
        """
        outside = (
            self.nodes,
            self.accelerator_pools,
            self.node_pools,
            self.node_claims,
            self.given_up,
            self.daemon_sets,
            self.buffers,
        )
        if not self._has_synced:
            self._has_synced = (
                all(kind.has_synced or (kind in outside and bool(kind.problems)) for kind in self.fixed_kinds.values())
                and (self.inference_scalers is None or self._scalers_version >= 0)
                and all(_is_settled(kind) for kind in tuple(self._kinds.values()))
            )
        return self._has_synced

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with any watch at the moment, a sentence each."""
        watched = [*self.fixed_kinds.values(), *(kind.objects for kind in self._kinds.values() if kind.objects)]
        return tuple(problem.message for kind in watched for problem in kind.problems)

    def nodes_by_name(self) -> Mapping[str, WatchedNode]:
        """All nodes; empty where nobody watches them."""
        return {} if self.nodes is None else {node.name: node for node in self.nodes.all()}

    def launches(self) -> Mapping[str, tuple[LaunchResult, ...]]:
        """How launches of nodes ended, by NodePool, where one failed; empty where nobody watches them."""
        if self.node_claims is None or self.given_up is None:
            return {}
        return self.launch_notes.results(self.node_claims.all(), self.given_up.all())

    def capacity_buffers(self) -> Mapping[str, CapacityBufferSeen] | BuffersNotServed | BuffersNotRead:
        """Our CapacityBuffers by the AcceleratorPool that they are for."""
        if self.buffers is None or not self.buffers.has_synced:
            problems = () if self.buffers is None else self.buffers.problems
            return BuffersNotRead(problems[0] if problems else None)
        if self.buffers.is_absent:
            return BuffersNotServed()
        return {buffer.pool: buffer for buffer in self.buffers.all()}

    def monotonic_seconds(self) -> float:
        """The clock by which ages are counted."""
        return self._clock.monotonic_seconds()

    def target_kind(self, api_version: str, kind: str) -> TargetKind:
        """What is known of a kind of target. Asking for one that is not known yet starts the look-up."""
        name = (api_version, kind)
        with self._lock:
            known = self._kinds.get(name)
            if known is None:
                known = self._kinds[name] = TargetKind(backoff=self._backoff.again())
                self._wake.set()
            known.asked_at_seconds = self._clock.monotonic_seconds()
            return known

    def tell_of_departures(self, listener: Callable[[], None]) -> None:
        """Has somebody told, by a thread of the watch, as soon as a node begins to leave or is gone."""
        self._departures.listener = listener

    def _look_for_departures(self) -> None:
        if self.nodes is not None:
            self._departures.look(self.nodes.all())

    def start(self) -> None:
        """Begins to watch."""
        for kind in self.fixed_kinds.values():
            kind.start()
        self._thread.start()

    def stop(self) -> None:
        """Ends all watches. What was read stays readable."""
        self._stop.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(5.0)
        for watched in (*self.fixed_kinds.values(), *(kind.objects for kind in self._kinds.values() if kind.objects)):
            watched.stop()

    def _watch(
        self,
        api_version: str,
        plural: str,
        reduce: Callable[[Document], T | None],
        index_keys: Callable[[T], Iterable[Hashable]] = lambda _: (),
        is_namespaced: bool = True,
        on_change: Callable[[], None] = lambda: None,
        namespaces: tuple[str, ...] | None = None,
        selection: Mapping[str, str] | None = None,
    ) -> WatchedKind[T]:
        served = ServedKind(api_version, plural, plural, is_namespaced, has_scale=False)
        scopes: tuple[str | None, ...] = namespaces or (None,)
        if is_namespaced and namespaces is None and self._namespaces is not None:
            scopes = self._namespaces
        return WatchedKind(
            {
                scope: Reflector(
                    self._connection,
                    served.collection_path(scope),
                    reduce,
                    ObjectStore(index_keys),
                    self._clock,
                    self._backoff.again(),
                    self._gate,
                    on_change,
                    selection=selection,
                )
                for scope in scopes
            }
        )

    def _supervise(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(SUPERVISION_SECONDS)
            # A burst of events (a thousand statuses of our own) is one reason to look, not a thousand.
            self._stop.wait(GATHERING_SECONDS)
            self._wake.clear()
            self._note_wanted_kinds()
            self._watch_launches_once()
            self._watch_buffers_once()
            with self._lock:
                kinds = dict(self._kinds)
            for name, kind in kinds.items():
                if not self._stop.is_set():
                    self._bring_up_to_date(name, kind)
            self.scales.read_changed(self._stop)

    def _watch_launches_once(self) -> None:
        """Begins to watch what a plan of nodes needs when somebody wants limits kept.

        NodeClaims, what Karpenter says of those that it gave up, and the DaemonSets, which take a part of each node.
        """
        if self.accelerator_pools is None or self.node_claims is not None:
            return
        if not any((pool.get("spec") or {}).get("mode") == "Manage" for pool in self.accelerator_pools.all()):
            return
        given_up = self._watch(
            "v1", "events", reduce_given_up, namespaces=(EVENTS_NAMESPACE,), selection=GIVEN_UP_SELECTION
        )
        node_claims = self._watch(
            "karpenter.sh/v1", "nodeclaims", self.launch_notes.reduce_node_claim, is_namespaced=False
        )
        daemon_sets = self._watch("apps/v1", "daemonsets", reduce_daemon_set, is_namespaced=False)
        for kind in (given_up, node_claims, daemon_sets):
            kind.start()
        self.given_up, self.node_claims, self.daemon_sets = given_up, node_claims, daemon_sets

    def _watch_buffers_once(self) -> None:
        """Begins to watch our CapacityBuffers when a pool wants one, or has had nodes held ready before."""
        if self.accelerator_pools is None or self.buffers is not None or self._buffer_namespace is None:
            return
        if not any(map(_may_have_buffer, self.accelerator_pools.all())):
            return
        buffers = self._watch(
            BUFFERS_API_VERSION,
            "capacitybuffers",
            reduce_capacity_buffer,
            namespaces=(self._buffer_namespace,),
            selection={"labelSelector": POOL_LABEL},
        )
        buffers.start()
        self.buffers = buffers

    def _note_wanted_kinds(self) -> None:
        """Looks up the kinds that InferenceScalers name as soon as they appear, before anybody asks."""
        if self.inference_scalers is None or not self.inference_scalers.has_synced:
            return
        if self.inference_scalers.version == self._scalers_version:
            return
        version = self.inference_scalers.version
        for document in self.inference_scalers.all():
            for reference in _target_references(document):
                api_version, kind = reference.get("apiVersion"), reference.get("kind")
                if isinstance(api_version, str) and isinstance(kind, str) and api_version and kind:
                    self.target_kind(api_version, kind)
        self._scalers_version = version

    def _bring_up_to_date(self, name: KindName, kind: TargetKind) -> None:
        now = self._clock.monotonic_seconds()
        if now - kind.asked_at_seconds > UNUSED_KIND_SECONDS:
            self._let_go(name, kind)
            return
        if kind.objects is not None and kind.objects.is_absent:
            # The kind is gone; it may come back under another plural, so it is looked up anew.
            kind.objects.stop()
            kind.objects, kind.served = None, None
        if kind.objects is None and now >= kind.next_discovery_seconds:
            self._discover(name, kind, now)

    def _discover(self, name: KindName, kind: TargetKind, now: float) -> None:
        found = discover(self._connection, *name)
        if isinstance(found, ApiFailure):
            kind.problem = found
            kind.next_discovery_seconds = now + kind.backoff.next_delay_seconds()
            _log.info("kind not found", extra={"kind": name, "root": root_of(name[0]), "failure": found.message})
            return
        kind.backoff.reset()
        kind.next_discovery_seconds = now + DISCOVERY_REFRESH_SECONDS
        if found.has_scale and found.is_namespaced:
            objects = self._watch(found.api_version, found.plural, target_reduction(*name), on_change=self._wake.set)
            objects.start()
            kind.objects = objects
        kind.problem = None
        kind.served = found

    def _let_go(self, name: KindName, kind: TargetKind) -> None:
        with self._lock:
            self._kinds.pop(name, None)
        if kind.objects is not None:
            kind.objects.stop()


def _may_have_buffer(pool: Document) -> bool:
    """Whether an AcceleratorPool has, or may still have, a CapacityBuffer; a condition tells of the time before."""
    spec, status = pool.get("spec") or {}, pool.get("status") or {}
    held = [each for each in status.get("conditions") or () if each.get("type") == "NodesHeldReady"]
    return bool(held) or (spec.get("prewarm") or {}).get("method") == "CapacityBuffer"


def _target_references(scaler: Document) -> list[Document]:
    """What an InferenceScaler names, as far as it can be read."""
    spec = scaler.get("spec") or {}
    holders = (spec, *(spec.get("capacityTypes") or {}).values())
    references = [holder.get("scaleTargetRef") for holder in holders if isinstance(holder, dict)]
    return [reference for reference in references if isinstance(reference, dict)]


def _is_settled(kind: TargetKind) -> bool:
    """Whether the kind has been looked up and read, or cannot be."""
    if kind.problem is not None:
        return True
    return kind.served is not None and (kind.objects is None or kind.objects.has_synced or bool(kind.objects.problems))
