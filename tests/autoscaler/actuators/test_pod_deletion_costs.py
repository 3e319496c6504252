from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from autoscaler.actuators.pod_deletion_costs import ANNOTATION, PodDeletionCosts
from autoscaler.clock import SystemClock
from autoscaler.kubernetes_gateway.connection import connect
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.observers.workload import LivePod, ScaleTarget
from tests.fakes.api_server import Answer, FakeApiServer

TARGET = ScaleTarget("inference", "Deployment", "llama", "", "", "")
WORK = {"a1": 9.0, "a2": 1.0, "b1": 5.0}


def _pod(name: str, node: str, *, owner: str = "ReplicaSet/llama-1", cost: str | None = None) -> dict[str, Any]:
    kind, controller = owner.split("/")
    return {
        "metadata": {
            "name": name,
            "labels": {"app": "llama", "pod-template-hash": "1"},
            "ownerReferences": [{"controller": True, "kind": kind, "name": controller}],
            "annotations": {} if cost is None else {ANNOTATION: cost},
        },
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as fake:
        fake.put("pods", _pod("a1", "node-a"))
        fake.put("pods", _pod("a2", "node-a"))
        fake.put("pods", _pod("b1", "node-b"))
        fake.put("pods", _pod("exporter", "node-b", owner="DaemonSet/exporter"))
        yield fake


StartMarking = Callable[..., PodDeletionCosts]


@pytest.fixture
def start(server: FakeApiServer, tmp_path: Path) -> Iterator[StartMarking]:
    with ExitStack() as cleanup:

        def begin(note: Callable[[int], None] = lambda _: None, *, leads: bool = True) -> PodDeletionCosts:
            connection = connect(server.write_kubeconfig(tmp_path))
            cluster = WatchedCluster(connection, SystemClock(), lambda: 0.5, watches_own_objects=False)
            cluster.start()
            cleanup.callback(cluster.stop)
            pause = threading.Event()
            while not cluster.pods.has_synced:
                pause.wait(0.02)
            return PodDeletionCosts(connection, cluster, lambda: leads, lambda _, pod: WORK.get(pod), note)

        yield begin


def costs(server: FakeApiServer) -> dict[str, str]:
    found = {pod["metadata"]["name"]: pod["metadata"]["annotations"].get(ANNOTATION) for pod in server.all("pods")}
    return {name: cost for name, cost in found.items() if cost is not None}


def live(*names: str) -> list[LivePod]:
    return [LivePod(name, name, True, 0.0) for name in names]


ALL = live("a1", "a2", "b1", "exporter")


@pytest.mark.parametrize(
    ("fewer", "marked", "message"),
    [
        pytest.param(1, {"b1": "-1999"}, "1 node will be empty: node-b", id="the one whose node becomes empty"),
        pytest.param(2, {"b1": "-1999", "a2": "-1998"}, "1 node will be empty: node-b", id="then the least work"),
        pytest.param(
            3,
            {"b1": "-1999", "a2": "-1998", "a1": "-1997"},
            "2 nodes will be empty: node-a, node-b",
            id="the pod of a DaemonSet keeps no node",
        ),
    ],
)
def test_victims_are_marked_in_their_order(
    server: FakeApiServer, start: StartMarking, fewer: int, marked: dict[str, str], message: str
) -> None:
    emptied: list[int] = []
    result = start(emptied.append).mark(TARGET, ALL, fewer, None)
    assert costs(server) == marked
    assert result.message == message
    assert emptied == [len(result.victims.emptied_nodes)]


def test_what_an_earlier_choice_left_is_taken_away(server: FakeApiServer, start: StartMarking) -> None:
    server.put("pods", _pod("a1", "node-a", cost="-1999"))
    start().mark(TARGET, ALL, 1, None)
    assert costs(server) == {"b1": "-1999"}


def test_a_cost_of_somebody_else_is_left_alone(server: FakeApiServer, start: StartMarking) -> None:
    server.put("pods", _pod("a1", "node-a", cost="-2147483648"))
    result = start().mark(TARGET, ALL, 1, None)
    assert costs(server) == {"a1": "-2147483648"}
    assert "somebody else sets" in result.message


def test_a_refusal_is_told_and_ends_the_marking(server: FakeApiServer, start: StartMarking) -> None:
    server.fail(lambda request: request.method == "PATCH", Answer(403), times=9)
    result = start().mark(TARGET, ALL, 3, None)
    assert "the pods were not marked" in result.message
    assert len(server.requests_of(lambda request: request.method == "PATCH")) == 1


def test_who_does_not_lead_marks_nothing(server: FakeApiServer, start: StartMarking) -> None:
    result = start(leads=False).mark(TARGET, ALL, 1, None)
    assert costs(server) == {}
    assert "does not hold the lease" in result.message
