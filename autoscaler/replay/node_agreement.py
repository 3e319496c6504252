"""Do the AcceleratorPools of a policy and the nodes of a fleet fit together, and what is replayed where they do not?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from autoscaler.api.accelerator_pool import AcceleratorPool, AcceleratorPoolMode, AcceleratorPoolSpec
from autoscaler.api.node_shape import amount_of
from autoscaler.replay.node_setup import NodePoolSetup, NodesSetup
from policies.capacity_split import CapacityType


@dataclass(frozen=True, slots=True)
class ReadAcceleratorPool:
    """An AcceleratorPool, and where it stands: file and line."""

    pool: AcceleratorPool
    where: str


def as_if_managed(pool: AcceleratorPool) -> AcceleratorPool:
    """The pool in mode Manage, as far as it says what a node is: nothing real is written in a simulation."""
    if pool.spec.mode is AcceleratorPoolMode.MANAGE or pool.spec.node_shape is None:
        return pool
    spec = AcceleratorPoolSpec.model_validate({**pool.spec.model_dump(), "mode": AcceleratorPoolMode.MANAGE})
    return replace(pool, spec=spec)


def splits_targets(pools: Sequence[ReadAcceleratorPool], nodes: NodesSetup | None) -> bool:
    """Whether two targets of a policy can be told apart on this fleet: an AcceleratorPool names its spot NodePool."""
    if nodes is None:
        return False
    spot = {pool.name for pool in nodes.node_pools if pool.capacity_type is CapacityType.SPOT}
    return any(each.pool.spec.node_pools.spot in spot for each in pools)


def assumed_of_pools(
    policy: str, pools: Sequence[ReadAcceleratorPool], nodes: NodesSetup | None, has_two_targets: bool = False
) -> Iterator[str]:
    """What is assumed of a policy's AcceleratorPools on this fleet, a sentence each."""
    if has_two_targets and splits_targets(pools, nodes):
        yield f"{policy}: all first replicas are on demand; those on spot come as the split has it"
    elif has_two_targets:
        yield f"{policy}: its two targets are replayed as one, as the fleet has no nodes of its spot NodePool"
    if nodes is not None and not pools:
        limits = "the limits of the FLEET.yaml" if any(pool.limits for pool in nodes.node_pools) else "no limits"
        yield f"{policy}: no AcceleratorPool; its nodes have {limits}"
    for each in pools:
        name, spec = each.pool.name, each.pool.spec
        if nodes is None:
            yield (
                f"{policy}: AcceleratorPool {name} is left out, as the fleet has no nodes; describe them under nodes "
                "in a FLEET.yaml"
            )
        elif spec.node_shape is None:
            yield f"{policy}: AcceleratorPool {name} has no nodeShape, so limits stay as the FLEET.yaml states them"
        elif spec.mode is not AcceleratorPoolMode.MANAGE:
            yield f"{policy}: AcceleratorPool {name} is in mode {spec.mode.value}; replayed as if it were Manage"


def disagreements(pools: Sequence[ReadAcceleratorPool], nodes: NodesSetup) -> Iterator[str]:
    """What a policy's AcceleratorPools say otherwise than the fleet, each with file, line and what to do."""
    node_pools = {pool.name: pool for pool in nodes.node_pools}
    for each in pools:
        spec = each.pool.spec
        for name, kind in (
            (spec.node_pools.on_demand, CapacityType.ON_DEMAND),
            (spec.node_pools.spot, CapacityType.SPOT),
        ):
            if name is not None:
                yield from _node_pool_problems(
                    f"{each.where}: AcceleratorPool {each.pool.name}", name, kind, node_pools
                )
        if spec.node_shape is not None:
            yield from _shape_problems(each, spec.node_shape.shape.resources, nodes.shape.resources)


def _node_pool_problems(
    who: str, name: str, kind: CapacityType, node_pools: Mapping[str, NodePoolSetup]
) -> Iterator[str]:
    if name not in node_pools:
        known = ", ".join(sorted(node_pools))
        yield f"{who} names NodePool {name}, and the fleet has {known}; add it to nodes.nodePools of the FLEET.yaml"
    elif node_pools[name].capacity_type is not kind:
        yield (
            f"{who} takes NodePool {name} for {kind.value}, and in the FLEET.yaml it is "
            f"{node_pools[name].capacity_type.value}; correct the one that is wrong"
        )


def _shape_problems(each: ReadAcceleratorPool, stated: Mapping[str, str], real: Mapping[str, str]) -> Iterator[str]:
    for key in sorted(stated.keys() & real.keys()):
        if amount_of(stated[key]) != amount_of(real[key]):
            yield (
                f"{each.where}: AcceleratorPool {each.pool.name}: a node has {key} {stated[key]} there and {real[key]} "
                "in the FLEET.yaml; correct the one that is wrong"
            )
