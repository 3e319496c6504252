"""A stock HPA (1.37) follows our decisions through the API server's aggregator, step for step as we would have written.

Two pools have one load, the queue of one gateway: one we scale ourselves, the other has an HPA that `tokenscaler hpa`
has printed. Everything that stands between a decision and its HPA breaks down once, and is renewed.
"""

from __future__ import annotations

import base64
import datetime
import http.client
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
from autoscaler.api.status import save_history
from autoscaler.external_metrics.hpa_manifest import hpa_manifest
from policies.history import TimedRecommendation, new_history
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet, wait_scraped
from tests.cluster.harness.installed_metrics_api import (
    HPA_ACCOUNT,
    NAMESPACE,
    OVERLAY,
    PREFIX,
    SECRET_PATH,
    SERVICE,
    InstalledMetricsApi,
)
from tests.cluster.harness.kubernetes_api import ApiError, KubernetesApi
from tests.servers.lossy_link import LossyLink
from tests.servers.ports import free_port
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

GOLDEN = Path(__file__).with_name("golden") / "external_metrics"
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


def test_what_kubectl_shows_and_who_is_answered(
    control_plane: ControlPlane, start_fleet, start_controller, prometheus, pytestconfig: pytest.Config
) -> None:
    began_at = datetime.datetime.now(datetime.UTC)
    with LossyLink() as link, InstalledMetricsApi(control_plane, link.port) as installed:
        fleet, sleeper = (start_fleet(replicas=1, scraped=False) for _ in range(2))
        for pool in (fleet, sleeper):
            fleet.exporters.set_gateway_pending(pool.namespace, 0)
        wait_scraped(prometheus, fleet, sleeper)
        fleet.create_scaler(policy("ExternalMetric", fleet.namespace))
        sleeper.create_scaler(policy("ExternalMetric", sleeper.namespace, minReplicas=0))
        _let_it_have_been_idle(sleeper)
        controllers = Controllers(link, control_plane.api)
        controllers.add(
            "a", start_controller, fleet, installed, namespaces=[fleet.namespace, sleeper.namespace], tick_seconds=0.5
        )
        controllers.ask("a")
        installed.wait_available()
        apply_hpa(sleeper)

        _compare_with_golden(control_plane, fleet, pytestconfig)
        _follow_a_signal(fleet)
        _try_callers(control_plane, fleet, controllers.ports["a"])
        _spoil_the_secret(control_plane)
        _sleep_and_wake_up(sleeper)
        _assert_shipped_permissions_were_enough(control_plane, began_at)


def _let_it_have_been_idle(fleet: Fleet) -> None:
    """What a controller before would have remembered of a pool that has had nothing to do for an hour."""
    now = time.time()
    history = replace(
        new_history(now - 3600.0, 1),
        recommendations=(TimedRecommendation(now, 1),),
        last_desired_replicas=1,
        last_seen_replicas=1,
        idle_since_seconds=now - 3600.0,
    )
    path = f"{fleet.scalers_path}/{fleet.name}/status"
    fleet.control_plane.api.merge(path, {"status": {"history": save_history(history)}})


def _sleep_and_wake_up(sleeper: Fleet) -> None:
    """The HPA goes to zero by our count and comes back from there, as far as is asked for at once."""
    sleeper.wait_replicas(0)
    hpa = sleeper.control_plane.api.get(
        f"/apis/autoscaling/v2/namespaces/{sleeper.namespace}/horizontalpodautoscalers/{sleeper.name}"
    )
    conditions = {each["type"]: each["status"] for each in hpa["status"]["conditions"]}
    assert conditions["ScaledToZero"] == "True"
    sleeper.exporters.set_gateway_pending(sleeper.namespace, 3 * WAITING_PER_REPLICA)
    sleeper.wait_replicas(3)
    assert sleeper.written_counts() == sleeper.written_counts(HPA_ACCOUNT) == [0, 3]


# --- what is shown ----------------------------------------------------------------------------------------------------


def _compare_with_golden(control_plane: ControlPlane, fleet: Fleet, pytestconfig: pytest.Config) -> None:
    metric = f"{PREFIX}/namespaces/{fleet.namespace}/{DESIRED}"
    shown = {
        "metric.json": _pretty(control_plane.kubectl("get", "--raw", f"{metric}?labelSelector=scaler%3Dvllm")),
        "version.json": _pretty(control_plane.kubectl("get", "--raw", PREFIX)),
        "group.json": _pretty(control_plane.kubectl("get", "--raw", PREFIX.rpartition("/")[0])),
        "api-resources.txt": control_plane.kubectl("api-resources", "--api-group=external.metrics.k8s.io"),
        "aggregated.json": json.dumps(_aggregated(control_plane), indent=1),
        "hpa.txt": _described(fleet, None, "ValidMetricFound"),
        "hpa-no-such-metric.txt": _described(fleet, {"name": "cpu"}, "there is no metric cpu"),
        "hpa-no-such-pool.txt": _described(
            fleet, {"name": DESIRED, "selector": {"matchLabels": {"scaler": "lama"}}}, "matches the selector"
        ),
        "hpa-unknown-value.txt": _described(fleet, {"name": "prompt-tokens-per-request"}, "too few requests"),
    }
    for name, text in shown.items():
        found = _without_what_varies(text, fleet)
        golden = GOLDEN / name
        if pytestconfig.getoption("--golden-update", default=False):
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(found)
        assert found == golden.read_text(), f"{name}: {found}"


def _pretty(text: str) -> str:
    return json.dumps(json.loads(text), indent=1)


def _aggregated(control_plane: ControlPlane) -> Any:
    """Our group in the API server's own aggregated discovery, once it has asked us for it."""
    form = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    found: list[Any] = []

    def is_there() -> bool:
        authority, admin = control_plane.certificates.authority, control_plane.certificates.clients["admin"]
        context = ssl.create_default_context(cafile=str(authority))
        context.load_cert_chain(admin.certificate, admin.key)
        answer = httpx2.get(f"{control_plane.url}/apis", headers={"Accept": form}, verify=context, timeout=30)
        found[:] = [item for item in answer.json()["items"] if item["metadata"]["name"] == "external.metrics.k8s.io"]
        return bool(found) and found[0]["versions"][0].get("freshness") == "Current"

    wait_until(is_there, "the API server lists our group", 90, poll_seconds=0.5)
    return found[0]


def _described(fleet: Fleet, metric: dict[str, Any] | None, wanted: str) -> str:
    """`kubectl describe hpa` of the printed HPA, with another metric if one is given, once it says what is wanted."""
    _apply_hpa_on(fleet, metric, "1")
    described: list[str] = []

    def says_so() -> bool:
        described[:] = [fleet.control_plane.kubectl("describe", "hpa", fleet.name, "-n", fleet.namespace)]
        # The Events below grow with time.
        described[0] = described[0].partition("\nEvents:")[0] + "\n"
        return wanted in described[0]

    wait_until(says_so, f"the HPA says {wanted}", 60, poll_seconds=0.5)
    return described[0]


def _apply_hpa_on(fleet: Fleet, metric: dict[str, Any] | None, average_value: str) -> None:
    """The printed HPA, with another metric if one is given."""
    manifest = hpa_manifest(scaler_of(fleet))
    assert manifest is not None
    document = yaml.safe_load(manifest)
    external = document["spec"]["metrics"][0]["external"]
    external["metric"] = metric or external["metric"]
    external["target"]["averageValue"] = average_value
    fleet.control_plane.apply(document)


def _follow_a_signal(fleet: Fleet) -> None:
    """Who keeps an HPA of his own takes only our signals: here four waiting requests a replica."""
    _apply_hpa_on(fleet, {"name": "waiting-requests", "selector": {"matchLabels": {"scaler": fleet.name}}}, "4")
    fleet.set_load(PoolLoad(running=8, waiting=12))
    fleet.wait_replicas(3)
    assert fleet.written_counts() == fleet.written_counts(HPA_ACCOUNT) == [3]


def _without_what_varies(text: str, fleet: Fleet) -> str:
    text = text.replace(fleet.namespace, "NAMESPACE")
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r"(CreationTimestamp: +).*", r"\1TIME", text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


# --- who is answered --------------------------------------------------------------------------------------------------


def _try_callers(control_plane: ControlPlane, fleet: Fleet, port: int) -> None:
    """Straight at our port, by the real reviews of the real API server; and through it, by its own authorizer."""
    authority = base64.b64decode(control_plane.api.get(SECRET_PATH)["data"]["ca.crt"]).decode()
    metric = f"{PREFIX}/namespaces/{fleet.namespace}/{DESIRED}"
    stranger = control_plane.service_account_token(fleet.namespace, "default")
    hpa = control_plane.service_account_token("kube-system", "horizontal-pod-autoscaler")
    forged = {"X-Remote-User": HPA_ACCOUNT, "X-Remote-Group": "system:masters"}

    def ask(path: str, **headers: str) -> tuple[int, str]:
        return _ask_our_port(port, authority, path, headers)

    assert ask(metric, Authorization=f"Bearer {hpa}")[0] == 200
    status, content = ask(metric, Authorization=f"Bearer {stranger}")
    assert status == 403
    said = json.loads(content)["message"]
    assert f'User "system:serviceaccount:{fleet.namespace}:default" cannot list resource' in said
    assert ask(PREFIX, Authorization=f"Bearer {stranger}")[0] == 200
    assert ask(metric)[0] == ask(metric, **forged)[0] == ask(metric, Authorization="Bearer x")[0] == 401
    assert ask(metric, Authorization=f"Bearer {stranger}", **forged)[0] == 403
    # An administrator of the cluster is nobody here: his certificate is none of the front proxy's authority.
    admin = control_plane.certificates.clients["admin"]
    with pytest.raises((ssl.SSLError, ConnectionError)):
        _ask_our_port(port, authority, metric, forged, (admin.certificate, admin.key))
    front_proxy = control_plane.certificates.front_proxy_client
    assert _ask_our_port(port, authority, metric, forged, (front_proxy.certificate, front_proxy.key))[0] == 200

    as_stranger = KubernetesApi(control_plane.url, control_plane.certificates.authority, stranger)
    with pytest.raises(ApiError, match="cannot list resource"):
        as_stranger.get(metric)
    as_stranger.close()


def _ask_our_port(
    port: int, authority: str, path: str, headers: dict[str, str], client: tuple[Path, Path] | None = None
) -> tuple[int, str]:
    context = ssl.create_default_context(cadata=authority)
    if client is not None:
        context.load_cert_chain(*client)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
        tls = context.wrap_socket(plain, server_hostname=f"{SERVICE}.{NAMESPACE}.svc")
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10)
        connection.sock = tls
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()


def _spoil_the_secret(control_plane: ControlPlane) -> None:
    """What somebody has broken is made anew in the same Secret."""
    uid = control_plane.api.get(SECRET_PATH)["metadata"]["uid"]
    control_plane.api.merge(SECRET_PATH, {"data": {"ca.key": ""}})
    wait_until(lambda: bool(control_plane.api.get(SECRET_PATH)["data"]["ca.key"]), "the Secret is whole again", 60)
    assert control_plane.api.get(SECRET_PATH)["metadata"]["uid"] == uid


def _assert_shipped_permissions_were_enough(control_plane: ControlPlane, began_at: datetime.datetime) -> None:
    """The account of the overlay was refused nothing, and has used every grant that the overlay adds."""
    account = f"system:serviceaccount:{NAMESPACE}:tokenscaler"
    # Another test's controller outlives its permissions by a moment.
    events = [event for event in control_plane.audit_events() if event.user == account and event.at >= began_at]
    refused = {(event.verb, event.resource) for event in events if event.code == 403}
    used = {(event.verb, event.resource) for event in events}
    granted = {
        (verb, resource)
        for name in ("role_certificate.yaml", "role_callers.yaml")
        for role in yaml.safe_load_all((OVERLAY / name).read_text())
        for rule in role.get("rules", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert refused == set()
    assert granted <= used, granted - used
    assert ("get", "configmaps") in used
