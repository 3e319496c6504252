"""What looks after the nodes behind the replicas, and the pods on them? Each part as far as the cluster has it."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client import Counter

from autoscaler.actuators.capacity_buffers import CapacityBuffers
from autoscaler.actuators.loading_protection import LoadingProtection
from autoscaler.actuators.node_pool_disruption import KarpenterNodePoolDisruption
from autoscaler.actuators.node_pool_limits import KarpenterNodePoolLimits
from autoscaler.actuators.placeholder_pods import PlaceholderPods
from autoscaler.actuators.pod_deletion_costs import PodDeletionCosts
from autoscaler.actuators.pod_drain import PodDrain
from autoscaler.actuators.scale_subresource import ScaleSubresourceActuator
from autoscaler.actuators.written_counts import WrittenCounts
from autoscaler.api.pool_bounds import micro_dollars
from autoscaler.controller.drain_keeper import DrainKeeper
from autoscaler.controller.keeper import Keeper
from autoscaler.controller.loading_keeper import LoadingKeeper
from autoscaler.controller.node_capacity import NodeCapacityKeeper
from autoscaler.controller.node_disruption import NodeDisruptionKeeper
from autoscaler.controller.prewarming import Prewarmer
from autoscaler.controller.surge_keeper import SurgeKeeper
from autoscaler.controller_parts import ControllerParts
from autoscaler.kubernetes_gateway.cluster_accelerators import ClusterAccelerators
from autoscaler.kubernetes_gateway.connection import FIELD_MANAGER
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.kubernetes_gateway.watched_launches import read_node_claims
from autoscaler.observers.placeholders import WatchedPlaceholders
from autoscaler.observers.prometheus_metrics import PrometheusMetricsObserver
from autoscaler.observers.replica_places import ReplicaPlaces
from autoscaler.observers.workload import ScaleTarget
from autoscaler.settings import ControllerSettings
from autoscaler.telemetry import Telemetry


def disruption_keeper(parts: ControllerParts, accelerators: ClusterAccelerators | None) -> NodeDisruptionKeeper | None:
    """What keeps the disruption budgets of NodePools; None in a dry run, which writes nothing."""
    if accelerators is None or parts.elector is None:
        return None
    writer = KarpenterNodePoolDisruption(parts.connection, parts.elector.is_leader)
    return NodeDisruptionKeeper(accelerators, writer, parts.clock)


def cluster_accelerators(parts: ControllerParts) -> ClusterAccelerators | None:
    """The AcceleratorPools and their nodes; None where the objects are files: they are read from the cluster only."""
    cluster = parts.cluster
    if cluster.accelerator_pools is None or cluster.nodes is None or cluster.node_pools is None:
        return None
    return ClusterAccelerators(
        cluster.accelerator_pools,
        cluster.nodes,
        cluster.node_pools,
        cluster.launches,
        lambda: read_node_claims(cluster.node_claims),
        lambda: () if cluster.daemon_sets is None else cluster.daemon_sets.all(),
    )


def node_capacity_keeper(
    settings: ControllerSettings,
    parts: ControllerParts,
    accelerators: ClusterAccelerators | None,
    written: WrittenCounts,
) -> NodeCapacityKeeper | None:
    """What keeps the limits of NodePools, and nodes ready; None where AcceleratorPools are not read."""
    if accelerators is None:
        return None
    limits = KarpenterNodePoolLimits(parts.connection, parts.elector.is_leader) if parts.elector else None
    scale = ScaleSubresourceActuator(parts.connection, parts.is_leader, parts.clock, written)
    buffers = CapacityBuffers(parts.connection, parts.cluster, parts.is_leader, settings.lease.namespace)
    placeholders = PlaceholderPods(WatchedPlaceholders(parts.cluster), scale)
    prewarmer = Prewarmer(placeholders, buffers, is_dry_run=parts.elector is None)
    stated = settings.ceiling_dollars_per_hour
    ceiling_per_hour = None if stated is None else micro_dollars(stated)
    places = ReplicaPlaces(parts.cluster, lambda *_: None)
    return NodeCapacityKeeper(accelerators, accelerators, limits, FIELD_MANAGER, prewarmer, ceiling_per_hour, places)


def keepers_of_pods(
    parts: ControllerParts, disruption: NodeDisruptionKeeper | None, drain: PodDrain, written: WrittenCounts
) -> list[Keeper]:
    """What keeps pods from going too soon, ends surges that nobody wants any more, and keeps disruption budgets.

    Nobody in a dry run, which writes nothing.
    """
    if parts.elector is None:
        return []
    loading = LoadingKeeper(LoadingProtection(parts.cluster, parts.background, parts.clock))
    scale = ScaleSubresourceActuator(parts.connection, parts.is_leader, parts.clock, written)
    surges = SurgeKeeper(lambda target: _as_it_stands(parts.cluster, target), scale)
    return [DrainKeeper(drain), loading, surges, *([] if disruption is None else [disruption])]


def _as_it_stands(cluster: WatchedCluster, target: ScaleTarget) -> tuple[ScaleTarget, int] | None:
    """A Deployment as the watch has it, and its count; None for any other kind, and for one that is not there."""
    known = cluster.target_kind("apps/v1", target.kind).objects if target.kind == "Deployment" else None
    found = None if known is None else known.get((target.namespace, target.name))
    if found is None or found.scale is None or found.is_deleting:
        return None
    return replace(target, uid=found.uid, resource_version=found.resource_version), found.scale.spec_replicas


def victim_marker(
    parts: ControllerParts, observer: PrometheusMetricsObserver, telemetry: Telemetry, drain: PodDrain
) -> PodDeletionCosts | None:
    """What marks the replicas that are to go; None in a dry run: nothing is written."""
    if parts.elector is None:
        return None
    emptied = Counter(
        "tokenscaler_nodes_emptied",
        "Nodes on which falling counts of a target have left nothing, by choice of the replicas that go.",
        ("namespace", "target"),
        registry=telemetry.registry,
    )
    return PodDeletionCosts(
        parts.connection,
        parts.cluster,
        parts.elector.is_leader,
        observer.requests_in_flight,
        drain,
        lambda target, nodes: emptied.labels(target.namespace, target.name).inc(nodes),
    )
