"""What is seen of the Deployment whose pods hold nodes ready?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from autoscaler.api.prewarm import PlaceholderRef
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.observers.workload import ScaleTarget

API_VERSION, KIND = "apps/v1", "Deployment"


@dataclass(frozen=True, slots=True)
class Placeholders:
    """The Deployment as it stands: its count, and the accelerators of one of its pods."""

    target: ScaleTarget
    replicas: int
    accelerators_per_replica: int


class PlaceholderSource(Protocol):
    """Sees placeholder Deployments. Never blocks on the network."""

    def placeholders(self, reference: PlaceholderRef) -> Placeholders | str:
        """The Deployment, or why there is none to be steered."""
        ...


class WatchedPlaceholders:
    """A PlaceholderSource on the watch of Deployments."""

    def __init__(self, cluster: WatchedCluster) -> None:
        self._cluster = cluster

    def placeholders(self, reference: PlaceholderRef) -> Placeholders | str:
        """Asking for it the first time begins the watch, so that it is not there yet for a moment."""
        what = f"Deployment {reference.namespace}/{reference.name}"
        kind = self._cluster.target_kind(API_VERSION, KIND)
        if kind.served is None or kind.objects is None or not kind.objects.has_synced:
            return f"{what} is not read yet"
        found = kind.objects.get((reference.namespace, reference.name))
        if found is None or found.is_deleting or found.scale is None:
            return f"there is no {what}"
        if not found.accelerators_per_replica:
            return f"{what} holds no node: its pods ask for no accelerators"
        path = kind.served.scale_path(reference.namespace, reference.name)
        target = ScaleTarget(found.namespace, KIND, found.name, path, found.uid, found.resource_version)
        return Placeholders(target, found.scale.spec_replicas, found.accelerators_per_replica)
