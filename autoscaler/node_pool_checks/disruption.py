"""Do the NodePools let nodes go as suits what they serve?"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.finding import Finding
from autoscaler.node_pool_checks.survey_types import Budget, Survey, SurveyedNodePool
from policies.latency_class import ConsolidationSettings, judge_consolidation


def check_disruption(survey: Survey) -> Iterator[Finding]:
    """Findings about consolidation by the pool's latency class, where it states one, and about disruption budgets."""
    for pool, node_pool in survey.pairs():
        yield from _class(pool, node_pool)
        yield from _budgets(node_pool)


def _class(pool: AcceleratorPool, node_pool: SurveyedNodePool) -> Iterator[Finding]:
    if pool.spec.latency_class is None:
        return
    settings = ConsolidationSettings(
        node_pool.consolidation_policy, node_pool.consolidate_after_seconds, node_pool.expire_after_seconds
    )
    accelerators = 1 if pool.spec.node_shape is None else pool.spec.node_shape.accelerators
    if node_pool.termination_grace_seconds is None:
        yield Finding(
            node_pool.object,
            "spec.template.spec.terminationGracePeriod",
            "not set",
            "a node that is to go waits for ever for a pod that may not be evicted, and is paid for meanwhile",
            "more than the longest terminationGracePeriodSeconds of its pods, such as 30m",
        )
    for problem in judge_consolidation(pool.spec.latency_class, settings, accelerators):
        yield Finding(
            node_pool.object,
            problem.field,
            problem.value,
            f"AcceleratorPool {pool.name} is {pool.spec.latency_class.value}: {problem.costs}",
            problem.wanted,
        )


def _budgets(node_pool: SurveyedNodePool) -> Iterator[Finding]:
    """A budget that is closed at all times, so that not even drift renews a node."""
    for budget in node_pool.budgets:
        if _is_closed(budget):
            yield Finding(
                node_pool.object,
                "spec.disruption.budgets",
                f"nodes {budget.nodes}",
                "no node is ever disrupted: empty ones are paid for, and a new image or a new AMI never gets there",
                "close it for the reasons Underutilized and Drifted, or on a schedule",
            )


def _is_closed(budget: Budget) -> bool:
    return budget.nodes in ("0", "0%") and not budget.is_scheduled and not budget.reasons
