from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autoscaler.clock import ManualClock, SystemClock
from autoscaler.kubernetes_gateway.api_failure import Forbidden, ServerError, Throttled, Unreachable
from autoscaler.kubernetes_gateway.backoff import Backoff
from autoscaler.kubernetes_gateway.connection import ApiConnection, connect
from autoscaler.kubernetes_gateway.object_store import ObjectStore
from autoscaler.kubernetes_gateway.reflector import ListGate, Reflector
from tests.fakes.api_server import Answer, FakeApiServer, Request, Resource

PODS = "/api/v1/pods"


def _name_and_version(document: dict[str, Any]) -> tuple[str, str] | None:
    if document.get("status", {}).get("phase") == "Succeeded":
        return None
    return (document["metadata"]["name"], document["spec"]["version"])


def _pod(name: str, version: str = "1", phase: str = "Running") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"version": version}, "status": {"phase": phase}}


class Watched:
    """A reflector, with what it takes to wait for it without polling."""

    def __init__(self, connection: ApiConnection, path: str = PODS, **settings: Any) -> None:
        self.store: ObjectStore[tuple[str, str]] = ObjectStore()
        self.changes = 0
        self._changed = threading.Condition()
        self.clock = settings.pop("clock", SystemClock())
        self.reflector = Reflector(
            connection,
            path,
            _name_and_version,
            self.store,
            self.clock,
            Backoff(lambda: 0.5, first_seconds=0.02, longest_seconds=0.2),
            ListGate(),
            on_change=self._note,
            **({"watch_seconds": lambda: 30, "absent_retry_seconds": 0.1} | settings),
        )
        self.reflector.start()

    def _note(self) -> None:
        with self._changed:
            self.changes += 1
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool], timeout_seconds: float = 5.0) -> None:
        with self._changed:
            # Besides the changes of the store, problems and requests are looked at, so it wakes by itself too.
            left = timeout_seconds
            while not condition() and left > 0:
                self._changed.wait(0.02)
                left -= 0.02
        assert condition()

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.store.all()}


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as fake:
        fake.put("pods", _pod("a"))
        yield fake


@pytest.fixture
def watch(server: FakeApiServer, tmp_path: Path) -> Iterator[Callable[..., Watched]]:
    connection = connect(server.write_kubeconfig(tmp_path), None)
    started: list[Watched] = []

    def start(**settings: Any) -> Watched:
        watched = Watched(connection, **settings)
        started.append(watched)
        return watched

    yield start
    for watched in started:
        watched.reflector.stop()
    connection.close()


Watch = Callable[..., Watched]


def _watches(request: Request) -> bool:
    return request.is_watch


def _lists(request: Request) -> bool:
    return request.is_list


def test_objects_come_change_and_go(server: FakeApiServer, watch: Watch) -> None:
    pods = watch()
    pods.wait_for(lambda: pods.names == {"a"})
    server.put("pods", _pod("b"))
    server.put("pods", _pod("a", version="2"))
    pods.wait_for(lambda: set(pods.store.all()) == {("a", "2"), ("b", "1")})
    server.delete("pods", "a")
    pods.wait_for(lambda: pods.names == {"b"})


def test_an_object_that_is_reduced_to_nothing_is_forgotten(server: FakeApiServer, watch: Watch) -> None:
    server.put("pods", _pod("done", phase="Succeeded"))
    pods = watch()
    pods.wait_for(lambda: pods.names == {"a"})
    server.put("pods", _pod("a", phase="Succeeded"))
    pods.wait_for(lambda: pods.names == set())


def test_a_list_of_many_pages_is_one_change(server: FakeApiServer, watch: Watch) -> None:
    for number in range(1200):
        server.put("pods", _pod(f"pod-{number:04}"))
    pods = watch()
    pods.wait_for(lambda: len(pods.names) == 1201)
    assert pods.changes == 1
    assert len(server.requests_of(_lists)) == 3


def test_a_list_whose_next_page_has_expired_begins_again(server: FakeApiServer, watch: Watch) -> None:
    for number in range(600):
        server.put("pods", _pod(f"pod-{number:04}"))
    server.fail(lambda request: "continue" in request.query, Answer(410))
    pods = watch()
    pods.wait_for(lambda: len(pods.names) == 601)
    assert pods.reflector.lists == 2


def test_a_watch_that_ends_is_resumed_without_a_list(server: FakeApiServer, watch: Watch) -> None:
    pods = watch(watch_seconds=lambda: 1)
    pods.wait_for(lambda: pods.names == {"a"})
    pods.wait_for(lambda: len(server.requests_of(_watches)) >= 3)
    server.put("pods", _pod("b"))
    pods.wait_for(lambda: "b" in pods.names)
    assert pods.reflector.lists == 1


def test_a_bookmark_keeps_a_quiet_watch_resumable(server: FakeApiServer, watch: Watch) -> None:
    pods = watch(watch_seconds=lambda: 1)
    pods.wait_for(lambda: pods.reflector.has_synced)
    # Others move the server's counter on while no pod changes.
    for number in range(5):
        server.put("nodes", {"metadata": {"name": f"node-{number}"}})
    newest = server.put("nodes", {"metadata": {"name": "last"}})["metadata"]["resourceVersion"]
    pods.wait_for(lambda: any(r.query["resourceVersion"] == newest for r in server.requests_of(_watches)))
    assert pods.reflector.lists == 1


def test_a_version_that_is_no_longer_kept_leads_to_one_list(server: FakeApiServer, watch: Watch) -> None:
    pods = watch()
    pods.wait_for(lambda: pods.names == {"a"})
    server.delete("pods", "a")
    server.put("pods", _pod("b"))
    server.compact()
    pods.wait_for(lambda: pods.reflector.lists == 2)
    server.put("pods", _pod("c"))
    pods.wait_for(lambda: pods.names == {"b", "c"})
    assert pods.reflector.lists == 2


def test_expiry_told_inside_the_watch_leads_to_one_list(server: FakeApiServer, watch: Watch) -> None:
    pods = watch()
    pods.wait_for(lambda: len(server.requests_of(_watches)) == 1)
    expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old", "reason": "Expired"}}
    server.send_line("pods", json.dumps(expired).encode())
    pods.wait_for(lambda: len(server.requests_of(_watches)) == 2)
    assert pods.reflector.lists == 2


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b'{"type":"ERROR","object":{"kind":"Status","code":500}}', id="an error event"),
        pytest.param(b'{"type":"ADDED","object":{"metadata":', id="half an event"),
        pytest.param(b"<html>502</html>", id="a proxy's page"),
        pytest.param(b"[]", id="JSON that is no event"),
        pytest.param(b'{"type":"ADDED","object":{}}', id="an object without a name"),
        pytest.param(b'{"type":"MOVED","object":{"metadata":{}}}', id="an event of an unknown type"),
        pytest.param(b'{"type":"ERROR","object":7}', id="an error event without a status"),
    ],
)
def test_garbage_in_a_watch_is_survived_by_resuming(server: FakeApiServer, watch: Watch, line: bytes) -> None:
    pods = watch()
    pods.wait_for(lambda: len(server.requests_of(_watches)) == 1)
    server.send_line("pods", line)
    pods.wait_for(lambda: len(server.requests_of(_watches)) == 2)
    server.put("pods", _pod("b"))
    pods.wait_for(lambda: pods.names == {"a", "b"})
    assert pods.reflector.lists == 1


def test_an_object_of_another_shape_does_not_hide_the_others(server: FakeApiServer, watch: Watch) -> None:
    server.put("pods", {"metadata": {"name": "odd"}, "spec": None})
    pods = watch()
    pods.wait_for(lambda: pods.names == {"a"})


def test_a_server_that_closes_every_watch_at_once_is_not_stormed(server: FakeApiServer, watch: Watch) -> None:
    server.fail(_watches, Answer(200, body=b""), times=1000)
    pods = watch()
    pods.wait_for(lambda: isinstance(pods.reflector.problem, ServerError))
    pods.wait_for(lambda: len(server.requests_of(_watches)) >= 5)
    # 5 tries with delays of 15, 30, 60, 120 ms: a doubling delay, not a loop.
    assert pods.reflector.lists == 1
    # While the next watch is being opened there is no problem yet.
    pods.wait_for(lambda: "without a word" in getattr(pods.reflector.problem, "message", ""))


def test_a_restarted_server_is_resumed_without_a_list(server: FakeApiServer, watch: Watch) -> None:
    pods = watch()
    pods.wait_for(lambda: len(server.requests_of(_watches)) == 1)
    server.stop()
    pods.wait_for(lambda: isinstance(pods.reflector.problem, Unreachable))
    server.put("pods", _pod("b"))
    server.start()
    pods.wait_for(lambda: pods.names == {"a", "b"})
    assert pods.reflector.lists == 1
    assert pods.reflector.problem is None


def test_what_was_known_stays_readable_and_grows_old_while_the_server_is_away(
    server: FakeApiServer, watch: Watch
) -> None:
    clock = ManualClock(1000.0)
    pods = watch(clock=clock)
    pods.wait_for(lambda: len(server.requests_of(_watches)) == 1)
    server.stop()
    pods.wait_for(lambda: isinstance(pods.reflector.problem, Unreachable))
    clock.advance(61.0)
    assert pods.names == {"a"}
    assert pods.reflector.age_seconds() >= 61.0


def test_silence_beyond_the_watch_timeout_is_a_dead_connection(server: FakeApiServer, watch: Watch) -> None:
    # Five seconds of grace after the one in which the server should have ended the watch.
    server.fail(_watches, Answer(200, hang_seconds=7.0))
    pods = watch(watch_seconds=lambda: 1)
    pods.wait_for(lambda: len(server.requests_of(_watches)) >= 2, timeout_seconds=9.0)
    assert pods.reflector.lists == 1


def test_a_kind_that_does_not_exist_is_absent_and_is_found_when_it_comes(server: FakeApiServer, watch: Watch) -> None:
    pods = watch(path="/apis/keda.sh/v1alpha1/scaledobjects")
    pods.wait_for(lambda: pods.reflector.is_absent)
    assert pods.reflector.has_synced
    assert pods.reflector.problem is None
    server.add_resource(Resource("keda.sh/v1alpha1", "scaledobjects", "ScaledObject"))
    server.put("scaledobjects", _pod("so"))
    pods.wait_for(lambda: pods.names == {"so"})
    assert not pods.reflector.is_absent


def test_a_kind_that_goes_away_takes_its_objects_with_it(server: FakeApiServer, watch: Watch) -> None:
    scaled_objects = Resource("keda.sh/v1alpha1", "scaledobjects", "ScaledObject")
    server.add_resource(scaled_objects)
    server.put("scaledobjects", _pod("so"))
    pods = watch(path="/apis/keda.sh/v1alpha1/scaledobjects")
    pods.wait_for(lambda: pods.names == {"so"})
    server.remove_resource(scaled_objects)
    pods.wait_for(lambda: pods.reflector.is_absent and pods.names == set())


def test_an_absent_kind_is_not_stale_before_it_is_time_to_ask_again(server: FakeApiServer, watch: Watch) -> None:
    clock = ManualClock(1000.0)
    pods = watch(path="/apis/keda.sh/v1alpha1/scaledobjects", clock=clock, absent_retry_seconds=30.0)
    pods.wait_for(lambda: pods.reflector.is_absent)
    clock.advance(29.0)
    assert pods.reflector.age_seconds() == 0.0
    clock.advance(31.0)
    assert pods.reflector.age_seconds() == 30.0


def test_a_missing_permission_is_said_and_asked_for_again(server: FakeApiServer, watch: Watch) -> None:
    server.fail(_lists, Answer(403), times=2)
    pods = watch()
    pods.wait_for(lambda: isinstance(pods.reflector.problem, Forbidden))
    pods.wait_for(lambda: pods.names == {"a"})


def test_a_throttled_list_waits_as_long_as_it_was_told(server: FakeApiServer, watch: Watch) -> None:
    server.fail(_lists, Answer(429, headers={"Retry-After": "0.5"}))
    pods = watch()
    pods.wait_for(lambda: isinstance(pods.reflector.problem, Throttled))
    assert pods.reflector.lists == 1
    pods.wait_for(lambda: pods.names == {"a"})
    assert pods.reflector.lists == 2


def test_stopping_ends_an_open_watch(watch: Watch) -> None:
    pods = watch(watch_seconds=lambda: 300)
    pods.wait_for(lambda: pods.reflector.has_synced)
    pods.reflector.stop()
    assert not any(thread.name == f"watch {PODS}" for thread in threading.enumerate())


def test_nothing_is_known_before_the_first_list(watch: Watch, server: FakeApiServer) -> None:
    server.fail(_lists, Answer(500), times=100)
    pods = watch()
    assert not pods.reflector.has_synced
    assert pods.reflector.age_seconds() == float("inf")
