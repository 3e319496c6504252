from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.dry_run import DryRunActuator
from autoscaler.actuators.scale_subresource import ScaleSubresourceActuator
from autoscaler.actuators.written_counts import WrittenCounts
from autoscaler.clock import ManualClock
from autoscaler.kubernetes_gateway.connection import ApiConnection, connect
from autoscaler.observers.workload import ScaleTarget
from policies.reasons import Reason
from tests.fakes.api_server import Answer, FakeApiServer

PATH = "/apis/apps/v1/namespaces/inference/deployments/llama/scale"


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as fake:
        fake.put("deployments", {"metadata": {"name": "llama"}, "spec": {"replicas": 2}})
        yield fake


@pytest.fixture
def connection(server: FakeApiServer, tmp_path: Path) -> ApiConnection:
    return connect(server.write_kubeconfig(tmp_path))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
def actuator(connection: ApiConnection, clock: ManualClock) -> ScaleSubresourceActuator:
    return ScaleSubresourceActuator(connection, lambda: True, clock)


def _target(server: FakeApiServer) -> ScaleTarget:
    metadata = server.get("deployments", "llama")["metadata"]
    return ScaleTarget("inference", "Deployment", "llama", PATH, metadata["uid"], metadata["resourceVersion"])


def test_the_count_is_written_with_the_version_it_was_decided_on(
    server: FakeApiServer, actuator: ScaleSubresourceActuator
) -> None:
    target = _target(server)
    result = actuator.scale(target, 2, 5)
    assert result == Actuated(Reason.SUCCEEDED_RESCALE, "Deployment inference/llama: 2 -> 5")
    assert server.get("deployments", "llama")["spec"]["replicas"] == 5
    assert server.requests[-1].body == {
        "metadata": {"resourceVersion": target.resource_version},
        "spec": {"replicas": 5},
    }


def test_a_target_that_has_changed_meanwhile_is_left_alone(
    server: FakeApiServer, actuator: ScaleSubresourceActuator
) -> None:
    target = _target(server)
    server.put("deployments", {"metadata": {"name": "llama"}, "spec": {"replicas": 3}})
    result = actuator.scale(target, 2, 5)
    assert isinstance(result, ActuationFailed)
    assert result.reason is Reason.CONFLICT
    assert server.get("deployments", "llama")["spec"]["replicas"] == 3
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "reason", "text"),
    [
        pytest.param(
            Answer(403), Reason.FORBIDDEN, 'verb "patch" on "deployments/scale" in API group "apps"', id="no permission"
        ),
        pytest.param(Answer(404), Reason.TARGET_NOT_FOUND, "404", id="the target has gone"),
        pytest.param(Answer(422), Reason.FAILED_UPDATE_SCALE, "422", id="a count the server refuses"),
        pytest.param(Answer(500), Reason.FAILED_UPDATE_SCALE, "500", id="a server error"),
        pytest.param(Answer(None), Reason.FAILED_UPDATE_SCALE, "is the API server up", id="a broken connection"),
        pytest.param(Answer(401), Reason.FAILED_UPDATE_SCALE, "not accepted", id="a token that has expired"),
    ],
)
def test_a_failed_write_says_why(
    server: FakeApiServer, actuator: ScaleSubresourceActuator, answer: Answer, reason: Reason, text: str
) -> None:
    server.fail(lambda _: True, answer)
    result = actuator.scale(_target(server), 2, 5)
    assert isinstance(result, ActuationFailed)
    assert (result.reason, text in result.message) == (reason, True), result.message
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        pytest.param(None, 5, id="written"),
        pytest.param(Answer(None), 5, id="the answer never came: it may have been"),
        pytest.param(Answer(500), 5, id="so it may after a server error"),
        pytest.param(Answer(409), None, id="a conflict is no write"),
        pytest.param(Answer(403), None, id="nor is a refusal"),
    ],
)
def test_what_was_or_may_have_been_written_is_remembered(
    server: FakeApiServer, connection: ApiConnection, clock: ManualClock, answer: Answer | None, written: int | None
) -> None:
    counts = WrittenCounts()
    target = _target(server)
    if answer is not None:
        server.fail(lambda _: True, answer)
    ScaleSubresourceActuator(connection, lambda: True, clock, counts).scale(target, 2, 5)
    assert counts.last(target) == written
    assert counts.last(replace(target, uid="made again")) is None


def test_nothing_is_sent_before_the_time_the_server_asked_for(
    server: FakeApiServer, actuator: ScaleSubresourceActuator, clock: ManualClock
) -> None:
    server.fail(lambda _: True, Answer(429, headers={"Retry-After": "7"}))
    first = actuator.scale(_target(server), 2, 5)
    clock.advance(6.9)
    second = actuator.scale(_target(server), 2, 5)
    assert isinstance(first, ActuationFailed)
    assert isinstance(second, ActuationFailed)
    assert (first.reason, first.retry_after_seconds) == (Reason.THROTTLED, 7.0)
    assert (second.reason, second.retry_after_seconds) == (Reason.THROTTLED, pytest.approx(0.1))
    assert len(server.requests) == 1
    clock.advance(0.2)
    assert isinstance(actuator.scale(_target(server), 2, 5), Actuated)


def test_who_does_not_hold_the_lease_sends_nothing(
    server: FakeApiServer, connection: ApiConnection, clock: ManualClock
) -> None:
    actuator = ScaleSubresourceActuator(connection, lambda: False, clock)
    result = actuator.scale(_target(server), 2, 5)
    assert isinstance(result, ActuationFailed)
    assert result.reason is Reason.NOT_LEADER
    assert server.requests == []


def test_a_dry_run_says_what_it_would_have_written(server: FakeApiServer) -> None:
    result = DryRunActuator().scale(_target(server), 2, 5)
    assert result == Actuated(Reason.DRY_RUN, "Deployment inference/llama: 2 -> 5 not written: dry run")
    assert server.requests == []
