from __future__ import annotations

import pytest

from autoscaler.prometheus.workload_names import WORKLOAD_LABEL, with_workload, workload_of


@pytest.mark.parametrize(
    ("pod", "workload"),
    [
        pytest.param("vllm-llama-70b-7d4b9c6f5-x2k4z", "vllm-llama-70b", id="Deployment"),
        pytest.param("vllm-5d8-x2k4z", "vllm", id="Deployment with a short hash"),
        pytest.param("vllm-12", "vllm", id="StatefulSet"),
        pytest.param("vllm-8b-0", "vllm-8b", id="StatefulSet whose name has a number"),
        pytest.param("lws-3", "lws", id="leader of a LeaderWorkerSet group"),
        pytest.param("lws-3-1", "lws-3", id="worker of a LeaderWorkerSet group"),
        pytest.param("ray-gpu-worker-x2k4z", "ray-gpu-worker", id="a pod made by an operator"),
        pytest.param("vllm-debug", "vllm-debug", id="a pod of its own"),
        pytest.param("vllm", "vllm", id="a name of one word"),
        pytest.param("vllm-24567", "vllm", id="digits that a ReplicaSet may have made too"),
        pytest.param("vllm-bcd-x2k4z-x2k4z", "vllm-bcd", id="three random words: two are an ending"),
        pytest.param("-0", "-0", id="an ending alone is a name"),
    ],
)
def test_the_workload_of_a_pod(pod: str, workload: str) -> None:
    assert workload_of(pod) == workload


def test_prometheus_is_told_the_same_in_one_step() -> None:
    promql = with_workload("up", "pod")
    assert promql.startswith(f'label_replace(up, "{WORKLOAD_LABEL}", "$1", "pod", "(.+?)(?:-')
