"""Which pods may land on the nodes that a NodePool makes, as Karpenter sees it before there is one?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autoscaler.api.taints import Taint, Toleration, read_taints, read_tolerations, tolerates_all

NODE_POOL_LABEL = "karpenter.sh/nodepool"
"""The label by which Karpenter says which NodePool a node belongs to."""

# Labels of these domains are put on nodes by Kubernetes, Karpenter and clouds: a NodePool need not name them. A label
# of anybody else's that it does not name is on none of its nodes.
_WELL_KNOWN_DOMAINS = ("kubernetes.io", "k8s.io", "karpenter.sh", "k8s.aws", "azure.com", "gke.io", "kwok.sh")


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """What all nodes of a NodePool have in common: the values that a label may have, by key, and taints."""

    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()

    def admits(self, placement: PodPlacement) -> bool:
        """Whether such a pod may land on a node of it."""
        if not tolerates_all(placement.tolerations, self.taints):
            return False
        if not all(self._may_have(key, (value,)) for key, value in placement.node_selector.items()):
            return False
        return not placement.terms or any(all(map(self._fulfils, term)) for term in placement.terms)

    def _may_have(self, key: str, wanted: Iterable[str]) -> bool:
        values = self.values.get(key)
        return _is_well_known(key) if values is None else any(value in values for value in wanted)

    def _fulfils(self, expression: NodeExpression) -> bool:
        values = self.values.get(expression.key)
        match expression.operator:
            case "In":
                return self._may_have(expression.key, expression.values)
            case "NotIn":
                return values is None or any(value not in expression.values for value in values)
            case "DoesNotExist":
                return values is None
        # Exists, and comparisons of numbers, which no DaemonSet that is known to us makes of a label of its own.
        return values is not None or _is_well_known(expression.key)


ANY_NODE = NodeTemplate()
"""Nodes of which nothing is known: no label of anybody's own, and no taint."""


@dataclass(frozen=True, slots=True)
class NodeExpression:
    """One condition on a label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodPlacement:
    """Where a pod may land: all of its selector, one of its terms, and whatever taints it tolerates."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    terms: tuple[tuple[NodeExpression, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


ANYWHERE = PodPlacement()


def read_node_template(node_pool: Mapping[str, Any]) -> NodeTemplate:
    """By the document of a NodePool: the labels of its template, and its requirements with the operator In."""
    template = (node_pool.get("spec") or {}).get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    node = template.get("spec") or {}
    values: dict[str, tuple[str, ...]] = {str(key): (str(value),) for key, value in labels.items()}
    for each in node.get("requirements") or ():
        if each.get("operator") == "In":
            values[str(each.get("key"))] = tuple(str(value) for value in each.get("values") or ())
    values[NODE_POOL_LABEL] = (str(node_pool["metadata"]["name"]),)
    return NodeTemplate(values, read_taints(node.get("taints")))


def read_placement(pod: Mapping[str, Any]) -> PodPlacement:
    """By a pod spec: its selector, its required node affinity, its tolerations."""
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = tuple(
        tuple(
            NodeExpression(str(each.get("key")), str(each.get("operator")), tuple(map(str, each.get("values") or ())))
            for each in term.get("matchExpressions") or ()
        )
        for term in required.get("nodeSelectorTerms") or ()
    )
    selector = {str(key): str(value) for key, value in (pod.get("nodeSelector") or {}).items()}
    return PodPlacement(selector, terms, read_tolerations(pod.get("tolerations")))


def _is_well_known(key: str) -> bool:
    domain = key.partition("/")[0]
    return "/" in key and any(domain == known or domain.endswith(f".{known}") for known in _WELL_KNOWN_DOMAINS)
