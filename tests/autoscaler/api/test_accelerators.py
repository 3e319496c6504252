from __future__ import annotations

from typing import Any

import pytest

from autoscaler.api.accelerators import accelerators_of_template


def container(accelerators: Any, **fields: Any) -> dict[str, Any]:
    limits = {} if accelerators is None else {"nvidia.com/gpu": accelerators}
    return {"name": "c", "resources": {"limits": limits}, **fields}


def template(*containers: dict[str, Any], initial: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"spec": {"containers": list(containers), "initContainers": list(initial)}}


def deployment(*containers: dict[str, Any], initial: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"spec": {"template": template(*containers, initial=initial)}}


def group(size: int, worker: int, leader: int | None = None) -> dict[str, Any]:
    inner: dict[str, Any] = {"size": size, "workerTemplate": template(container(worker))}
    if leader is not None:
        inner["leaderTemplate"] = template(container(leader))
    return {"spec": {"leaderWorkerTemplate": inner}}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(deployment(container("8")), 8, id="one container"),
        pytest.param(deployment(container(2), container("4"), container(None)), 6, id="containers are added"),
        pytest.param(deployment(container("2"), initial=(container("4"),)), 4, id="a larger init container"),
        pytest.param(deployment(container("2"), initial=(container("1", restartPolicy="Always"),)), 3, id="a sidecar"),
        pytest.param(group(size=4, worker=8), 32, id="a group of leader and workers alike"),
        pytest.param(group(size=4, worker=8, leader=1), 25, id="a leader of its own"),
        pytest.param(deployment(container(None)), None, id="a template without accelerators says nothing"),
        pytest.param({"spec": {"replicas": 3}}, None, id="a kind without a template"),
        pytest.param({}, None, id="an empty document"),
        pytest.param(deployment(container("1k")), None, id="a quantity that is no whole number"),
    ],
)
def test_accelerators_of_a_replica(target: dict[str, Any], expected: int | None) -> None:
    assert accelerators_of_template(target) == expected
