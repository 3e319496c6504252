"""Do the pods land on the nodes that are counted for them, and nobody else's pods?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.api.accelerators import RESOURCE_NAME
from autoscaler.api.node_shape import amount_of
from autoscaler.api.pod_requests import NO_REQUESTS, millis, whole
from autoscaler.api.taints import HARD_EFFECTS, tolerates_all
from autoscaler.finding import Finding
from autoscaler.node_pool_checks.limits import shape_of
from autoscaler.node_pool_checks.survey_types import ServingTarget, Survey, SurveyedNodePool

# Karpenter takes a node whose pods all have a lower priority for an empty one (1 + priority / 2^25 <= 0).
LOWEST_PRIORITY = -(2**25)


def check_placement(survey: Survey) -> Iterator[Finding]:
    """Findings about taints, tolerations, selectors, priorities and sizes of pods."""
    for pool, node_pool in survey.pairs():
        yield from _taint(node_pool)
        for target in survey.targets_of(pool):
            if target.is_known and node_pool.name in target.node_pools_of(pool):
                yield from _fits(survey, pool, node_pool, target)
    for pool in survey.pools:
        for target in survey.targets_of(pool):
            if not target.is_known:
                continue
            yield from _selector(survey, pool, target)
            yield from _tolerations(survey, pool, target)
            yield from _priority(survey, target)
    yield from _greedy_daemons(survey)


def _greedy_daemons(survey: Survey) -> Iterator[Finding]:
    for daemon in survey.daemons:
        lands_on = [node_pool for _, node_pool in survey.pairs() if node_pool.template.admits(daemon.placement)]
        if not daemon.requests.accelerators or not lands_on:
            continue
        yield Finding(
            f"DaemonSet {daemon.name}",
            f"spec.template.spec.containers[].resources.limits[{RESOURCE_NAME}]",
            str(daemon.requests.accelerators),
            "Karpenter keeps so many accelerators of every new node for it, so pods that take a whole node fit on none",
            "a DaemonSet that asks for no accelerators (it sees them without), or one that keeps off these nodes",
        )


def _taint(node_pool: SurveyedNodePool) -> Iterator[Finding]:
    if not any(taint.effect in HARD_EFFECTS for taint in node_pool.taints):
        yield Finding(
            node_pool.object,
            "spec.template.spec.taints",
            "none",
            "any pod may land on its nodes, and one without accelerators keeps a whole node from being empty",
            f"a taint such as {RESOURCE_NAME}=true:NoSchedule, and its toleration in the serving pods",
        )


def _fits(
    survey: Survey, pool: AcceleratorPool, node_pool: SurveyedNodePool, target: ServingTarget
) -> Iterator[Finding]:
    """A pod may ask for all accelerators of a node, but not for all of its CPU or memory: others have some of it."""
    shape = shape_of(pool, node_pool)
    if shape is None:
        return
    daemons = sum((each.requests for each in survey.daemons if node_pool.template.admits(each.placement)), NO_REQUESTS)
    pod = target.pod_requests
    for key, wanted, number, taken in (
        ("cpu", pod.cpu_millis, millis, daemons.cpu_millis),
        ("memory", pod.memory_bytes, whole, daemons.memory_bytes),
    ):
        stated = shape.resources.get(key)
        if stated is not None and number(stated) - taken < wanted < number(stated):
            yield Finding(
                target.object,
                f"spec.template.spec.containers[].resources.requests[{key}]",
                target.requests.get(key, "several"),
                f"DaemonSets that land on {node_pool.object} leave less of the {stated} that a node has in all: no "
                "node ever fits",
                "less, or smaller requests of the DaemonSets",
            )
    for key, stated in shape.resources.items():
        asked, all_of_it = amount_of(target.requests.get(key, "0")), amount_of(stated)
        if asked is None or all_of_it is None or asked < all_of_it or (key == RESOURCE_NAME and asked == all_of_it):
            continue
        yield Finding(
            target.object,
            f"spec.template.spec.containers[].resources.requests[{key}]",
            target.requests[key],
            f"a node of {node_pool.object} has {stated} in all, and less that pods may use: no node ever fits",
            f"less than {stated}, with room for the system and for DaemonSets",
        )


def _selector(survey: Survey, pool: AcceleratorPool, target: ServingTarget) -> Iterator[Finding]:
    """The pods must be able to land on each of the pool's NodePools, and on no other one that has accelerators."""
    mine = set(target.node_pools_of(pool))
    for name in sorted(mine):
        node_pool = survey.node_pools.get(name)
        if node_pool is not None and not _selects(target.node_selector, node_pool):
            yield Finding(
                target.object,
                "spec.template.spec.nodeSelector",
                _words(target.node_selector),
                f"its pods never land on {node_pool.object}, though AcceleratorPool {pool.name} counts these nodes",
                f"select what its NodePools have, or take {name} out of spec.nodePools",
            )
    strangers = sorted(
        name
        for name, node_pool in survey.node_pools.items()
        if name not in mine
        and _selects(target.node_selector, node_pool)
        and tolerates_all(target.tolerations, node_pool.taints)
        and _has_accelerators(node_pool)
    )
    if strangers:
        yield Finding(
            target.object,
            "spec.template.spec.nodeSelector",
            _words(target.node_selector) or "none",
            f"its pods may land on NodePools {', '.join(strangers)} too, whose nodes nobody counts for it",
            f"select a label that only NodePools {', '.join(sorted(mine))} put on their nodes",
        )


def _tolerations(survey: Survey, pool: AcceleratorPool, target: ServingTarget) -> Iterator[Finding]:
    for name in target.node_pools_of(pool):
        node_pool = survey.node_pools.get(name)
        if node_pool is None or tolerates_all(target.tolerations, node_pool.taints):
            continue
        taints = ", ".join(f"{taint.key}={taint.value}:{taint.effect}" for taint in node_pool.taints)
        yield Finding(
            target.object,
            "spec.template.spec.tolerations",
            "not these",
            f"{node_pool.object} taints its nodes with {taints}, so these pods never land there",
            "tolerate the taints in the pod template",
        )


def _priority(survey: Survey, target: ServingTarget) -> Iterator[Finding]:
    value = survey.priorities.get(target.priority_class)
    if value is not None and value <= LOWEST_PRIORITY:
        yield Finding(
            f"PriorityClass {target.priority_class}",
            "value",
            str(value),
            f"Karpenter takes a node with only pods of {target.object} for empty and removes it",
            f"more than {LOWEST_PRIORITY}; -1 to -10 is low enough to yield",
        )


def _selects(selector: Mapping[str, str], node_pool: SurveyedNodePool) -> bool:
    """Whether nodes of the NodePool can have these labels. Keys of which it says nothing may be there all the same."""
    values = node_pool.template.values
    return all(wanted in values.get(key, (wanted,)) for key, wanted in selector.items())


def _has_accelerators(node_pool: SurveyedNodePool) -> bool:
    return RESOURCE_NAME in node_pool.limits or any(RESOURCE_NAME in each for each in node_pool.capacities)


def _words(selector: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
