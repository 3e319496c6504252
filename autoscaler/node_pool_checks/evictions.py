"""Can pods leave a node in order: within a spot node's notice, and without a budget that holds them for ever?"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.finding import Finding
from autoscaler.node_pool_checks.survey_types import ServingTarget, Survey

# A spot node has two minutes from its notice to its end; ten seconds go to hearing of it and to the routers.
SPOT_NOTICE_SECONDS = 120.0
LONGEST_SPOT_GRACE_SECONDS = 110.0


def check_evictions(survey: Survey) -> Iterator[Finding]:
    """Findings about every target's grace, its disruption budgets, and what keeps its nodes from being drained."""
    for pool in survey.pools:
        for target in survey.targets_of(pool):
            if not target.is_known:
                continue
            has_spot = pool.spec.node_pools.spot in target.node_pools_of(pool)
            yield from _grace(target, has_spot)
            yield from _budgets(target, has_spot)
            if target.keeps_off_disruption and has_spot:
                yield Finding(
                    target.object,
                    "spec.template.metadata.annotations[karpenter.sh/do-not-disrupt]",
                    "set",
                    "at a spot notice Karpenter evicts nothing of it and makes no replacement: its pods die with the "
                    "node",
                    "set it on pods while they load, not for good",
                )
    yield from _node_grace(survey)


def _grace(target: ServingTarget, has_spot: bool) -> Iterator[Finding]:
    if has_spot and target.grace_seconds > LONGEST_SPOT_GRACE_SECONDS:
        yield Finding(
            target.object,
            "spec.template.spec.terminationGracePeriodSeconds",
            f"{target.grace_seconds:.0f}",
            f"a spot node is gone {SPOT_NOTICE_SECONDS:.0f} s after its notice: streams that run longer are cut off "
            "without a word",
            f"{LONGEST_SPOT_GRACE_SECONDS:.0f} at most, and an end of streams before it that clients can repeat",
        )


def _budgets(target: ServingTarget, has_spot: bool) -> Iterator[Finding]:
    if len(target.budgets) > 1:
        yield Finding(
            target.object,
            "PodDisruptionBudgets",
            ", ".join(each.name for each in target.budgets),
            "a pod that two budgets select cannot be evicted at all",
            "one budget for these pods",
        )
    for budget in target.budgets:
        if budget.blocks_always:
            lost = ", and on spot they die with the node and get no replacement before" if has_spot else ""
            yield Finding(
                f"PodDisruptionBudget {budget.name}",
                "spec",
                budget.says,
                f"no pod of {target.object} may ever be evicted: nodes are never drained{lost}",
                "maxUnavailable 1, or 10 % to 25 %",
            )


def _node_grace(survey: Survey) -> Iterator[Finding]:
    """A node's own deadline overrides the pods' grace, and cuts a longer one short."""
    for pool, node_pool in survey.pairs():
        limit = node_pool.termination_grace_seconds
        for target in survey.targets_of(pool):
            is_there = target.is_known and node_pool.name in target.node_pools_of(pool)
            if limit is not None and is_there and target.grace_seconds > limit:
                yield Finding(
                    node_pool.object,
                    "spec.template.spec.terminationGracePeriod",
                    f"{limit:.0f} s",
                    f"pods of {target.object} have {target.grace_seconds:.0f} s of grace: they are told to stop at "
                    "once when the drain begins, with what is left of the shorter time",
                    f"longer than {target.grace_seconds:.0f} s",
                )
