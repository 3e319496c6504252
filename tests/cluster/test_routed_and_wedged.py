"""Two pools behind one gateway go each by its own load, and a replica that stands still is never the last one kept."""

from __future__ import annotations

import time

import pytest

from tests.cluster.harness.policies import quick_policy
from tests.servers.trtllm_page import render_trtllm_page
from tests.servers.vllm_exporters import PoolLoad
from tests.servers.vllm_page import PodLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

RATE_WINDOW_SECONDS = 10
DOWN_WINDOW_SECONDS = 5
FOUR = {"perReplica": 4}
# A minute of samples, then a minute of patience; the rest is a busy machine's.
WEDGED_WITHIN_SECONDS = 300
SERVES = {"prompt_tokens_per_second": 2000.0, "generation_tokens_per_second": 300.0, "requests_per_second": 2.0}


def test_two_routed_pools_and_a_replica_that_stands_still(
    control_plane, start_fleet, start_controller, exporters, prometheus, tmp_path
) -> None:
    first_tokens = start_fleet(replicas=2, name="trtllm", scraped=False)
    exporters.set_page(first_tokens.namespace, render_trtllm_page)
    the_rest = start_fleet(replicas=3, name="vllm")
    first_tokens.set_load(PoolLoad(running=8, **SERVES))
    the_rest.set_load(PoolLoad(running=24, waiting=11, **SERVES))
    # It holds its requests and gives no token from the start; the other two go on.
    wedged = the_rest.pod_names()[0]
    # The worst case, and the same in every run: a smaller count takes away those that work, and leaves it.
    dear = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "100"}}}
    control_plane.api.merge(f"/api/v1/namespaces/{the_rest.namespace}/pods/{wedged}", dear)
    exporters.set_pod_load(the_rest.namespace, wedged, PodLoad(running=8, kv_cache_usage=0.9))
    pools = ((first_tokens, "tensorrt-llm", 2, {}), (the_rest, "vllm", 1, {"waitingRequests": FOUR}))
    for fleet, engine, minimum, own in pools:
        pending = {"query": f'sum(gateway_pending_requests{{pool="{fleet.name}"}})', "perReplica": 4}
        signals = {"tokenRate": {"perReplicaPerSecond": 2000}, **own, "pendingRequests": pending}
        exporters.set_gateway_pending(fleet.name, 0)
        fleet.create_scaler(
            {
                **quick_policy(signals=signals, minimum=minimum, down_window_seconds=DOWN_WINDOW_SECONDS),
                "engine": engine,
            }
        )
    config = tmp_path / "prometheus-client.yaml"
    config.write_text(f"queries: {{rate_window_seconds: {RATE_WINDOW_SECONDS}}}\n")
    namespaces = [first_tokens.namespace, the_rest.namespace]
    start_controller(first_tokens, namespaces=namespaces, arguments=["--prometheus-config", config]).wait_deciding(
        records=6
    )

    # The gateway holds back first tokens: the one pool grows, the other is not asked.
    exporters.set_gateway_pending("trtllm", 20)
    first_tokens.wait_replicas(5)
    assert the_rest.written_counts() == []
    exporters.set_gateway_pending("trtllm", 0)
    first_tokens.wait_replicas(2)

    # Wedged, it is supply no longer: one more is asked for in its place, whatever piles up on it.
    condition = the_rest.wait_condition(
        "ReplicasWork", "False", "WedgedReplicas", timeout_seconds=WEDGED_WITHIN_SECONDS
    )
    assert wedged in condition["message"]
    the_rest.wait_replicas(4)
    exporters.set_pod_load(the_rest.namespace, wedged, PodLoad(running=8, waiting=400, kv_cache_usage=0.9))
    # One replica would do, but that would be the one that stands still.
    the_rest.set_load(PoolLoad(running=1, prompt_tokens_per_second=100.0, generation_tokens_per_second=30.0))
    the_rest.wait_replicas(2)
    time.sleep(2 * DOWN_WINDOW_SECONDS)
    written = the_rest.written_counts()
    assert (written[0], min(written), written[-1]) == (4, 2, 2), written
    assert max(first_tokens.written_counts()) == 5
