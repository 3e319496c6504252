"""Can nodes be held ready as an AcceleratorPool says?"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.api.prewarm import PrewarmMethod
from autoscaler.finding import Finding
from autoscaler.node_pool_checks.placement import LOWEST_PRIORITY
from autoscaler.node_pool_checks.survey_types import Survey, SurveyedPlaceholders, Version

FIRST_WITH_BUFFERS: Version = (1, 14, 0)
GATE = "CapacityBuffer=true"


def check_prewarm(survey: Survey) -> Iterator[Finding]:
    """Findings about placeholders, and about what CapacityBuffers need of Karpenter."""
    for pool in survey.pools:
        held = pool.spec.held_ready
        if held is None:
            continue
        if held.method is PrewarmMethod.CAPACITY_BUFFER:
            yield from _buffers(survey, pool)
        placeholders = survey.placeholders.get(pool.name)
        if placeholders is not None:
            yield from _placeholders(survey, pool, placeholders)


def _buffers(survey: Survey, pool: AcceleratorPool) -> Iterator[Finding]:
    karpenter = survey.karpenter
    value = None
    if not karpenter.has_capacity_buffers:
        value, fix = "CapacityBuffer, and the API server knows none (autoscaling.x-k8s.io/v1beta1)", "install its CRD"
    elif karpenter.version is not None and karpenter.version < FIRST_WITH_BUFFERS:
        value, fix = "CapacityBuffer, which Karpenter has from 1.14 on", "update Karpenter"
    elif karpenter.feature_gates is not None and GATE not in karpenter.feature_gates:
        value, fix = "CapacityBuffer, and Karpenter's feature gate of that name is off", f"set FEATURE_GATES to {GATE}"
    if value is not None:
        yield Finding(
            f"AcceleratorPool {pool.name}",
            "spec.prewarm.method",
            value,
            "no node is held ready: nodes come with the replicas",
            fix,
            ("method PlaceholderPods, which works with any version",),
        )


def _placeholders(survey: Survey, pool: AcceleratorPool, placeholders: SurveyedPlaceholders) -> Iterator[Finding]:
    about = f"Deployment {placeholders.name}"
    if not placeholders.accelerators:
        yield Finding(
            f"AcceleratorPool {pool.name}",
            "spec.prewarm.placeholderRef",
            placeholders.name,
            "there is no such Deployment"
            if placeholders.accelerators is None
            else "its pods ask for no accelerators, so they hold no node",
            "deploy/placeholder-pods/placeholders.yaml, with your names",
        )
        return
    node_pool = survey.node_pools.get(pool.spec.node_pools.on_demand)
    if node_pool is not None and not node_pool.template.admits(placeholders.placement):
        yield Finding(
            about,
            "spec.template.spec (nodeSelector, affinity, tolerations)",
            "not this NodePool's",
            f"its pods never land on {node_pool.object}, whose nodes they are to hold",
            f"nodeSelector karpenter.sh/nodepool: {node_pool.name}, and the toleration of its taints",
        )
    priority = survey.priorities.get(placeholders.priority_class, 0)
    if priority >= 0:
        yield Finding(
            about,
            "spec.template.spec.priorityClassName",
            f"{placeholders.priority_class or 'none'} ({priority})",
            "replicas do not take their place: they wait for nodes beside the ones that are held for them",
            "a PriorityClass below 0, such as -10",
        )
    elif priority <= LOWEST_PRIORITY:
        yield Finding(
            f"PriorityClass {placeholders.priority_class}",
            "value",
            str(priority),
            f"Karpenter takes a node with only pods of {about} for empty and removes it",
            f"more than {LOWEST_PRIORITY}; -1 to -10 is low enough to yield",
        )
