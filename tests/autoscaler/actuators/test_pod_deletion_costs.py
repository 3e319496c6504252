from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autoscaler.actuators.joint_falls import CLAIMED_SECONDS
from autoscaler.actuators.pod_deletion_costs import ANNOTATION, PodDeletionCosts
from autoscaler.actuators.pod_drain import GOING_SECONDS, PodDrain
from autoscaler.actuators.victim_marker import ChosenVictims, CountFall
from autoscaler.clock import ManualClock, SystemClock
from autoscaler.kubernetes_gateway.connection import ApiConnection, connect
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.kubernetes_gateway.watched_objects import DRAINED_AT_ANNOTATION, SERVING_LABEL, WatchedPod
from autoscaler.observers.workload import LivePod, ScaleTarget
from policies.reasons import Reason
from policies.victims import NodesOfSplit
from tests.fakes.api_server import Answer, FakeApiServer

TARGET = ScaleTarget("inference", "Deployment", "llama", "", "", "")
WORK = {"a1": 9.0, "a2": 1.0, "b1": 5.0}
NOW = 1_700_000_000.0


def _pod(
    name: str, node: str, *, owner: str = "ReplicaSet/llama-1", cost: str | None = None, serving: str | None = "true"
) -> dict[str, Any]:
    kind, controller = owner.split("/")
    return {
        "metadata": {
            "name": name,
            "labels": {"app": "llama", "pod-template-hash": "1"}
            | ({} if serving is None else {SERVING_LABEL: serving}),
            "ownerReferences": [{"controller": True, "kind": kind, "name": controller}],
            "annotations": {} if cost is None else {ANNOTATION: cost},
        },
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as fake:
        fake.put("deployments", _deployment(app="llama"))
        fake.put("pods", _pod("a1", "node-a"))
        fake.put("pods", _pod("a2", "node-a"))
        fake.put("pods", _pod("b1", "node-b"))
        fake.put("pods", _pod("exporter", "node-b", owner="DaemonSet/exporter", serving=None))
        yield fake


def _deployment(**labels: str) -> dict[str, Any]:
    """The target, which has its pods by these labels."""
    return {"metadata": {"name": "llama"}, "spec": {"replicas": 3, "selector": {"matchLabels": labels}}}


def _is_read(cluster: WatchedCluster) -> bool:
    deployments = cluster.target_kind("apps/v1", "Deployment").objects
    return deployments is not None and deployments.has_synced


def _has_nodes(cluster: WatchedCluster) -> bool:
    return cluster.nodes is None or cluster.nodes.has_synced


class Marking:
    """A marker on a real watch of a fake server, with a clock of its own; `work` is what pods have in flight."""

    def __init__(self, connection: ApiConnection, cluster: WatchedCluster, *, leads: bool) -> None:
        self.clock = ManualClock(NOW)
        self.work = dict(WORK)
        self.emptied: list[int] = []
        self._cluster = cluster
        self.drain = PodDrain(connection, cluster, lambda: leads, self.clock)
        self.marker = PodDeletionCosts(
            connection,
            cluster,
            lambda: leads,
            lambda _, pod: (self.clock.now_seconds(), self.work[pod]) if pod in self.work else None,
            self.drain,
            lambda _, nodes: self.emptied.append(nodes),
        )

    def mark(self, to_replicas: int, pods: Sequence[LivePod] | None = None) -> ChosenVictims:
        return self.marker.mark(CountFall(TARGET, ALL if pods is None else pods, 3, to_replicas))

    def drain_to(self, to_replicas: int, from_replicas: int = 3) -> ChosenVictims:
        return self.marker.mark(CountFall(TARGET, ALL, from_replicas, to_replicas, drain_seconds=DEADLINE_SECONDS))

    def wait_seen(self, seen: Callable[[Mapping[str, WatchedPod]], bool]) -> None:
        """Waits until the watch has brought what was written."""
        pause, deadline = threading.Event(), time.monotonic() + 30
        while not seen({pod.name: pod for pod in self._cluster.pods.all()}):
            assert time.monotonic() < deadline
            pause.wait(0.02)

    def wait_out(self, *names: str) -> None:
        """Waits until the watch says that these pods are out of the router, and no others."""
        self.wait_seen(lambda pods: {n for n, pod in pods.items() if pod.drained_at_seconds is not None} == set(names))


StartMarking = Callable[..., Marking]
DEADLINE_SECONDS = 60.0


@pytest.fixture
def start(server: FakeApiServer, tmp_path: Path) -> Iterator[StartMarking]:
    with ExitStack() as cleanup:

        def begin(*, leads: bool = True, sees_nodes: bool = False) -> Marking:
            connection = connect(server.write_kubeconfig(tmp_path))
            cluster = WatchedCluster(
                connection, SystemClock(), lambda: 0.5, watches_own_objects=False, watches_nodes=sees_nodes
            )
            cluster.start()
            cleanup.callback(cluster.stop)
            pause = threading.Event()
            # A target is looked up when somebody asks.
            while not (cluster.pods.has_synced and _is_read(cluster) and _has_nodes(cluster)):
                pause.wait(0.02)
            return Marking(connection, cluster, leads=leads)

        yield begin


def costs(server: FakeApiServer) -> dict[str, str]:
    found = {pod["metadata"]["name"]: pod["metadata"]["annotations"].get(ANNOTATION) for pod in server.all("pods")}
    return {name: cost for name, cost in found.items() if cost is not None}


def out(server: FakeApiServer) -> set[str]:
    """The pods that a Service with the label in its selector leaves out, by our doing."""
    return {
        pod["metadata"]["name"]
        for pod in server.all("pods")
        if pod["metadata"]["labels"].get(SERVING_LABEL) == "false"
        and DRAINED_AT_ANNOTATION in pod["metadata"]["annotations"]
    }


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
    result = start().mark(3 - fewer)
    assert costs(server) == marked
    assert result.message == message
    assert str(result.emptied_nodes) == message[0]


def test_what_an_earlier_choice_left_is_taken_away(server: FakeApiServer, start: StartMarking) -> None:
    server.put("pods", _pod("a1", "node-a", cost="-1999"))
    start().mark(2)
    assert costs(server) == {"b1": "-1999"}


def test_a_cost_of_somebody_else_is_left_alone(server: FakeApiServer, start: StartMarking) -> None:
    server.put("pods", _pod("a1", "node-a", cost="-2147483648"))
    result = start().mark(2)
    assert costs(server) == {"a1": "-2147483648"}
    assert "somebody else sets" in result.message


def test_a_refusal_is_told_and_ends_the_marking(server: FakeApiServer, start: StartMarking) -> None:
    server.fail(lambda request: request.method == "PATCH", Answer(403), times=9)
    result = start().mark(0)
    assert "the pods were not marked" in result.message
    assert len(server.requests_of(lambda request: request.method == "PATCH")) == 1


def test_who_does_not_lead_marks_nothing(server: FakeApiServer, start: StartMarking) -> None:
    result = start(leads=False).mark(2)
    assert costs(server) == {}
    assert "does not hold the lease" in result.message


def _node(name: str, capacity_type: str) -> dict[str, Any]:
    labels = {"karpenter.sh/capacity-type": capacity_type, "karpenter.sh/nodepool": capacity_type}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


OTHER = ScaleTarget("inference", "Deployment", "other", "", "", "")


def _two_targets_on_both_kinds(server: FakeApiServer) -> None:
    """Each has a replica on demand and one on spot; a third node on demand is somebody else's."""
    for name in ("a1", "a2", "b1", "exporter"):
        server.delete("pods", name)
    for name in ("od-1", "od-2", "od-3"):
        server.put("nodes", _node(name, "on-demand"))
    for name in ("spot-1", "spot-2"):
        server.put("nodes", _node(name, "spot"))
    server.put("pods", _pod("llama-od", "od-1"))
    server.put("pods", _pod("llama-spot", "spot-1"))
    server.put("pods", _pod("other-od", "od-2", owner="ReplicaSet/other-1"))
    server.put("pods", _pod("other-spot", "spot-2", owner="ReplicaSet/other-1"))
    server.put("pods", _pod("third", "od-3", owner="ReplicaSet/third-1"))


@pytest.mark.parametrize("drain_seconds", [None, DEADLINE_SECONDS])
def test_two_targets_that_fall_in_one_tick_keep_the_floor_together(
    server: FakeApiServer, start: StartMarking, drain_seconds: float | None
) -> None:
    """Of three on demand beside two at 50 % one may go, whoever asks first."""
    _two_targets_on_both_kinds(server)
    marking = start(sees_nodes=True)
    floor = NodesOfSplit(50, 3, 2)
    first = CountFall(TARGET, live("llama-od", "llama-spot"), 2, 1, floor, drain_seconds)
    second = CountFall(OTHER, live("other-od", "other-spot"), 2, 1, floor, drain_seconds)

    def gone() -> set[str]:
        return set(costs(server)) | out(server)

    marking.marker.mark(first)
    assert gone() == {"llama-od"}
    marking.marker.mark(second)
    assert gone() == {"llama-od", "other-spot"}


def test_a_fall_that_is_not_asked_for_any_more_binds_nobody(server: FakeApiServer, start: StartMarking) -> None:
    _two_targets_on_both_kinds(server)
    marking, floor = start(sees_nodes=True), NodesOfSplit(50, 3, 2)
    marking.marker.mark(CountFall(TARGET, live("llama-od", "llama-spot"), 2, 1, floor))
    marking.clock.advance(CLAIMED_SECONDS)
    marking.marker.mark(CountFall(OTHER, live("other-od", "other-spot"), 2, 1, floor))
    assert costs(server).keys() == {"llama-od", "other-od"}


@pytest.mark.parametrize("drain_seconds", [None, DEADLINE_SECONDS])
def test_who_goes_on_demand_waits_until_emptied_spot_nodes_have_gone(
    server: FakeApiServer, start: StartMarking, drain_seconds: float | None
) -> None:
    """Of one node on demand beside one on spot at 50 %, whose replica another target has just given up."""
    for node in (_node("od-1", "on-demand"), _node("spot-1", "spot")):
        server.put("nodes", node)
    server.put("pods", _pod("llama-od", "od-1"))
    server.put("pods", _pod("other-spot", "spot-1", owner="ReplicaSet/other-1"))
    marking = start(sees_nodes=True)
    floor = NodesOfSplit(50, 1, 1)
    marking.marker.mark(CountFall(OTHER, live("other-spot"), 1, 0, floor, drain_seconds))
    fall = CountFall(TARGET, live("llama-od"), 1, 0, floor, drain_seconds)
    held = marking.marker.mark(fall)
    assert (held.to_replicas, held.names, held.reason) == (1, (), Reason.ON_DEMAND_FLOOR)
    assert held.message == (
        "1 replica stays for the floor on demand until fewer nodes stand on spot, or others serve on demand"
    )
    assert "llama-od" not in costs(server).keys() | out(server)

    gone = marking.marker.mark(replace(fall, split=replace(floor, spot=0)))
    assert "llama-od" in costs(server).keys() | out(server)
    assert gone.reason is Reason.DRAINING


class TestDrain:
    """Victims leave the router first, and the count falls when their requests have ended."""

    def test_a_victim_goes_when_its_requests_have_ended(self, server: FakeApiServer, start: StartMarking) -> None:
        marking = start()
        first = marking.drain_to(2)
        assert (out(server), costs(server), first.to_replicas) == ({"b1"}, {}, 3)
        assert first.message == "1 replica is out of the router until the requests there have ended, 60 s at most"
        marking.wait_out("b1")

        marking.clock.advance(20.0)
        assert marking.drain_to(2).to_replicas == 3, "five requests are still running"
        marking.work["b1"] = 0.0
        last = marking.drain_to(2)
        assert (last.to_replicas, last.names, costs(server)) == (2, ("b1",), {"b1": "-1999"})
        assert last.message == "1 node will be empty: node-b"
        marking.marker.note_written(TARGET, last)
        assert marking.emptied == [1]

    def test_the_count_falls_by_those_that_are_done(self, server: FakeApiServer, start: StartMarking) -> None:
        marking = start()
        marking.drain_to(1)
        marking.wait_out("b1", "a2")
        marking.clock.advance(20.0)
        marking.work["a2"] = 0.0
        step = marking.drain_to(1)
        assert (step.to_replicas, costs(server)) == (2, {"a2": "-1999"})
        assert step.message.startswith("0 nodes will be empty; 1 replica is out of the router")

    def test_at_the_deadline_it_goes_all_the_same(self, server: FakeApiServer, start: StartMarking) -> None:
        marking = start()
        marking.drain_to(2)
        marking.wait_out("b1")
        marking.clock.advance(DEADLINE_SECONDS)
        step = marking.drain_to(2)
        assert step.to_replicas == 2
        assert "time was over for 1 replica before all requests had ended" in step.message

    def test_whoever_leads_next_goes_on(self, server: FakeApiServer, start: StartMarking) -> None:
        start().drain_to(2)
        successor = start()
        successor.wait_out("b1")
        successor.drain.put_back_others()  # of a tick in which nothing was known yet, this would be too early
        assert out(server) == set(), "without anybody who wants it out"
        successor.wait_out()

        start().drain_to(2)
        successor = start()
        successor.wait_out("b1")
        successor.clock.advance(DEADLINE_SECONDS)
        assert successor.drain_to(2).to_replicas == 2, "by the time that its predecessor began"
        successor.drain.put_back_others()
        assert out(server) == {"b1"}

    def test_returning_load_puts_back_at_once(self, server: FakeApiServer, start: StartMarking) -> None:
        marking = start()
        marking.drain_to(1)
        marking.drain.put_back_others()
        marking.wait_out("b1", "a2")
        marking.drain_to(2)
        marking.drain.put_back_others()
        assert out(server) == {"b1"}, "what is decided stays served, and no more is out"
        marking.wait_out("b1")
        marking.drain.put_back_others()
        assert (out(server), costs(server)) == (set(), {})
        labels = {pod["metadata"]["labels"].get(SERVING_LABEL) for pod in server.all("pods")}
        assert labels == {"true", None}

    def test_who_goes_does_not_serve_again_meanwhile(self, server: FakeApiServer, start: StartMarking) -> None:
        marking = start()
        marking.drain_to(2)
        marking.wait_out("b1")
        marking.clock.advance(DEADLINE_SECONDS)
        marking.marker.note_written(TARGET, marking.drain_to(2))
        marking.drain.put_back_others()
        marking.drain.put_back_others()
        assert out(server) == {"b1"}, "its ReplicaSet has yet to take it"
        marking.clock.advance(GOING_SECONDS)
        marking.drain.put_back_others()
        assert out(server) == set(), "its ReplicaSet has taken another one"

    def test_pods_without_the_label_go_as_ever(self, server: FakeApiServer, start: StartMarking) -> None:
        server.put("pods", _pod("b1", "node-b", serving=None))
        step = start().drain_to(2)
        assert (step.to_replicas, out(server)) == (2, set())
        assert 'the label tokenscaler.io/serving: "true" is missing' in step.message
        assert step.message.endswith("b1")

    def test_a_pod_that_would_leave_its_deployment_is_not_drained(
        self, server: FakeApiServer, start: StartMarking
    ) -> None:
        server.put("deployments", _deployment(app="llama", **{SERVING_LABEL: "true"}))
        step = start().drain_to(2)
        assert (step.to_replicas, out(server)) == (2, set())
        assert "their Deployment selects by it: b1" in step.message

    def test_a_pod_that_somebody_has_taken_out_is_left_out(self, server: FakeApiServer, start: StartMarking) -> None:
        server.put("pods", _pod("a1", "node-a", serving="false"))
        start().drain.put_back_others()
        assert server.requests_of(lambda request: request.method == "PATCH") == []

    @pytest.mark.parametrize(
        ("status", "count"),
        [
            pytest.param(403, 2, id="forbidden: they go as ever"),
            pytest.param(500, 3, id="an error of the server: tried again in the next tick"),
        ],
    )
    def test_a_refused_write_is_told(self, server: FakeApiServer, start: StartMarking, status: int, count: int) -> None:
        server.fail(lambda request: request.method == "PATCH", Answer(status), times=9)
        step = start().drain_to(2)
        assert step.to_replicas == count
        assert "patch" in step.message

    def test_who_does_not_lead_drains_nothing(self, server: FakeApiServer, start: StartMarking) -> None:
        step = start(leads=False).drain_to(2)
        assert (step.to_replicas, out(server)) == (3, set())
        assert "does not hold the lease" in step.message

    def test_costs_of_somebody_else_stand_and_nobody_is_drained(
        self, server: FakeApiServer, start: StartMarking
    ) -> None:
        server.put("pods", _pod("a1", "node-a", cost="-2147483648"))
        step = start().drain_to(2)
        assert (step.to_replicas, out(server)) == (2, set())

    def test_pods_that_are_missing_are_the_first_to_go(self, server: FakeApiServer, start: StartMarking) -> None:
        step = start().drain_to(2, from_replicas=4)
        assert (step.to_replicas, out(server)) == (3, {"b1"})
