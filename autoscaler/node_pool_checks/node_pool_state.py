"""Do the NodePools exist, make nodes, and make nodes of one shape and of the capacity type they are named for?"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.api.accelerators import RESOURCE_NAME
from autoscaler.api.node_shape import accelerators_of
from autoscaler.finding import Finding
from autoscaler.node_pool_checks.survey_types import CAPACITY_TYPE_KEY, Survey, SurveyedNodePool

GPU_COUNT_KEY = "karpenter.k8s.aws/instance-gpu-count"


def check_node_pool_state(survey: Survey) -> Iterator[Finding]:
    """Findings about every NodePool that an AcceleratorPool names."""
    for pool in survey.pools:
        for role, name in _roles(pool):
            node_pool = survey.node_pools.get(name)
            if node_pool is None:
                if survey.karpenter.serves_v1:
                    yield _missing(pool, role, name)
                continue
            yield from _readiness(node_pool)
            yield from _capacity_type(pool, role, node_pool)
            yield from _one_shape(node_pool)
            yield from _stated_shape(pool, node_pool)


def _roles(pool: AcceleratorPool) -> Iterator[tuple[str, str]]:
    yield "onDemand", pool.spec.node_pools.on_demand
    if pool.spec.node_pools.spot is not None:
        yield "spot", pool.spec.node_pools.spot


def _missing(pool: AcceleratorPool, role: str, name: str) -> Finding:
    return Finding(
        f"AcceleratorPool {pool.name}",
        f"spec.nodePools.{role}",
        name,
        "there is no such NodePool: none of its nodes are counted, and replicas that need them stay Pending",
        "create the NodePool, or correct the name",
    )


def _readiness(node_pool: SurveyedNodePool) -> Iterator[Finding]:
    if node_pool.ready_status != "True":
        yield Finding(
            node_pool.object,
            "status.conditions[Ready]",
            f"{node_pool.ready_status} ({node_pool.ready_message})",
            "Karpenter passes it over: it makes no node, whatever its limits are",
            "kubectl describe it and its NodeClass, and mend what they name",
        )
    elif node_pool.ready_generation < node_pool.generation:
        yield Finding(
            node_pool.object,
            "status.conditions[Ready].observedGeneration",
            f"{node_pool.ready_generation}, the spec is at {node_pool.generation}",
            "Karpenter has not judged the spec that stands there now",
            "look again in a minute; where it stays so, Karpenter does not run",
        )
    if node_pool.static_replicas is not None:
        yield Finding(
            node_pool.object,
            "spec.replicas",
            str(node_pool.static_replicas),
            "the number of its nodes is fixed: waiting replicas add none, and no limit but nodes may be set on it",
            "name a NodePool without spec.replicas",
        )


def _capacity_type(pool: AcceleratorPool, role: str, node_pool: SurveyedNodePool) -> Iterator[Finding]:
    bought = node_pool.values.get(CAPACITY_TYPE_KEY)
    fitting = {"spot"} if role == "spot" else {"on-demand", "reserved"}
    if bought is None or not set(bought) <= fitting:
        yield Finding(
            node_pool.object,
            f"spec.template.spec.requirements[{CAPACITY_TYPE_KEY}]",
            "not stated: all" if bought is None else ", ".join(bought),
            f"AcceleratorPool {pool.name} takes all its nodes for {role}, so its split is not what the nodes are",
            f"require {CAPACITY_TYPE_KEY} In [{'spot' if role == 'spot' else 'on-demand'}]",
        )


def _one_shape(node_pool: SurveyedNodePool) -> Iterator[Finding]:
    allowed = node_pool.values.get(GPU_COUNT_KEY, ())
    real = sorted({capacity.get(RESOURCE_NAME, "0") for capacity in node_pool.capacities})
    for field, counts in (
        (f"spec.template.spec.requirements[{GPU_COUNT_KEY}]", allowed),
        (f"status.capacity[{RESOURCE_NAME}] of its nodes", tuple(real)),
    ):
        if len(counts) > 1:
            yield Finding(
                node_pool.object,
                field,
                ", ".join(counts),
                "a limit in whole nodes means nothing where nodes differ: Karpenter reserves the largest of them for "
                "each node it makes in one go, and too few come",
                "one NodePool for each number of accelerators a node",
            )


def _stated_shape(pool: AcceleratorPool, node_pool: SurveyedNodePool) -> Iterator[Finding]:
    if pool.spec.node_shape is None or len(set(map(accelerators_of, node_pool.capacities))) > 1:
        return  # not said, or there is no one shape to state
    shape = pool.spec.node_shape.shape
    for contradiction in sorted({text for each in node_pool.capacities for text in shape.contradictions(each)}):
        yield Finding(
            f"AcceleratorPool {pool.name}",
            "spec.nodeShape",
            f"{contradiction} (NodePool {node_pool.name})",
            "limits are set for the nodes that are there, and as long as there are none for wrong ones",
            "state the capacity of a node as `kubectl get node -o jsonpath={.status.capacity}` shows it",
        )
