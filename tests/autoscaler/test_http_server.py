"""The HTTP side on a real port."""

from __future__ import annotations

import json
import logging
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from autoscaler.controller.latest_records import LatestRecords
from autoscaler.decision_record import DecisionRecord, read_record
from autoscaler.http_server import HttpServer, create_app
from autoscaler.telemetry import Telemetry
from tests.pool_builders import a_decision_report, an_unobserved_report


class Controller:
    """What the app reads, and the server that serves it."""

    def __init__(self) -> None:
        self.is_alive = True
        self.not_ready_because: str | None = None
        self.telemetry = Telemetry()
        self.records = LatestRecords(None)
        app = create_app(self.telemetry, self.records, lambda: self.is_alive, lambda: self.not_ready_because)
        self.server = HttpServer(app, "127.0.0.1", 0)

    def get(self, path: str, method: str = "GET") -> tuple[int, str, str]:
        """Status, content type and body."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.port}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Content-Type"], error.read().decode()


@pytest.fixture(scope="module")
def running() -> Iterator[Controller]:
    controller = Controller()
    controller.server.start()
    yield controller
    controller.server.stop()


@pytest.fixture
def controller(running: Controller) -> Controller:
    running.is_alive, running.not_ready_because = True, None
    running.telemetry.report([])
    running.records.report([])
    return running


def test_a_loop_that_lives_is_healthy_and_a_dead_one_is_not(controller: Controller) -> None:
    assert controller.get("/healthz")[::2] == (200, "ok\n")
    controller.is_alive = False
    sick = "no tick has ended for too long, or statuses are no longer written\n"
    assert controller.get("/healthz")[::2] == (503, sick)


def test_a_process_that_is_not_ready_says_why(controller: Controller) -> None:
    assert controller.get("/readyz")[::2] == (200, "ok\n")
    controller.not_ready_because = "pods: forbidden"
    assert controller.get("/readyz")[::2] == (503, "pods: forbidden\n")


def test_a_dead_loop_can_be_ready_and_a_live_one_not(controller: Controller) -> None:
    controller.is_alive = False
    assert controller.get("/readyz")[0] == 200
    controller.is_alive, controller.not_ready_because = True, "not synced"
    assert controller.get("/healthz")[0] == 200


def test_metrics_are_served_as_prometheus_wants_them_and_without_pools_that_are_gone(controller: Controller) -> None:
    controller.telemetry.report([a_decision_report(waiting=80.0)])
    status, content_type, page = controller.get("/metrics")
    assert (status, content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert 'tokenscaler_desired_replicas{name="llama",namespace="inference"} 8.0' in page
    controller.telemetry.report([])
    assert "llama" not in controller.get("/metrics")[2]


def test_the_newest_decision_of_a_pool_is_served_as_its_record(controller: Controller) -> None:
    controller.records.report([a_decision_report(waiting=80.0)])
    status, content_type, line = controller.get("/decisions/inference/llama")
    assert (status, content_type) == (200, "application/json")
    record = read_record(line)
    assert isinstance(record, DecisionRecord)
    assert record.decision.desired_replicas == 8


def test_a_pool_without_a_decision_is_not_found(controller: Controller) -> None:
    status, content_type, body = controller.get("/decisions/inference/other")
    assert (status, content_type) == (404, "application/json")
    assert json.loads(body)["problem"].startswith("no decision for inference/other yet")
    controller.records.report([an_unobserved_report(message="no Deployment inference/llama")])
    problem = json.loads(controller.get("/decisions/inference/llama")[2])["problem"]
    assert problem == "no decision for inference/llama: TargetNotFound: no Deployment inference/llama"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("GET", "/nothing", 404, id="a path that is not there"),
        pytest.param("GET", "/docs", 404, id="no documentation of routes is served"),
        pytest.param("GET", "/openapi.json", 404, id="no schema of routes is served"),
        pytest.param("POST", "/healthz", 405, id="nothing can be posted"),
        pytest.param("DELETE", "/decisions/inference/llama", 405, id="nothing can be deleted"),
    ],
)
def test_nothing_else_is_served(controller: Controller, method: str, path: str, status: int) -> None:
    assert controller.get(path, method)[0] == status


def test_a_port_that_is_taken_is_known_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        app = create_app(Telemetry(), LatestRecords(None), lambda: True, lambda: None)
        with pytest.raises(
            OSError, match="Address already in use; another program has the port, give another one or 0"
        ):
            HttpServer(app, "127.0.0.1", other.getsockname()[1])


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_the_address_of_all_takes_both_families() -> None:
    app = create_app(Telemetry(), LatestRecords(None), lambda: True, lambda: None)
    server = HttpServer(app, "::", 0)
    server.start()
    try:
        for host in ("127.0.0.1", "[::1]"):
            with urllib.request.urlopen(f"http://{host}:{server.port}/healthz", timeout=10) as answer:
                assert answer.status == 200
    finally:
        server.stop()


def test_a_stopped_server_gives_its_port_back() -> None:
    controller = Controller()
    controller.server.start()
    assert controller.get("/healthz")[0] == 200
    controller.server.stop()
    with socket.create_server(("127.0.0.1", controller.server.port)):
        pass


def test_what_the_server_logs_goes_where_all_logs_go() -> None:
    Controller().server.stop()
    for name in ("uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        assert (logger.propagate, logger.handlers) == (True, [])


def test_a_server_that_was_never_started_can_be_stopped() -> None:
    Controller().server.stop()
