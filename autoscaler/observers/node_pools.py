"""What is seen of the NodePools that an AcceleratorPool names?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from policies.latency_class import ConsolidationSettings


@dataclass(frozen=True, slots=True)
class NodePoolSeen:
    """A NodePool with its nodes. `nodes_in_use` holds those that are still starting, and none that is being deleted.

    `capacities` are those of its nodes, each once. `problem` is why it makes no nodes, None where it does.
    """

    name: str
    limits: Mapping[str, str]
    nodes_in_use: int
    problem: str | None = None
    limit_managers: tuple[str, ...] = ()
    capacities: tuple[Mapping[str, str], ...] = ()
    consolidation: ConsolidationSettings | None = None
    nodes_deleting: int = 0


class NodePoolSource(Protocol):
    """The NodePools of the cluster. Never blocks on the network."""

    def node_pools(self) -> Mapping[str, NodePoolSeen]:
        """By name; empty where Karpenter is not installed, or before its NodePools have been read."""
        ...
