from __future__ import annotations

from typing import Any

import pytest

from autoscaler.api.replica_template import template_of


def a_deployment(pod: dict[str, Any] | None = None, container: dict[str, Any] | None = None) -> dict[str, Any]:
    engine = {"name": "vllm", "image": "vllm:1", "args": ["--model", "llama"], **(container or {})}
    return {"spec": {"replicas": 4, "template": {"metadata": {}, "spec": {"containers": [engine], **(pod or {})}}}}


def a_group(size: int, worker_image: str = "vllm:1") -> dict[str, Any]:
    pod = a_deployment(container={"image": worker_image})["spec"]["template"]
    return {"spec": {"leaderWorkerTemplate": {"size": size, "workerTemplate": pod}}}


REQUIRED = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h200"]}]}]}


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(a_deployment(container={"image": "vllm:2"}), id="another image"),
        pytest.param(a_deployment(container={"args": ["--model", "llama", "--enforce-eager"]}), id="other arguments"),
        pytest.param(a_deployment(container={"env": [{"name": "MODEL", "value": "qwen"}]}), id="another environment"),
        pytest.param(
            a_deployment(container={"resources": {"limits": {"nvidia.com/gpu": "2"}}}), id="more accelerators"
        ),
        pytest.param(a_deployment({"nodeSelector": {"gpu": "h200"}}), id="another kind of accelerator"),
        pytest.param(
            a_deployment({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": REQUIRED}}}),
            id="another kind of accelerator, by affinity",
        ),
        pytest.param(a_group(2), id="a group of two pods"),
    ],
)
def test_another_replica_is_another_template(changed: dict[str, Any]) -> None:
    assert template_of(changed) != template_of(a_deployment())


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({**a_deployment(), "metadata": {"labels": {"a": "b"}}}, id="labels of the target"),
        pytest.param(a_deployment(container={"readinessProbe": {"httpGet": {"port": 1}}}), id="a probe"),
        pytest.param(a_deployment({"terminationGracePeriodSeconds": 600}), id="the grace at the end"),
    ],
)
def test_the_same_replica_is_the_same_template(changed: dict[str, Any]) -> None:
    assert template_of(changed) == template_of(a_deployment())


def test_a_restart_and_a_count_change_nothing() -> None:
    restarted = a_deployment()
    restarted["spec"]["replicas"] = 9
    restarted["spec"]["template"]["metadata"] = {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}
    assert template_of(restarted) == template_of(a_deployment())


def test_groups_differ_by_size_and_worker() -> None:
    assert len({template_of(each) for each in (a_group(2), a_group(4), a_group(2, "vllm:2"))}) == 3


def test_a_kind_without_a_pod_template_tells_nothing() -> None:
    assert template_of({"spec": {"replicas": 2}}) is None
