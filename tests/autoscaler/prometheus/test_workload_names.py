from __future__ import annotations

import pytest

from autoscaler.prometheus.workload_names import with_workload, workload_of


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
    ],
)
def test_the_workload_of_a_pod(pod: str, workload: str) -> None:
    assert workload_of(pod) == workload


def test_prometheus_is_told_the_same_patterns_and_the_last_match_counts() -> None:
    assert with_workload("up", "pod").count("label_replace(") == 4
    assert with_workload("up", "pod").startswith("label_replace(label_replace(label_replace(label_replace(up, ")
