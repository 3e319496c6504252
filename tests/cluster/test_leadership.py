"""Two controllers: one writer at any time, whatever happens to it, and the other takes over in less than 15 s."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from tests.cluster.harness.audit_log import AuditEvent
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.policies import quick_policy
from tests.servers.process import wait_until
from tests.servers.tcp_link import TcpLink

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

TAKEOVER_SECONDS = 15
EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]


@dataclass(frozen=True)
class _Replica:
    """One of the two controllers, its account, and its own way to the API server."""

    process: ControllerProcess
    user: str
    link: TcpLink


class _Pair:
    """Two controllers on one pool, and what the audit log says of them."""

    def __init__(self, control_plane: ControlPlane, fleet: Fleet, replicas: dict[str, _Replica]):
        self._control_plane = control_plane
        self.fleet = fleet
        self.replicas = replicas

    @property
    def _lease_path(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.fleet.namespace}/leases/tokenscaler"

    def holder(self) -> str | None:
        lease = self._control_plane.api.find(self._lease_path)
        identity = (lease or {}).get("spec", {}).get("holderIdentity") or ""
        return next((name for name in self.replicas if identity.startswith(name)), None)

    def wait_holder(self, *, other_than: str | None = None, timeout_seconds: float = 60) -> str:
        wait_until(lambda: self.holder() not in (None, other_than), f"a leader besides {other_than}", timeout_seconds)
        holder = self.holder()
        assert holder is not None
        return holder

    def reigns(self) -> list[tuple[datetime.datetime, str]]:
        """When each user wrote itself into the lease after another had held it."""
        writes = self._control_plane.writes(resource="leases", namespace=self.fleet.namespace)
        held = [
            (event.at, event.user)
            for event in writes
            if event.code in (200, 201) and (event.response or {}).get("spec", {}).get("holderIdentity")
        ]
        changes = [held[0]] if held else []
        for at, user in held:
            if user != changes[-1][1]:
                changes.append((at, user))
        return changes

    def scale_attempts(self) -> tuple[AuditEvent, ...]:
        return tuple(event for event in self.fleet.scale_attempts() if event.user.startswith("system:serviceaccount:"))

    def assert_one_writer_at_any_time(self) -> None:
        reigns = self.reigns()
        for write in self.scale_attempts():
            ruler = [user for at, user in reigns if at <= write.at][-1]
            assert write.user == ruler or write.code == 409, (write.user, write.at, reigns)

    def assert_writes_go_on(self, user: str) -> None:
        """The pool follows its load by this user's hand."""
        before = len(self.scale_attempts())
        pending = 12 if self.fleet.replicas() != 3 else 20
        self.fleet.exporters.set_gateway_pending(self.fleet.namespace, pending)
        self.fleet.wait_replicas(pending // 4, timeout_seconds=30)
        assert {write.user for write in self.scale_attempts()[before:]} == {user}


@pytest.fixture
def pair(control_plane, start_fleet, start_controller) -> Any:
    """A pool that follows the gateway's queue alone (its own pods never get ready), and two controllers on it."""
    with ExitStack() as links:
        fleet = _gateway_fleet(start_fleet, control_plane)
        replicas = {}
        for name in ("first", "second"):
            link = links.enter_context(TcpLink(control_plane.ports.api_server))
            server = f"https://127.0.0.1:{link.port}"
            kubeconfig = control_plane.create_service_account(fleet.namespace, name, EVERYTHING, server=server)
            process = start_controller(fleet, name, kubeconfig=kubeconfig)
            replicas[name] = _Replica(process, f"system:serviceaccount:{fleet.namespace}:{name}", link)
        made = _Pair(control_plane, fleet, replicas)
        made.wait_holder()
        yield made
        made.assert_one_writer_at_any_time()


def _gateway_fleet(start_fleet: Callable[..., Fleet], control_plane: ControlPlane) -> Fleet:
    fleet = start_fleet(replicas=0, loads_in="1h")
    query = f'sum(gateway_pending_requests{{pool="{fleet.namespace}"}})'
    fleet.exporters.set_gateway_pending(fleet.namespace, 8)
    fleet.scale(2)
    pending = {"pendingRequests": {"query": query, "perReplica": 4}}
    fleet.create_scaler(quick_policy(signals=pending, down_window_seconds=1))
    return fleet


def _takeover_seconds(pair: _Pair, since: datetime.datetime, by: str) -> float:
    at = next(at for at, user in pair.reigns() if at > since and user == pair.replicas[by].user)
    return (at - since).total_seconds()


def test_a_killed_leader_is_replaced_within_15_seconds(pair: _Pair) -> None:
    leader = pair.wait_holder()
    pair.assert_writes_go_on(pair.replicas[leader].user)
    killed_at = datetime.datetime.now(datetime.UTC)
    pair.replicas[leader].process.kill()

    successor = pair.wait_holder(other_than=leader)
    assert _takeover_seconds(pair, killed_at, successor) < TAKEOVER_SECONDS
    pair.assert_writes_go_on(pair.replicas[successor].user)


def test_a_leader_that_ends_by_sigterm_hands_over_at_once(pair: _Pair) -> None:
    leader = pair.wait_holder()
    pair.assert_writes_go_on(pair.replicas[leader].user)
    pair.replicas[leader].process.stop()
    stopped_at = datetime.datetime.now(datetime.UTC)
    assert pair.replicas[leader].process.exit_code == 0

    successor = pair.wait_holder(other_than=leader)
    assert _takeover_seconds(pair, stopped_at - datetime.timedelta(seconds=5), successor) < 10
    pair.assert_writes_go_on(pair.replicas[successor].user)


def test_a_leader_frozen_for_a_minute_does_not_write_when_it_wakes(pair: _Pair) -> None:
    leader = pair.wait_holder()
    pair.assert_writes_go_on(pair.replicas[leader].user)
    frozen_at = datetime.datetime.now(datetime.UTC)
    pair.replicas[leader].process.suspend()

    successor = pair.wait_holder(other_than=leader)
    assert _takeover_seconds(pair, frozen_at, successor) < TAKEOVER_SECONDS
    while (datetime.datetime.now(datetime.UTC) - frozen_at).total_seconds() < 60:
        pair.assert_writes_go_on(pair.replicas[successor].user)
        time.sleep(5)
    woken_at = datetime.datetime.now(datetime.UTC)
    pair.replicas[leader].process.resume()
    for _ in range(3):
        pair.assert_writes_go_on(pair.replicas[successor].user)
        time.sleep(2)
    by_the_woken = [write for write in pair.scale_attempts() if write.user == pair.replicas[leader].user]
    assert [write for write in by_the_woken if write.at > frozen_at and write.code == 200] == []
    assert len([write for write in by_the_woken if write.at > woken_at]) <= 1  # at most the one it was about to send


def test_a_leader_cut_from_the_network_stops_and_is_replaced(pair: _Pair) -> None:
    leader = pair.wait_holder()
    pair.assert_writes_go_on(pair.replicas[leader].user)
    cut_at = datetime.datetime.now(datetime.UTC)
    pair.replicas[leader].link.cut()

    successor = pair.wait_holder(other_than=leader)
    assert _takeover_seconds(pair, cut_at, successor) < TAKEOVER_SECONDS
    pair.assert_writes_go_on(pair.replicas[successor].user)
    pair.replicas[leader].link.mend()
    for _ in range(3):
        pair.assert_writes_go_on(pair.replicas[successor].user)
        time.sleep(2)
    assert pair.holder() == successor
    assert len({user for _, user in pair.reigns()}) == 2
    assert all(earlier[1] != later[1] for earlier, later in pairwise(pair.reigns()))
