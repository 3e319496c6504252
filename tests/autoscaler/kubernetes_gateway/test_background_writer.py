from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
from autoscaler.api.status import InferenceScalerStatus
from autoscaler.clock import ManualClock
from autoscaler.controller.events import NORMAL, PoolEvent
from autoscaler.kubernetes_gateway.background_writer import BackgroundWriter
from autoscaler.kubernetes_gateway.backoff import Backoff
from autoscaler.kubernetes_gateway.connection import connect
from autoscaler.kubernetes_gateway.event_writer import EventWriter
from autoscaler.kubernetes_gateway.status_writer import StatusWriter
from policies.reasons import Reason
from tests.fakes.api_server import Answer, FakeApiServer, Request, Resource

INFERENCE_SCALERS = Resource("tokenscaler.io/v1alpha1", "inferencescalers", "InferenceScaler")
NOW = 1_796_000_000.0

StartWriter = Callable[..., BackgroundWriter]


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as fake:
        fake.add_resource(INFERENCE_SCALERS)
        fake.put("inferencescalers", {"metadata": {"name": "llama"}, "spec": {}})
        yield fake


@pytest.fixture
def start(server: FakeApiServer, tmp_path: Path) -> Iterator[StartWriter]:
    with ExitStack() as cleanup:

        def begin(may_write: Callable[[], bool] = lambda: True, *, runs: bool = True) -> BackgroundWriter:
            connection = connect(server.write_kubeconfig(tmp_path))
            backoff = Backoff(lambda: 0.0, first_seconds=0.01, longest_seconds=0.02)
            writer = BackgroundWriter(connection, may_write, backoff)
            if runs:
                writer.start()
                cleanup.callback(writer.stop)
            return writer

        yield begin


def _wait_for(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(250):
        if condition():
            return
        pause.wait(0.02)
    assert condition()


def _status_of(server: FakeApiServer) -> dict[str, Any]:
    found = server.get("inferencescalers", "llama").get("status", {})
    assert isinstance(found, dict)
    return found


def _is_patch(request: Request) -> bool:
    return request.method == "PATCH"


def test_a_status_gets_into_its_object_and_nothing_else_does(server: FakeApiServer, start: StartWriter) -> None:
    StatusWriter(start()).write("inference", "llama", InferenceScalerStatus(desired_replicas=4))
    _wait_for(lambda: _status_of(server).get("desiredReplicas") == 4)
    assert server.requests[-1].path.endswith("/inferencescalers/llama/status")
    assert set(server.requests[-1].body or {}) == {"status"}


def test_what_is_no_longer_known_is_removed(server: FakeApiServer, start: StartWriter) -> None:
    statuses = StatusWriter(start())
    statuses.write("inference", "llama", InferenceScalerStatus(desired_replicas=4))
    _wait_for(lambda: _status_of(server).get("desiredReplicas") == 4)
    statuses.write("inference", "llama", InferenceScalerStatus())
    _wait_for(lambda: "desiredReplicas" not in _status_of(server))


def test_of_several_statuses_that_wait_only_the_newest_is_written(server: FakeApiServer, start: StartWriter) -> None:
    writer = start(runs=False)
    statuses = StatusWriter(writer)
    for count in range(50):
        statuses.write("inference", "llama", InferenceScalerStatus(desired_replicas=count))
    writer.start()
    writer.stop()
    assert _status_of(server)["desiredReplicas"] == 49
    assert len(server.requests_of(_is_patch)) == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(500), id="a server error"),
        pytest.param(Answer(None), id="a broken connection"),
        pytest.param(Answer(429, headers={"Retry-After": "0.01"}), id="throttled"),
    ],
)
def test_a_write_that_may_succeed_later_is_tried_again(
    server: FakeApiServer, start: StartWriter, answer: Answer
) -> None:
    server.fail(_is_patch, answer, times=2)
    StatusWriter(start()).write("inference", "llama", InferenceScalerStatus(desired_replicas=4))
    _wait_for(lambda: _status_of(server).get("desiredReplicas") == 4)
    assert len(server.requests_of(_is_patch)) == 3


@pytest.mark.parametrize("status", [403, 404, 409, 422])
def test_a_write_that_cannot_succeed_is_tried_once_and_holds_up_no_other(
    server: FakeApiServer, start: StartWriter, status: int
) -> None:
    server.put("inferencescalers", {"metadata": {"name": "other"}, "spec": {}})
    server.fail(lambda request: "llama" in request.path, Answer(status), times=100)
    statuses = StatusWriter(start())
    statuses.write("inference", "llama", InferenceScalerStatus(desired_replicas=4))
    statuses.write("inference", "other", InferenceScalerStatus(desired_replicas=5))
    _wait_for(lambda: server.get("inferencescalers", "other").get("status", {}).get("desiredReplicas") == 5)
    assert len(server.requests_of(lambda request: "llama" in request.path)) == 1


def test_who_does_not_lead_writes_nothing(server: FakeApiServer, start: StartWriter) -> None:
    writer = start(lambda: False)
    StatusWriter(writer).write("inference", "llama", InferenceScalerStatus(desired_replicas=4))
    writer.stop()
    assert server.requests == []


def _scaler() -> InferenceScaler:
    parsed = parse_inference_scaler(
        {
            "apiVersion": "tokenscaler.io/v1alpha1",
            "kind": "InferenceScaler",
            "metadata": {"name": "llama", "namespace": "inference", "uid": "u1", "generation": 1},
            "spec": {
                "engine": "vllm",
                "maxReplicas": 9,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"},
            },
        }
    )
    assert isinstance(parsed, InferenceScaler), parsed
    return parsed


def _event(reason: Reason, message: str = "why") -> PoolEvent:
    return PoolEvent(_scaler(), NORMAL, reason, message)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param([(0.0, Reason.TOKEN_RATE), (59.0, Reason.TOKEN_RATE)], 1, id="the same reason within a minute"),
        pytest.param([(0.0, Reason.TOKEN_RATE), (60.0, Reason.TOKEN_RATE)], 2, id="the same reason a minute later"),
        pytest.param([(0.0, Reason.TOKEN_RATE), (1.0, Reason.KV_CACHE)], 2, id="another reason"),
        pytest.param(
            [(0.0, Reason.SUCCEEDED_RESCALE), (1.0, Reason.SUCCEEDED_RESCALE)],
            2,
            id="every rescale is a fact of its own",
        ),
    ],
)
def test_how_many_events_are_sent(
    server: FakeApiServer, start: StartWriter, sent: list[tuple[float, Reason]], expected: int
) -> None:
    clock = ManualClock(NOW)
    writer = start()
    events = EventWriter(writer, clock, "controller-a")
    for at_seconds, reason in sent:
        clock.advance(NOW + at_seconds - clock.now_seconds())
        events.send(_event(reason))
    writer.stop()
    assert len(server.all("events")) == expected


def test_an_event_says_who_what_and_why(server: FakeApiServer, start: StartWriter) -> None:
    writer = start()
    EventWriter(writer, ManualClock(NOW), "controller-a").send(_event(Reason.TOKEN_RATE, "x" * 2000))
    writer.stop()
    (event,) = server.all("events")
    assert event["regarding"] == {
        "apiVersion": "tokenscaler.io/v1alpha1",
        "kind": "InferenceScaler",
        "namespace": "inference",
        "name": "llama",
        "uid": "u1",
    }
    assert (event["type"], event["reason"], event["eventTime"]) == (
        "Normal",
        "TokenRate",
        "2026-11-30T00:53:20.000000Z",
    )
    assert (event["reportingInstance"], len(event["note"])) == ("controller-a", 1024)
