"""How many whole nodes do the limits of a NodePool allow, which key decides that, and is it enough?"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.api.accelerator_pool import AcceleratorPool, AcceleratorPoolMode
from autoscaler.api.accelerators import RESOURCE_NAME
from autoscaler.api.node_shape import NODES_KEY, NodeShape, amount_of
from autoscaler.finding import Finding
from autoscaler.node_pool_checks.survey_types import Survey, SurveyedNodePool
from policies.wording import counted


def check_limits(survey: Survey) -> Iterator[Finding]:
    """Findings about limits, key by key, and about all nodes that may come together."""
    for pool, node_pool in survey.pairs():
        shape = shape_of(pool, node_pool)
        if shape is None:
            continue
        yield from _cap(node_pool)
        yield from _keys(node_pool, shape, pool)
    for pool in survey.pools:
        yield from _enough(survey, pool)
    yield from _quota(survey)


def shape_of(pool: AcceleratorPool, node_pool: SurveyedNodePool) -> NodeShape | None:
    """The shape that the AcceleratorPool states, else that of a node that is there; None: nobody knows."""
    if pool.spec.node_shape is not None:
        return pool.spec.node_shape.shape
    real = next((each for each in node_pool.capacities if (amount_of(each.get(RESOURCE_NAME, "")) or 0) >= 1), None)
    return None if real is None else NodeShape(real)


def nodes_by_key(node_pool: SurveyedNodePool, shape: NodeShape) -> dict[str, int]:
    """The whole nodes that each limited key allows by itself, where it is known what a node takes of it."""
    found = {key: shape.whole_nodes({key: amount}) for key, amount in node_pool.limits.items()}
    return {key: nodes for key, nodes in found.items() if nodes is not None}


def _cap(node_pool: SurveyedNodePool) -> Iterator[Finding]:
    if RESOURCE_NAME in node_pool.limits:
        return
    if NODES_KEY in node_pool.limits:
        yield Finding(
            node_pool.object,
            f"spec.limits.{NODES_KEY}",
            node_pool.limits[NODES_KEY],
            "Karpenter does not count it down within one batch of pods, so a burst passes over it",
            f"limit {RESOURCE_NAME} as well: it is the cap that holds",
        )
        return
    yield Finding(
        node_pool.object,
        f"spec.limits[{RESOURCE_NAME}]",
        "none",
        "nothing caps the accelerators that it may buy",
        f"set spec.limits[{RESOURCE_NAME}] to whole nodes",
    )


def _keys(node_pool: SurveyedNodePool, shape: NodeShape, pool: AcceleratorPool) -> Iterator[Finding]:
    allowed = nodes_by_key(node_pool, shape)
    for key in shape.unknown_keys(node_pool.limits):
        yield Finding(
            node_pool.object,
            f"spec.limits.{key}",
            node_pool.limits[key],
            "nobody can say how many nodes it allows, so no limit is written",
            f"name {key} in spec.nodeShape of AcceleratorPool {pool.name}, or take the limit away",
        )
    if not allowed:
        return
    binding = min(allowed, key=lambda key: (allowed[key], key))
    if allowed[binding] == 0:
        yield Finding(
            node_pool.object,
            f"spec.limits.{binding}",
            node_pool.limits[binding],
            f"a node takes {shape.resources.get(binding, 1)} of it, so not one node may come: pods stay Pending with "
            '"all available instance types exceed limits for nodepool"',
            f"at least {shape.resources.get(binding, 1)}, and whole nodes of every key together",
        )
    elif binding != RESOURCE_NAME and RESOURCE_NAME in allowed and allowed[binding] < allowed[RESOURCE_NAME]:
        yield Finding(
            node_pool.object,
            f"spec.limits.{binding}",
            node_pool.limits[binding],
            f"it is used up after {counted(allowed[binding], 'node')} of {shape.accelerators} accelerators, where "
            f"{RESOURCE_NAME} {node_pool.limits[RESOURCE_NAME]} allows {allowed[RESOURCE_NAME]}",
            f"{shape.limits_for(allowed[RESOURCE_NAME], node_pool.limits)[binding]} for as many nodes",
        )
    amount = amount_of(node_pool.limits.get(RESOURCE_NAME, ""))
    if amount is not None and amount >= shape.accelerators and amount % shape.accelerators:
        yield Finding(
            node_pool.object,
            f"spec.limits[{RESOURCE_NAME}]",
            node_pool.limits[RESOURCE_NAME],
            f"{amount % shape.accelerators} of them are no whole node of {shape.accelerators} and never bought",
            f"a multiple of {shape.accelerators}",
        )


def _enough(survey: Survey, pool: AcceleratorPool) -> Iterator[Finding]:
    """Whether the replicas that may be wanted find their nodes: all of them, or the promised ones under a ceiling."""
    targets = survey.scalers_of(pool)
    most = sum(each.scaler.spec.max_replicas * (each.accelerators or 0) for each in targets)
    least = sum(each.scaler.spec.min_replicas * (each.accelerators or 0) for each in targets)
    ceiling = None if pool.spec.ceilings is None else pool.spec.ceilings.accelerators
    if ceiling is not None and least > ceiling:
        yield Finding(
            f"AcceleratorPool {pool.name}",
            "spec.ceilings.accelerators",
            str(ceiling),
            f"minReplicas of its scalers take {least} accelerators, more than the ceiling: some stay Pending for ever",
            f"at least {least}, or smaller minReplicas",
        )
    if pool.spec.mode is AcceleratorPoolMode.MANAGE:
        return
    allowed = 0
    for name in pool.spec.node_pools.names:
        node_pool = survey.node_pools.get(name)
        shape = None if node_pool is None else shape_of(pool, node_pool)
        nodes = None if node_pool is None or shape is None else shape.whole_nodes(node_pool.limits)
        if shape is None or nodes is None:
            return
        allowed += nodes * shape.accelerators
    if most > allowed:
        yield Finding(
            f"AcceleratorPool {pool.name}",
            "spec.mode",
            "Observe",
            f"maxReplicas of its scalers take {most} accelerators, its NodePools' limits hold {allowed}: the rest "
            "stays Pending",
            "mode: Manage keeps the limits in step, or raise them by hand",
        )


def _quota(survey: Survey) -> Iterator[Finding]:
    """Whether the account's quota of CPUs, where it was given, holds the nodes of all ceilings together."""
    if survey.quota_cpus is None:
        return
    cpus_by_pool = {
        pool.name: pool.spec.ceilings.accelerators // shape.accelerators * shape.cpu
        for pool in survey.pools
        if (shape := pool.spec.node_shape) is not None
        and shape.cpu is not None
        and pool.spec.ceilings is not None
        and pool.spec.ceilings.accelerators is not None
    }
    cpus = sum(cpus_by_pool.values())
    if cpus > survey.quota_cpus:
        yield Finding(
            f"AcceleratorPool {', '.join(sorted(cpus_by_pool))}",
            "spec.ceilings.accelerators",
            f"{cpus} vCPU of nodes",
            f"a quota of {survey.quota_cpus} vCPU holds fewer (nodes that are being replaced count twice meanwhile)",
            "a larger quota, or lower ceilings",
        )
