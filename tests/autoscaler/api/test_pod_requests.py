from __future__ import annotations

from typing import Any

import pytest

from autoscaler.api.pod_requests import NO_REQUESTS, PodRequests, requests_of_pod, requests_of_template


def container(*, requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, **more: Any) -> Any:
    return {"resources": {"requests": requests or {}, "limits": limits or {}}, **more}


@pytest.mark.parametrize(
    ("pod", "asked"),
    [
        pytest.param({}, NO_REQUESTS, id="a pod without containers"),
        pytest.param({"containers": [{}]}, NO_REQUESTS, id="a container that asks for nothing"),
        pytest.param(
            {"containers": [container(requests={"cpu": "1500m", "memory": "2Gi"}), container(requests={"cpu": 2})]},
            PodRequests(3500, 2 * 2**30),
            id="containers together",
        ),
        pytest.param(
            {"containers": [container(limits={"cpu": "4", "nvidia.com/gpu": "8"}, requests={"cpu": "1"})]},
            PodRequests(1000, 0, 8),
            id="a limit is a request where there is none",
        ),
        pytest.param(
            {
                "containers": [container(requests={"cpu": "2"})],
                "initContainers": [
                    container(requests={"cpu": "3", "memory": "1Gi"}),
                    container(requests={"cpu": "500m"}, restartPolicy="Always"),
                ],
            },
            PodRequests(3000, 2**30),
            id="the largest init container, or all that run together",
        ),
        pytest.param(
            {"containers": [container(requests={"cpu": "1"})], "overhead": {"cpu": "250m"}},
            PodRequests(1250),
            id="what the sandbox takes",
        ),
        pytest.param(
            {"containers": [container(requests={"cpu": "much"})]}, NO_REQUESTS, id="what is no quantity counts for none"
        ),
    ],
)
def test_what_a_pod_asks_for(pod: dict[str, Any], asked: PodRequests) -> None:
    assert requests_of_pod(pod) == asked
    assert requests_of_template({"spec": {"template": {"spec": pod}}}) == asked


def test_a_group_of_pods_asks_for_no_one_knows_what() -> None:
    group = {"workerTemplate": {"spec": {"containers": [container(requests={"cpu": "4"})]}}, "size": 2}
    assert requests_of_template({"spec": {"leaderWorkerTemplate": group}}) == NO_REQUESTS
