from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autoscaler.actuators.loading_protection import LoadingProtection
from autoscaler.api.conditions import rfc3339
from autoscaler.clock import ManualClock, SystemClock
from autoscaler.kubernetes_gateway.background_writer import Write
from autoscaler.kubernetes_gateway.connection import ApiConnection, connect
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.kubernetes_gateway.watched_objects import DO_NOT_DISRUPT_ANNOTATION, PROTECTED_ANNOTATION
from tests.fakes.api_server import FakeApiServer

NOW = 1_700_000_000.0
LIMIT_SECONDS = 300.0
OURS = {DO_NOT_DISRUPT_ANNOTATION: "300s", PROTECTED_ANNOTATION: "true"}


class Queue:
    """Writes at once what is queued."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    def submit(self, key: tuple[str, ...], write: Write) -> None:
        write(self._connection)


def _node(name: str, capacity_type: str | None, **spec: Any) -> dict[str, Any]:
    labels = (
        {} if capacity_type is None else {"karpenter.sh/nodepool": "p", "karpenter.sh/capacity-type": capacity_type}
    )
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def _pod(
    node: str | None = "od",
    *,
    ready: str = "False",
    age_seconds: float = 0.0,
    unready_for_seconds: float | None = None,
    annotations: dict[str, str] | None = None,
) -> dict[str, Any]:
    changed_at = NOW - (age_seconds if unready_for_seconds is None else unready_for_seconds)
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": rfc3339(changed_at)}]
    if node is not None:
        scheduled_at = rfc3339(NOW - age_seconds)
        conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled_at})
    return {
        "metadata": {
            "name": "a",
            "annotations": annotations or {},
            "creationTimestamp": rfc3339(NOW - age_seconds),
        },
        "spec": {} if node is None else {"nodeName": node},
        "status": {"phase": "Running", "conditions": conditions},
    }


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as fake:
        fake.put("nodes", _node("od", "on-demand"))
        fake.put("nodes", _node("spot", "spot"))
        fake.put("nodes", _node("by-hand", None))
        fake.put("nodes", _node("noticed", "on-demand", taints=[{"key": "karpenter.sh/disrupted"}]))
        yield fake


Bring = Callable[[dict[tuple[str, str], float]], dict[str, str]]


@pytest.fixture
def bring(server: FakeApiServer, tmp_path: Path) -> Iterator[Bring]:
    """Brings the pod to what is wanted, and gives its annotations then."""
    connection = connect(server.write_kubeconfig(tmp_path))
    cluster = WatchedCluster(connection, SystemClock(), lambda: 0.5, watches_own_objects=False, watches_nodes=True)

    def to(limits_seconds: dict[tuple[str, str], float]) -> dict[str, str]:
        cluster.start()
        pause, deadline = threading.Event(), time.monotonic() + 30
        assert cluster.nodes is not None
        while not (cluster.pods.has_synced and cluster.nodes.has_synced):
            assert time.monotonic() < deadline
            pause.wait(0.02)
        LoadingProtection(cluster, Queue(connection), ManualClock(NOW)).bring_to(limits_seconds)
        (pod,) = server.all("pods")
        found: dict[str, str] = pod["metadata"]["annotations"]
        return found

    yield to
    cluster.stop()


WANTED = {("inference", "a"): LIMIT_SECONDS}


@pytest.mark.parametrize(
    ("pod", "annotations"),
    [
        pytest.param(_pod(), OURS, id="it loads on demand: protected for as long as a start may last"),
        pytest.param(
            _pod(age_seconds=900, unready_for_seconds=60),
            OURS | {DO_NOT_DISRUPT_ANNOTATION: "1140s"},
            id="one that loads anew has as long again, counted from its first start",
        ),
        pytest.param(_pod("spot"), {}, id="on spot it would get no replacement at a notice"),
        pytest.param(_pod("noticed"), {}, id="nor on a node that is about to go"),
        pytest.param(_pod("by-hand"), {}, id="a node that is not Karpenter's"),
        pytest.param(_pod(None), {}, id="without a node there is nothing to move"),
        pytest.param(_pod(age_seconds=300), {}, id="one that takes too long is stuck"),
        pytest.param(_pod(ready="True"), {}, id="it serves"),
        pytest.param(_pod(ready="True", annotations=OURS), {}, id="it serves: taken back"),
        pytest.param(_pod("noticed", annotations=OURS), {}, id="its node has been noticed since: taken back"),
        pytest.param(
            _pod(annotations={DO_NOT_DISRUPT_ANNOTATION: "true"}),
            {DO_NOT_DISRUPT_ANNOTATION: "true"},
            id="what somebody else has set is left alone",
        ),
        pytest.param(
            _pod(ready="True", annotations={DO_NOT_DISRUPT_ANNOTATION: "true"}),
            {DO_NOT_DISRUPT_ANNOTATION: "true"},
            id="also when it serves",
        ),
    ],
)
def test_what_stands_on_a_pod(
    server: FakeApiServer, bring: Bring, pod: dict[str, Any], annotations: dict[str, str]
) -> None:
    server.put("pods", pod)
    assert bring(WANTED) == annotations


def test_nobody_wants_it_any_more(server: FakeApiServer, bring: Bring) -> None:
    server.put("pods", _pod(annotations=OURS))
    assert bring({}) == {}


def test_it_is_written_once(server: FakeApiServer, bring: Bring) -> None:
    server.put("pods", _pod(annotations=OURS))
    assert bring(WANTED) == OURS
    assert server.requests_of(lambda request: request.method == "PATCH") == []
