"""What is seen of the NodePools that an AcceleratorPool names?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from autoscaler.api.pod_requests import NO_REQUESTS, PodRequests
from autoscaler.api.taints import Taint
from policies.latency_class import ConsolidationSettings
from policies.launch_breaker import LaunchProblem, LaunchResult, launch_problem


@dataclass(frozen=True, slots=True)
class DisruptionSeen:
    """When a NodePool's nodes may be taken away, as its document says it; `held` is our annotation, if it is there."""

    settings: ConsolidationSettings
    consolidate_after: str
    budgets: tuple[dict[str, Any], ...]
    held: str | None = None
    has_annotations: bool = True


@dataclass(frozen=True, slots=True)
class NodePoolSeen:
    """A NodePool with its nodes. `nodes_in_use` holds those that are still starting, and none that is being deleted.

    `capacities` are those of its nodes and of those that are about to be, each once, and `allocatables` what of them
    pods may have; `daemons` is what DaemonSets take of a new one. `problem` is why Karpenter passes it over, None where
    it does not; `launches` are the last launches where one of them failed, and `launch_problem` what follows from them.
    """

    name: str
    limits: Mapping[str, str]
    nodes_in_use: int
    problem: str | None = None
    limit_managers: tuple[str, ...] = ()
    capacities: tuple[Mapping[str, str], ...] = ()
    disruption: DisruptionSeen | None = None
    nodes_deleting: int = 0
    is_judged: bool = True  # Karpenter has looked at the spec that stands there now
    launches: tuple[LaunchResult, ...] = ()
    launch_problem: LaunchProblem | None = None
    taints: tuple[Taint, ...] = ()
    allocatables: tuple[Mapping[str, str], ...] = ()
    daemons: PodRequests = NO_REQUESTS

    @property
    def makes_nodes(self) -> bool:
        """Whether pods that wait may expect a node of it."""
        return self.problem is None and self.launch_problem is None

    def at(self, now_seconds: float) -> NodePoolSeen:
        """The same with `launch_problem` as it is at this moment."""
        return replace(self, launch_problem=launch_problem(self.launches, now_seconds)) if self.launches else self


class NodePoolSource(Protocol):
    """The NodePools of the cluster. Never blocks on the network."""

    def node_pools(self) -> Mapping[str, NodePoolSeen]:
        """By name; empty where Karpenter is not installed, or before its NodePools have been read."""
        ...
