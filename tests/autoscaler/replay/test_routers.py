from __future__ import annotations

import numpy as np
import pytest

from autoscaler.replay.cold_start import WARM_NODE
from autoscaler.replay.replica_profile import built_in_profile
from autoscaler.replay.replica_set import ReplicaSet, SimulatedPod
from autoscaler.replay.routers import ROUTERS, RouterName


def some_pods(replicas: int = 8) -> list[SimulatedPod]:
    profile = built_in_profile("llama-3.1-8b-bf16-1xa100-vllm")
    pods = ReplicaSet("chat", profile, WARM_NODE, np.random.default_rng(1))
    pods.add_ready(replicas, 0.0)
    return pods.start_ready(0.0)


def routed(router: RouterName, requests: int = 800) -> list[int]:
    pods = some_pods()
    route, loads = ROUTERS[router](np.random.default_rng(2)), [0] * len(pods)
    for _ in range(requests):
        loads[route.choose(pods, loads)] += 1
    return sorted(loads)


@pytest.mark.parametrize(
    "router",
    [
        pytest.param(RouterName.LEAST_LOADED, id="the least loaded"),
        pytest.param(RouterName.ROUND_ROBIN, id="one after the other"),
    ],
)
def test_these_routers_share_equal_requests_out_evenly(router: RouterName) -> None:
    assert routed(router) == [100] * 8


def test_an_imbalanced_router_gives_some_replicas_several_times_as_much_as_others() -> None:
    shares = routed(RouterName.IMBALANCED)
    assert shares[-1] > 3 * shares[0]
    assert sum(shares) == 800


def test_the_least_loaded_router_avoids_the_busy_replica() -> None:
    pods, loads = some_pods(3), [0, 5, 0]
    router = ROUTERS[RouterName.LEAST_LOADED](np.random.default_rng(2))
    for _ in range(9):
        loads[router.choose(pods, loads)] += 1
    assert loads == [5, 5, 4]
