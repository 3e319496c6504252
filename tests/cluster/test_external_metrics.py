"""A stock HPA (1.37) follows our decisions through the API server's aggregator, step for step as we would have written.

Two pools have one load, the queue of one gateway: one we scale ourselves, the other has an HPA that `tokenscaler hpa`
has printed. Everything that stands between a decision and its HPA breaks down once, and is renewed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
from autoscaler.external_metrics.hpa_manifest import hpa_manifest
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.installed_metrics_api import (
    HPA_ACCOUNT,
    NAMESPACE,
    PREFIX,
    SECRET_PATH,
    InstalledMetricsApi,
)
from tests.cluster.harness.kubernetes_api import ApiError, KubernetesApi
from tests.servers.lossy_link import LossyLink
from tests.servers.ports import free_port
from tests.servers.process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

DESIRED = "tokenscaler-desired-replicas"
WAITING_PER_REPLICA = 4
LEASE_PATH = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/tokenscaler"


def policy(mode: str, gateway: str, **spec: Any) -> dict[str, Any]:
    """Follows a gateway's queue: twice as many at most every other second, down by three at most every other second."""
    query = f'sum(gateway_pending_requests{{pool="{gateway}"}})'
    return {
        "mode": mode,
        "minReplicas": 1,
        "maxReplicas": 12,
        "signals": {"pendingRequests": {"query": query, "perReplica": WAITING_PER_REPLICA}},
        "behavior": {
            "scaleUp": {"policies": [{"type": "Percent", "value": 100, "periodSeconds": 2}]},
            "scaleDown": {
                "stabilizationWindowSeconds": 2,
                "policies": [{"type": "Pods", "value": 3, "periodSeconds": 2}],
            },
        },
        "coldStart": {"priorSeconds": 1},
        **spec,
    }


class Controllers:
    """Two controllers that serve the metrics API; the aggregator's link leads to one of them."""

    def __init__(self, link: LossyLink, api: KubernetesApi) -> None:
        self._link = link
        self._api = api
        self.processes: dict[str, ControllerProcess] = {}
        self.ports: dict[str, int] = {}

    def add(
        self, name: str, start_controller: Any, fleet: Fleet, installed: InstalledMetricsApi, **options: Any
    ) -> None:
        port = free_port()
        self.ports[name] = port
        self.processes[name] = start_controller(
            fleet,
            name,
            kubeconfig=installed.kubeconfig,
            lease_namespace=NAMESPACE,
            arguments=["--metrics-api-port", str(port)],
            **options,
        )

    def ask(self, name: str) -> None:
        """From now on the aggregator asks this one."""
        self._link.lead_to(self.ports[name])

    def leader(self) -> str | None:
        holder = (self._api.find(LEASE_PATH) or {}).get("spec", {}).get("holderIdentity") or ""
        return next((name for name in self.processes if holder.startswith(name)), None)

    def wait_leader(self, other_than: str | None = None) -> str:
        wait_until(lambda: self.leader() not in (None, other_than), f"a leader besides {other_than}", 60)
        found = self.leader()
        assert found is not None
        return found


def served_count(api: KubernetesApi, fleet: Fleet) -> int | str:
    """What the aggregated API says of a pool: its count, or the message of the error."""
    try:
        document = api.get(f"{PREFIX}/namespaces/{fleet.namespace}/{DESIRED}")
    except ApiError as error:
        return error.message
    (item,) = document["items"]
    return int(item["value"])


def scaler_of(fleet: Fleet) -> InferenceScaler:
    parsed = parse_inference_scaler(fleet.control_plane.api.get(f"{fleet.scalers_path}/{fleet.name}"))
    assert isinstance(parsed, InferenceScaler), parsed
    return parsed


def apply_hpa(fleet: Fleet) -> None:
    """What a user does with `tokenscaler hpa NS/NAME | kubectl apply -f -`."""
    manifest = hpa_manifest(scaler_of(fleet))
    assert manifest is not None
    fleet.control_plane.apply(manifest)


@contextmanager
def asked_all_the_time(control_plane: ControlPlane, fleet: Fleet) -> Iterator[list[int | str]]:
    """Asks for the pool's count twenty times a second through the aggregator; gives every answer."""
    answers: list[int | str] = []
    stop = threading.Event()
    clients = control_plane.certificates
    api = KubernetesApi(control_plane.url, clients.authority, clients.clients["admin"])

    def keep_asking() -> None:
        while not stop.wait(0.05):
            answers.append(served_count(api, fleet))

    asking = threading.Thread(target=keep_asking, daemon=True)
    asking.start()
    try:
        yield answers
    finally:
        stop.set()
        asking.join(30)
        api.close()


class Story:
    """One load on two pools, of which one has an HPA; the load moves both."""

    def __init__(self, control_plane: ControlPlane, scaled: Fleet, followed: Fleet) -> None:
        self.control_plane = control_plane
        self.scaled, self.followed = scaled, followed

    def set_replicas_worth(self, replicas: int) -> None:
        """So much is pending that so many replicas are wanted."""
        self.scaled.exporters.set_gateway_pending("story", replicas * WAITING_PER_REPLICA)

    def reach(self, replicas: int, timeout_seconds: float = 60) -> None:
        """The load asks for so many replicas, both pools come there, and it is known that they have."""
        self.set_replicas_worth(replicas)
        for fleet in (self.scaled, self.followed):
            fleet.wait_replicas(replicas, timeout_seconds)
        # After a break the watches may be behind: a step that is decided on an old count is another step.
        for fleet in (self.scaled, self.followed):
            wait_until(lambda fleet=fleet: fleet.scaler_status().get("specReplicas") == replicas, "it is seen", 60)

    def written(self) -> tuple[list[int], list[int]]:
        """The counts that were written to either pool, ours and the HPA's."""
        account = f"system:serviceaccount:{NAMESPACE}:tokenscaler"
        return self.scaled.written_counts(account), self.followed.written_counts(HPA_ACCOUNT)


def test_an_hpa_follows_step_for_step_whatever_breaks_down(
    own_control_plane: ControlPlane, start_fleet, start_controller, prometheus
) -> None:
    control_plane = own_control_plane
    with LossyLink() as link, InstalledMetricsApi(control_plane, link.port, is_kept=True) as installed:
        scaled, followed = (start_fleet(replicas=1, on=control_plane, scraped=False) for _ in range(2))
        scaled.exporters.set_gateway_pending("story", WAITING_PER_REPLICA)
        controllers = Controllers(link, control_plane.api)
        for name in ("a", "b"):
            namespaces = [scaled.namespace, followed.namespace]
            controllers.add(name, start_controller, scaled, installed, namespaces=namespaces)
        story = Story(control_plane, scaled, followed)
        prometheus.wait_for('gateway_pending_requests{pool="story"}')
        scaled.create_scaler(policy("Scale", "story"))
        followed.create_scaler(policy("ExternalMetric", "story"))
        leader = controllers.wait_leader()
        controllers.ask(leader)
        installed.wait_available()
        apply_hpa(followed)
        followed.wait_condition("AbleToScale", "True", "ReadyForNewScale")

        story.reach(7)
        assert story.written() == ([2, 4, 7], [2, 4, 7])
        _rotate_the_certificate_in_the_dark(story, prometheus)
        story.reach(10)
        _kill_the_leader(story, controllers)
        story.reach(3)
        _restart_the_api_server(story, installed)
        story.reach(5)
        link.loss = 0.3
        story.reach(1, timeout_seconds=120)
        link.loss = 0.0
        expected = [2, 4, 7, 10, 7, 4, 3, 5, 2, 1]
        assert story.written() == (expected, expected)
        # Nobody else has written: not we to the followed pool, and no HPA to the other.
        assert followed.written_counts() == expected
        assert scaled.written_counts() == expected


def _rotate_the_certificate_in_the_dark(story: Story, prometheus: Any) -> None:
    """Prometheus is away while authority and certificate change: no request fails, and the count is held."""
    api = story.control_plane.api
    before = api.get(SECRET_PATH)["data"]["ca.crt"]
    prometheus.suspend()
    with asked_all_the_time(story.control_plane, story.followed) as answers:
        story.set_replicas_worth(1)
        api.delete(SECRET_PATH)
        wait_until(
            lambda: (api.find(SECRET_PATH) or {"data": {"ca.crt": before}})["data"]["ca.crt"] != before,
            "a new authority",
            60,
        )
        time.sleep(7)  # every replica has looked, and serves with it
    assert set(answers) == {7}
    assert len(answers) > 10
    story.set_replicas_worth(7)
    prometheus.resume()


def _kill_the_leader(story: Story, controllers: Controllers) -> None:
    """The other one answers the same at once, before it leads, and leads on from what is in the statuses."""
    leader = controllers.wait_leader()
    (survivor,) = controllers.processes.keys() - {leader}
    controllers.processes[leader].kill()
    controllers.ask(survivor)
    assert served_count(story.control_plane.api, story.followed) == 10
    assert controllers.leader() == leader
    controllers.wait_leader(other_than=leader)


def _restart_the_api_server(story: Story, installed: InstalledMetricsApi) -> None:
    """With it the aggregator is new: it finds and verifies us again."""
    story.control_plane.stop_api_server()
    story.control_plane.start_api_server()
    installed.wait_available()
    assert served_count(story.control_plane.api, story.followed) == 3
