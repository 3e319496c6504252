"""What is sent to the API server to hold nodes ready by a CapacityBuffer, and to let them go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.capacity_buffers import SILENCE_SECONDS, CapacityBuffers
from autoscaler.actuators.node_holder import HeldPool, NodeHolder
from autoscaler.api.prewarm import Prewarm
from autoscaler.api.taints import Taint
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, Conflict, Forbidden, NotFound, Rejected, Timeout
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.observers.capacity_buffers import (
    BuffersNotRead,
    BuffersNotServed,
    CapacityBufferSeen,
    reduce_capacity_buffer,
)
from policies.node_packing import NodeRoom
from policies.reasons import Reason

TAINTS = (Taint("nvidia.com/gpu", "true", "NoSchedule"), Taint("busy", "", "PreferNoSchedule"))
POOL = HeldPool("h100", "uid-1", Prewarm(method="CapacityBuffer"), "od", NodeRoom(8), TAINTS)
BUFFERS = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/system/capacitybuffers"
TEMPLATES = "/api/v1/namespaces/system/podtemplates"
NAME = "tokenscaler-h100"

Sent = tuple[str, str, dict[str, Any]]


@dataclass
class FakeConnection:
    """Keeps what is created, and answers as it is told."""

    answers: dict[tuple[str, str], ApiFailure] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any] | ApiFailure:
        return self._send("create", path, body)

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any] | ApiFailure:
        return self._send("patch", path, body)

    def patch_by_operations(self, path: str, operations: list[dict[str, Any]]) -> dict[str, Any] | ApiFailure:
        verb = "test" if all(each["op"] == "test" for each in operations) else "patch"
        return self._send(verb, path, {each["path"]: each["value"] for each in operations})

    def delete(self, path: str) -> dict[str, Any] | ApiFailure:
        return self._send("delete", path, {})

    def _send(self, verb: str, path: str, body: dict[str, Any]) -> dict[str, Any] | ApiFailure:
        self.sent.append((verb, path, body))
        return self.answers.get((verb, path), body)


@dataclass
class FakeBuffers:
    seen: Mapping[str, CapacityBufferSeen] | BuffersNotServed | BuffersNotRead = field(default_factory=dict)

    def capacity_buffers(self) -> Mapping[str, CapacityBufferSeen] | BuffersNotServed | BuffersNotRead:
        return self.seen


def buffers_of(connection: FakeConnection, source: FakeBuffers, *, leads: bool = True) -> CapacityBuffers:
    return CapacityBuffers(cast("ApiConnection", connection), source, lambda: leads, "system")


def holder_of(
    connection: FakeConnection, source: FakeBuffers, pool: HeldPool = POOL, *, leads: bool = True, now: float = 0.0
) -> NodeHolder:
    holder = buffers_of(connection, source, leads=leads).of(pool, now)
    assert not isinstance(holder, ActuationFailed), holder
    return holder


def made(pods: int = 1, pool: HeldPool = POOL) -> FakeBuffers:
    """The buffer as it stands after it has been made."""
    connection = FakeConnection()
    assert isinstance(holder_of(connection, FakeBuffers(), pool).hold(pods), Actuated)
    document = connection.sent[1][2]
    seen = reduce_capacity_buffer(document)
    assert seen is not None
    return FakeBuffers({"h100": seen})


def test_the_first_is_made_with_a_template_of_a_whole_node_and_goes_with_its_pool() -> None:
    connection = FakeConnection()
    holder = holder_of(connection, FakeBuffers())
    assert (holder.name, holder.pods, holder.accelerators_per_pod) == ("CapacityBuffer system/tokenscaler-h100", 0, 8)
    assert isinstance(holder.hold(2), Actuated)
    (_, _, template), (_, _, buffer) = connection.sent
    assert [(verb, path) for verb, path, _ in connection.sent] == [("create", TEMPLATES), ("create", BUFFERS)]
    assert template["template"]["spec"] == {
        "nodeSelector": {"karpenter.sh/nodepool": "od"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"}],
        "containers": [
            {
                "name": "place",
                "image": "none",
                "resources": {"requests": {"nvidia.com/gpu": "8"}, "limits": {"nvidia.com/gpu": "8"}},
            }
        ],
    }
    assert buffer["spec"] == {"podTemplateRef": {"name": NAME}, "replicas": 2}
    for document in (template, buffer):
        metadata = document["metadata"]
        assert (metadata["name"], metadata["namespace"]) == (NAME, "system")
        assert metadata["labels"]["tokenscaler.io/accelerator-pool"] == "h100"
        assert [(owner["kind"], owner["uid"]) for owner in metadata["ownerReferences"]] == [
            ("AcceleratorPool", "uid-1")
        ]


@pytest.mark.parametrize(
    ("pods", "pool", "sent"),
    [
        pytest.param(1, POOL, [], id="as many as it holds: nothing is sent"),
        pytest.param(3, POOL, [("patch", f"{BUFFERS}/{NAME}")], id="a wave comes: more"),
        pytest.param(0, POOL, [("patch", f"{BUFFERS}/{NAME}")], id="the wave is over: none, and the buffer stays"),
        pytest.param(
            1,
            replace(POOL, room=NodeRoom(4)),
            [("create", TEMPLATES), ("patch", f"{BUFFERS}/{NAME}")],
            id="nodes have another shape: the template is written anew",
        ),
        pytest.param(
            1,
            replace(POOL, taints=()),
            [("create", TEMPLATES), ("patch", f"{BUFFERS}/{NAME}")],
            id="the NodePool has other taints",
        ),
    ],
)
def test_what_differs_is_written(pods: int, pool: HeldPool, sent: list[tuple[str, str]]) -> None:
    connection = FakeConnection()
    assert isinstance(holder_of(connection, made(1), pool).hold(pods), Actuated)
    assert [(verb, path) for verb, path, _ in connection.sent] == sent
    assert all(body["spec"]["replicas"] == pods for verb, path, body in connection.sent if path.startswith(BUFFERS))


def test_a_template_that_somebody_has_deleted_is_made_again() -> None:
    connection, source = FakeConnection(), made(1)
    assert isinstance(source.seen, Mapping)
    lost = replace(source.seen["h100"], is_ready=False, message="PodTemplateNotFound: tokenscaler-h100")
    assert isinstance(holder_of(connection, FakeBuffers({"h100": lost})).hold(1), Actuated)
    assert ("create", TEMPLATES) in [(verb, path) for verb, path, _ in connection.sent]


def test_a_template_that_is_there_already_is_changed_where_it_bears_our_label() -> None:
    connection = FakeConnection({("create", TEMPLATES): Conflict("create", TEMPLATES, "it exists")})
    assert isinstance(holder_of(connection, FakeBuffers()).hold(1), Actuated)
    assert [(verb, path) for verb, path, _ in connection.sent][1:] == [
        ("test", f"{TEMPLATES}/{NAME}"),
        ("patch", f"{TEMPLATES}/{NAME}"),
        ("create", BUFFERS),
    ]
    assert all(connection.sent[at][2]["/metadata/labels/tokenscaler.io~1accelerator-pool"] == "h100" for at in (1, 2))


@pytest.mark.parametrize(
    ("collection", "what"),
    [
        pytest.param(TEMPLATES, "PodTemplate system/tokenscaler-h100", id="a pod template"),
        pytest.param(BUFFERS, "CapacityBuffer system/tokenscaler-h100", id="a buffer"),
    ],
)
def test_what_somebody_else_has_made_under_the_name_is_left_alone(collection: str, what: str) -> None:
    answers: dict[tuple[str, str], ApiFailure] = {
        ("create", collection): Conflict("create", collection, "it exists"),
        ("test", f"{collection}/{NAME}"): Rejected("patch", collection, "testing path failed"),
    }
    connection = FakeConnection(answers)
    result = holder_of(connection, FakeBuffers()).hold(1)
    assert isinstance(result, ActuationFailed)
    assert result.reason is Reason.NAME_TAKEN
    assert f"{what} has no label tokenscaler.io/accelerator-pool: h100" in result.message
    assert [(verb, path) for verb, path, _ in connection.sent if path == f"{collection}/{NAME}"] == [
        ("test", f"{collection}/{NAME}")
    ]
    if collection == TEMPLATES:
        buffers_of(connection, made()).release({"h100"})
        assert ("delete", f"{TEMPLATES}/{NAME}") not in [(verb, path) for verb, path, _ in connection.sent]


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        pytest.param({("create", TEMPLATES): Forbidden("create", TEMPLATES, "no")}, Reason.FORBIDDEN, id="forbidden"),
        pytest.param(
            {("create", BUFFERS): NotFound("create", BUFFERS, "no such kind")},
            Reason.CAPACITY_BUFFERS_NOT_SERVED,
            id="the definition has just gone",
        ),
        pytest.param(
            {("create", BUFFERS): Conflict("create", BUFFERS, "it exists")}, Reason.CONFLICT, id="another was quicker"
        ),
        pytest.param(
            {("create", BUFFERS): Timeout("create", BUFFERS, "late")}, Reason.NODES_NOT_HELD, id="no answer in time"
        ),
    ],
)
def test_a_refused_write_is_told(answers: dict[tuple[str, str], ApiFailure], reason: Reason) -> None:
    result = holder_of(FakeConnection(answers), FakeBuffers()).hold(1)
    assert isinstance(result, ActuationFailed)
    assert result.reason is reason
    assert "CapacityBuffer system/tokenscaler-h100: 0 -> 1 failed" in result.message


def test_who_does_not_lead_sends_nothing() -> None:
    connection = FakeConnection()
    result = holder_of(connection, FakeBuffers(), leads=False).hold(1)
    assert isinstance(result, ActuationFailed)
    assert result.reason is Reason.NOT_LEADER
    buffers_of(connection, made(), leads=False).release({"h100"})
    assert connection.sent == []


@pytest.mark.parametrize(
    ("source", "reason", "words"),
    [
        pytest.param(
            BuffersNotServed(), Reason.CAPACITY_BUFFERS_NOT_SERVED, "nodes come with the replicas", id="no definition"
        ),
        pytest.param(BuffersNotRead(), Reason.NOT_READ_YET, "not read yet", id="just begun"),
        pytest.param(
            BuffersNotRead(Forbidden("list", BUFFERS, "no")), Reason.FORBIDDEN, "nodes come with", id="may not be read"
        ),
    ],
)
def test_where_there_can_be_none_it_is_said(
    source: BuffersNotServed | BuffersNotRead, reason: Reason, words: str
) -> None:
    connection = FakeConnection()
    found = buffers_of(connection, FakeBuffers(source)).of(POOL, 0.0)
    assert isinstance(found, ActuationFailed)
    assert found.reason is reason
    assert words in found.message
    buffers_of(connection, FakeBuffers(source)).release({"h100"})
    assert connection.sent == []


@pytest.mark.parametrize(
    ("is_ready", "age_seconds", "reason"),
    [
        pytest.param(True, 1000.0, None, id="Karpenter uses it"),
        pytest.param(None, SILENCE_SECONDS - 1, None, id="nobody has looked at it yet"),
        pytest.param(None, SILENCE_SECONDS, Reason.CAPACITY_BUFFER_SILENT, id="nobody looks: the gate is off"),
        pytest.param(False, 1.0, Reason.CAPACITY_BUFFER_NOT_READY, id="Karpenter cannot use it"),
    ],
)
def test_a_buffer_that_holds_nothing_is_told(is_ready: bool | None, age_seconds: float, reason: Reason | None) -> None:
    source = made()
    assert isinstance(source.seen, Mapping)
    seen = replace(source.seen["h100"], is_ready=is_ready, created_at_seconds=100.0, message="PodTemplateNotFound: x")
    complaint = holder_of(FakeConnection(), FakeBuffers({"h100": seen}), now=100.0 + age_seconds).complaint
    assert (complaint.reason if complaint else None) is reason


def test_what_a_pool_no_longer_wants_is_deleted_and_nothing_else() -> None:
    connection = FakeConnection()
    buffers_of(connection, made()).release({"other", "h100"})
    assert [(verb, path) for verb, path, _ in connection.sent] == [
        ("delete", f"{BUFFERS}/{NAME}"),
        ("test", f"{TEMPLATES}/{NAME}"),
        ("delete", f"{TEMPLATES}/{NAME}"),
    ]
    connection.sent.clear()
    buffers_of(connection, made()).release({"other"})
    assert connection.sent == []


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"name": "somebody-elses"}, id="somebody else's"),
        pytest.param(
            {
                "name": "tokenscaler-h100",
                "labels": {"tokenscaler.io/accelerator-pool": "h100"},
                "deletionTimestamp": "2026-01-01T00:00:00Z",
            },
            id="one that is being deleted",
        ),
        pytest.param(
            {"name": "copy-of-h100", "labels": {"tokenscaler.io/accelerator-pool": "h100"}},
            id="a copy of ours under another name",
        ),
    ],
)
def test_buffers_that_do_not_count(metadata: dict[str, Any]) -> None:
    assert reduce_capacity_buffer({"metadata": metadata, "spec": {}}) is None
