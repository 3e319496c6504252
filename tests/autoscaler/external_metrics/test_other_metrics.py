"""Ours first, then the other provider's; and one discovery of both."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import Response
from prometheus_client import CollectorRegistry

from autoscaler.clock import ManualClock, SystemClock
from autoscaler.external_metrics.app import ONLY_EXTERNAL_METRICS, create_app
from autoscaler.external_metrics.caller import FORWARDED_HEADER, Caller, PeerCertificate
from autoscaler.external_metrics.front_proxy import FrontProxyTrust
from autoscaler.external_metrics.guard import PEER_STATE, Guard
from autoscaler.external_metrics.other_metrics import OtherMetrics, listed_resources
from autoscaler.external_metrics.reviews import Reviews
from autoscaler.external_metrics.settings import ForwardSettings
from autoscaler.external_metrics.wire import aggregated_media_type
from tests.builders import NOW
from tests.fakes.asgi_client import get
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.metric_pools import FakePools, a_pool
from tests.fakes.reviews_api import FakeReviewsApi
from tests.servers.metrics_provider import ROOT, MetricsProvider
from tests.servers.process import wait_until

POOLS = FakePools(a_pool(metrics={"custom-queue": "4", "kv-cache-usage": None}))
THEIRS = {
    ("inference", "s0-kafka"): "12500m",
    ("inference", "custom-theirs"): "5",
    ("inference", "waiting-requests"): "99",
    ("shop", "waiting-requests"): "98",
}


class Both:
    """Our app in front of another provider."""

    def __init__(self, folder: Path, other: MetricsProvider) -> None:
        settings = ForwardSettings(url=other.url, authority=folder / "ca.crt", token=folder / "token")
        self.other = other
        self.registry = CollectorRegistry()
        self.metrics = OtherMetrics(settings, ONLY_EXTERNAL_METRICS, SystemClock(), self.registry)
        self.app = create_app(POOLS, ManualClock(NOW), self.metrics.groups, self.metrics.forward)

    def get(self, metric: str, namespace: str = "inference", query: str = "") -> httpx2.Response:
        return get(self.app, f"{ROOT}/namespaces/{namespace}/{metric}{query}")

    def resources(self) -> list[str]:
        return [resource["name"] for resource in get(self.app, ROOT).json()["resources"]]


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    authority = CertificateAuthority()
    (tmp_path / "ca.crt").write_text(authority.certificate_text)
    (tmp_path / "token").write_text("our-token")
    with MetricsProvider(authority.issue("other", tmp_path / "server")) as other:
        other.behaviour.values = dict(THEIRS)
        both = Both(tmp_path, other)
        yield both
        other.behaviour.is_silent = False
        both.metrics.stop()


def value(answer: httpx2.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()["items"][0]["value"]


def test_a_metric_that_we_do_not_have_is_theirs(both: Both) -> None:
    answer = both.get("s0-kafka", query="?labelSelector=scaledobject.keda.sh%2Fname%3Dorders")

    assert value(answer) == "12500m"
    assert answer.headers["content-type"] == "application/json"
    (request,) = both.other.metric_requests()
    assert request.query == {"labelSelector": ["scaledobject.keda.sh/name=orders"]}


def test_a_name_of_ours_is_never_asked_for_there(both: Both) -> None:
    assert value(both.get("waiting-requests")) == "12"
    assert both.get("kv-cache-usage").status_code == 503
    assert both.get("waiting-requests", namespace="shop").status_code == 404
    assert both.other.metric_requests() == []


def test_custom_names_are_ours_where_we_have_them(both: Both) -> None:
    assert value(both.get("custom-queue")) == "4"
    assert value(both.get("custom-theirs")) == "5"
    nobodys = both.get("custom-nobodys")
    assert nobodys.status_code == 404
    assert "InferenceScaler inference/llama has no custom-nobodys" in nobodys.json()["message"]


def test_their_error_is_theirs(both: Both) -> None:
    missing = both.get("s1-cron")
    both.other.behaviour.status = 500
    broken = both.get("s0-kafka")

    assert (missing.status_code, missing.json()["message"]) == (404, "the other provider has no s1-cron")
    assert (broken.status_code, broken.json()["message"]) == (500, "the backend is broken")


def test_a_redirect_is_not_followed_and_not_passed_on(both: Both) -> None:
    both.other.behaviour.status = 302

    assert both.get("s0-kafka").status_code == 502


@pytest.mark.parametrize("namespace", ["..", "%2E%2E", "."])
def test_a_path_that_climbs_is_not_passed_on(both: Both, namespace: str) -> None:
    assert both.get("s0-kafka", namespace=namespace).status_code == 404
    assert both.other.metric_requests() == []


def test_who_cannot_be_named_is_not_asked_for(both: Both) -> None:
    answer = asyncio.run(both.metrics.forward("inference", "s0-kafka", "", Caller("a\nb")))
    assert answer.status_code == 403
    assert both.other.requests == []


def test_names_are_quoted_again(both: Both) -> None:
    both.other.behaviour.values[("inference", "a b?c")] = "3"

    assert value(both.get("a%20b%3Fc")) == "3"


def test_a_question_that_comes_back_to_us_goes_no_further(both: Both) -> None:
    assert value(both.get("s0-kafka")) == "12500m"
    (passed_on,) = both.other.metric_requests()

    back = get(both.app, passed_on.path, {FORWARDED_HEADER: passed_on.header(FORWARDED_HEADER)[0]})

    assert back.status_code == 404
    assert "there is no metric s0-kafka" in back.json()["message"]
    assert len(both.other.metric_requests()) == 1


def test_without_them_we_say_so_and_ours_are_as_before(both: Both) -> None:
    both.other.__exit__(None, None, None)

    gone = both.get("s0-kafka")

    assert (gone.status_code, gone.json()["reason"]) == (503, "ServiceUnavailable")
    assert f"the other provider of external metrics ({both.other.url}) gave no answer" in gone.json()["message"]
    assert value(both.get("waiting-requests")) == "12"


def test_discovery_is_of_both(both: Both) -> None:
    assert both.resources() == ["externalmetrics"]
    tag = get(both.app, "/apis", {"Accept": aggregated_media_type("v2")}).headers["etag"]

    both.metrics.look()

    assert both.resources() == ["externalmetrics", "custom-theirs", "s0-kafka", "waiting-requests"]
    aggregated = get(both.app, "/apis", {"Accept": aggregated_media_type("v2"), "If-None-Match": tag})
    assert aggregated.status_code == 200
    (version,) = aggregated.json()["items"][0]["versions"]
    assert [resource["resource"] for resource in version["resources"]] == both.resources()


def test_discovery_stays_as_it_was_while_theirs_cannot_be_read(both: Both) -> None:
    both.metrics.look()
    before = both.metrics.groups()
    both.metrics.look()
    assert both.metrics.groups() is before

    both.other.__exit__(None, None, None)
    both.metrics.look()

    assert both.metrics.groups() is before


def test_theirs_are_followed_in_the_background(both: Both) -> None:
    both.metrics.start()

    wait_until(lambda: "s0-kafka" in both.resources(), "their resources are listed", 30)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>", id="no JSON"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b'{"resources": 7}', id="no list"),
    ],
)
def test_what_is_no_list_of_resources_is_none(body: bytes) -> None:
    assert listed_resources(body) is None


@pytest.mark.parametrize("verbs", ["5", '"get"', "null", "{}"])
def test_verbs_that_are_no_list_are_the_usual_one(verbs: str) -> None:
    (listed,) = listed_resources(f'{{"resources": [{{"name": "a", "verbs": {verbs}}}]}}'.encode()) or ()
    assert listed.verbs == ("get",)


def test_entries_without_a_name_are_passed_over() -> None:
    assert listed_resources(b'{"resources": [7, {"kind": "Pod"}]}') == ()


def test_who_asks_is_known_where_a_question_is_passed_on() -> None:
    asked: list[tuple[str, str, str, Caller | None]] = []

    async def forward(namespace: str, metric: str, selector: str, caller: Caller | None) -> Response:
        asked.append((namespace, metric, selector, caller))
        return Response("{}")

    clock = ManualClock(NOW)
    trust = FrontProxyTrust("", (), ("X-Remote-User",), (), ("X-Remote-Group",), ())
    app = create_app(POOLS, clock, forward=forward)
    with ThreadPoolExecutor(1) as executor:
        guard = Guard(app, lambda: trust, Reviews(FakeReviewsApi(), clock), executor, clock)

        async def over_the_front_proxys_connection(scope: Any, receive: Any, send: Any) -> None:
            state = {PEER_STATE: PeerCertificate("front-proxy-client", NOW + 60)}
            await guard({**scope, "state": state}, receive, send)

        get(
            over_the_front_proxys_connection,
            f"{ROOT}/namespaces/inference/s0-kafka?labelSelector=a",
            {"X-Remote-User": "the-hpa", "X-Remote-Group": "system:authenticated"},
        )

    assert asked == [("inference", "s0-kafka", "a", Caller("the-hpa", groups=("system:authenticated",)))]
