from __future__ import annotations

from autoscaler.api.accelerator_pool import (
    AcceleratorPool,
    AcceleratorPoolStatus,
    InvalidAcceleratorPool,
    parse_accelerator_pool,
)
from autoscaler.api.conditions import rfc3339
from autoscaler.api.pool_observation import PoolNode, PoolScaler, observe_accelerator_pool, refuse_accelerator_pool
from policies.latency_class import ConsolidationSettings
from tests.autoscaler.api.objects import POOL, changed

NOW_SECONDS = 1_790_000_000.0


def a_pool(status: dict[str, object] | None = None) -> AcceleratorPool:
    metadata = {"name": "h100-interactive", "uid": "u", "generation": 3}
    pool = parse_accelerator_pool(POOL | {"metadata": metadata, "status": status or {}})
    assert isinstance(pool, AcceleratorPool)
    return pool


def conditions(status: AcceleratorPoolStatus) -> dict[str, tuple[str, str]]:
    return {each.type.value: (each.status.value, each.message) for each in status.conditions}


NODES = [
    PoolNode("h100-od", 8, True),
    PoolNode("h100-spot", 8, True),
    PoolNode("h100-spot", 8, False),
    PoolNode("a100", 8, True),
    PoolNode(None, 8, True),
]


def test_ready_nodes_of_its_own_node_pools_and_wishes_of_its_scalers_are_counted() -> None:
    scalers = [PoolScaler("a", "chat", 1, 8), PoolScaler("a", "agents", 3, 2), PoolScaler("a", "asleep", 0, 8)]
    status = observe_accelerator_pool(a_pool(), NODES, scalers, NOW_SECONDS)
    assert (status.nodes, status.accelerators_present) == (2, 16)
    assert (status.accelerators_wanted, status.scalers) == (14, 3)
    assert status.observed_generation == 3
    assert conditions(status) == {
        "SpecAccepted": ("True", "the spec is valid"),
        "NodesFound": ("True", "2 Ready nodes with karpenter.sh/nodepool=h100-od or karpenter.sh/nodepool=h100-spot"),
        "ScalersCounted": ("True", "all 3 InferenceScalers are counted"),
        "AcceleratorsSufficient": ("True", "14 accelerators wanted, 16 present"),
    }


def test_a_scaler_that_cannot_be_counted_is_named_with_what_to_do() -> None:
    scalers = [PoolScaler("a", "new", None, 8), PoolScaler("a", "chat", 2, None), PoolScaler("a", "agents", 3, 8)]
    status = observe_accelerator_pool(a_pool(), NODES, scalers, NOW_SECONDS)
    assert (status.accelerators_wanted, status.scalers) == (24, 3)
    assert conditions(status)["ScalersCounted"] == (
        "False",
        "2 of 3 InferenceScalers are not counted: a/chat (set acceleratorsPerReplica), a/new (nothing decided yet)",
    )
    assert conditions(status)["AcceleratorsSufficient"] == ("False", "24 accelerators wanted, 16 present")


def test_no_node_is_told_with_the_label_that_was_looked_for() -> None:
    status = observe_accelerator_pool(a_pool(), [], [], NOW_SECONDS)
    assert (status.nodes, status.accelerators_present, status.accelerators_wanted, status.scalers) == (0, 0, 0, 0)
    assert conditions(status)["NodesFound"] == (
        "False",
        "no Ready node with karpenter.sh/nodepool=h100-od or karpenter.sh/nodepool=h100-spot",
    )


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    first = observe_accelerator_pool(a_pool(), NODES, [], NOW_SECONDS)
    stored = a_pool(first.model_dump(mode="json", by_alias=True))
    second = observe_accelerator_pool(stored, [], [], NOW_SECONDS + 60)
    times = {each.type.value: each.last_transition_time for each in second.conditions}
    assert times["SpecAccepted"] == rfc3339(NOW_SECONDS)
    assert times["NodesFound"] == rfc3339(NOW_SECONDS + 60)


def test_a_refused_pool_says_what_is_wrong_and_counts_nothing() -> None:
    pool = parse_accelerator_pool(changed(POOL, {"mode": "Own", "/status": {"nodes": "many"}}))
    assert isinstance(pool, InvalidAcceleratorPool)
    status = refuse_accelerator_pool(pool, NOW_SECONDS)
    assert status.nodes is None
    assert conditions(status) == {"SpecAccepted": ("False", "spec.mode is \"Own\"; it must be 'Observe' or 'Manage'")}


def test_a_pool_with_a_latency_class_says_what_unfit_consolidation_costs() -> None:
    document = changed(POOL, {"latencyClass": "Interactive", "nodeShape": {"accelerators": 8}})
    pool = parse_accelerator_pool(document)
    assert isinstance(pool, AcceleratorPool)
    fit, soon = ConsolidationSettings("WhenEmpty", 1800.0, None), ConsolidationSettings("WhenEmpty", 300.0, None)

    status = observe_accelerator_pool(
        pool, NODES, [], NOW_SECONDS, consolidation={"h100-od": fit, "h100-spot": soon, "another": soon}
    )

    assert conditions(status)["ConsolidationFits"] == (
        "False",
        "NodePool h100-spot: spec.disruption.consolidateAfter is 5 min (a node goes 25 min sooner, which saves 3.33 "
        "accelerator-hours, and what comes back meanwhile waits for a node to boot and a model to load); wanted: 30m",
    )
    status = observe_accelerator_pool(pool, NODES, [], NOW_SECONDS, consolidation={"h100-od": fit})
    assert conditions(status)["ConsolidationFits"] == ("True", "nodes go as suits Interactive")
