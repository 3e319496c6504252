"""What is done about a node that is about to go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autoscaler.drain_watcher.drain import DrainWatcher
from autoscaler.drain_watcher.instance_metadata import MetadataUnavailable, NoNotice, Notice
from autoscaler.kubernetes_gateway.connection import ApiConnection, connect
from autoscaler.kubernetes_gateway.watched_objects import reduce_node
from autoscaler.observers.leaving_nodes import OWN_TAINT, Departure, departure_of_node
from tests.fakes.api_server import Answer, FakeApiServer

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
GPU_TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
NOTICE = Notice("terminate", "2030-01-01T00:00:00Z")


class Node:
    def __init__(self, server: FakeApiServer, folder: Path) -> None:
        self.server = server
        self.drain_file = folder / "draining"
        self.notice: Notice | NoNotice | MetadataUnavailable = NoNotice()
        self._connection: ApiConnection = connect(server.write_kubeconfig(folder))
        self.put([GPU_TAINT])

    def put(self, taints: list[dict[str, str]]) -> None:
        self.server.put("nodes", {"metadata": {"name": "gpu-1"}, "spec": {"taints": taints}, "status": READY})

    def watcher(self, *, asks_the_cloud: bool = True) -> DrainWatcher:
        notice: Callable[[], Any] | None = (lambda: self.notice) if asks_the_cloud else None
        return DrainWatcher(self._connection, "gpu-1", self.drain_file, notice)

    @property
    def spec(self) -> dict[str, Any]:
        document = self._connection.get("/api/v1/nodes/gpu-1")
        assert isinstance(document, dict)
        return dict(document["spec"])

    @property
    def patches(self) -> int:
        return sum(request.method == "PATCH" for request in self.server.requests)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with FakeApiServer() as server:
        yield Node(server, tmp_path)


def test_a_node_that_stays_is_left_alone(node: Node) -> None:
    assert node.watcher().look()

    assert not node.drain_file.exists()
    assert node.patches == 0


def test_a_notice_fails_readiness_and_cordons_once(node: Node) -> None:
    watcher = node.watcher()
    node.notice = NOTICE
    assert watcher.look()
    assert watcher.look()

    assert "terminate at 2030-01-01T00:00:00Z" in node.drain_file.read_text()
    assert node.spec["unschedulable"] is True
    assert node.spec["taints"] == [GPU_TAINT, {"key": OWN_TAINT, "effect": "NoSchedule"}]
    assert node.patches == 1
    reduced = reduce_node({"metadata": {"name": "gpu-1"}, "spec": node.spec, "status": READY})
    assert departure_of_node(reduced) is Departure.NOTICED, "the controller orders replacements by it"


def test_once_it_drains_it_drains(node: Node) -> None:
    node.notice = NOTICE
    node.watcher().look()
    node.notice = NoNotice()
    node.put([GPU_TAINT])

    heir = node.watcher()
    assert heir.is_draining, "also after a restart"
    assert heir.look()
    assert node.spec["unschedulable"] is True


@pytest.mark.parametrize(
    "taint",
    [
        pytest.param("karpenter.sh/disrupted", id="Karpenter drains"),
        pytest.param("aws-node-termination-handler/spot-itn", id="the termination handler drains"),
    ],
)
def test_who_drains_already_is_followed(node: Node, taint: str) -> None:
    node.put([{"key": taint, "effect": "NoSchedule"}])
    assert node.watcher(asks_the_cloud=False).look()

    assert "somebody has given notice of the node's end by a taint" in node.drain_file.read_text()
    assert node.spec["taints"] == [{"key": taint, "effect": "NoSchedule"}], "no taint beside theirs"
    assert node.spec["unschedulable"] is True


def test_without_the_api_server_readiness_fails_all_the_same_and_the_cordon_follows(node: Node) -> None:
    node.notice = NOTICE
    node.server.fail(lambda request: "nodes" in request.path, Answer(503))
    watcher = node.watcher()
    assert not watcher.look()
    assert node.drain_file.exists()

    assert watcher.look()
    assert node.spec["unschedulable"] is True


def test_a_node_that_changed_meanwhile_is_cordoned_at_the_next_look(node: Node) -> None:
    node.notice = NOTICE
    node.server.fail(lambda request: request.method == "PATCH", Answer(409))
    watcher = node.watcher()
    assert not watcher.look()
    assert watcher.look()
    assert node.spec["unschedulable"] is True


def test_without_the_metadata_service_a_look_has_not_seen_all_and_the_node_is_read(node: Node) -> None:
    node.notice = MetadataUnavailable("no route")
    watcher = node.watcher()
    assert not watcher.look()
    assert not watcher.is_draining

    node.put([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}])
    watcher.look()
    assert watcher.is_draining


def test_a_file_that_cannot_be_written_does_not_keep_it_from_cordoning(node: Node) -> None:
    node.drain_file = node.drain_file.parent / "missing" / "draining"
    node.notice = NOTICE
    watcher = node.watcher()
    assert watcher.look()
    assert watcher.is_draining
    assert node.spec["unschedulable"] is True
