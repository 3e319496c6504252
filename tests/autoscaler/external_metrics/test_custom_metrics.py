"""Object metrics of an InferenceScaler, as a HorizontalPodAutoscaler and kubectl ask for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI

from autoscaler.clock import ManualClock
from autoscaler.external_metrics.app import create_app
from autoscaler.external_metrics.caller import Caller
from autoscaler.external_metrics.custom_metrics import CUSTOM_METRICS, add_custom_metrics
from autoscaler.external_metrics.guard import access_to
from autoscaler.external_metrics.reviews import Access, Reviews
from autoscaler.external_metrics.values import METRIC_NAMES, MetricSource, NotKnownYet, PoolMetrics
from autoscaler.external_metrics.wire import EXTERNAL_METRICS, aggregated_media_type
from tests.builders import NOW
from tests.fakes.asgi_client import get
from tests.fakes.metric_pools import FakePools, a_pool
from tests.fakes.reviews_api import FakeReviewsApi

GROUP = "/apis/custom.metrics.k8s.io"
DESIRED = "tokenscaler-desired-replicas"


def labelled(pool: PoolMetrics, **labels: str) -> PoolMetrics:
    return replace(pool, object_labels=labels)


POOLS = FakePools(
    labelled(a_pool("llama"), team="search"),
    labelled(a_pool("mistral", metrics={DESIRED: "3", "waiting-requests": None}), team="chat"),
    a_pool("plain", mode="Scale"),
    a_pool("elsewhere", namespace="other"),
)


def an_app(source: MetricSource = POOLS) -> FastAPI:
    app = create_app(source, ManualClock(NOW), lambda: (EXTERNAL_METRICS, CUSTOM_METRICS))
    add_custom_metrics(app, source, ManualClock(NOW))
    return app


def path(name: str, metric: str = DESIRED, version: str = "v1beta2", namespace: str = "inference") -> str:
    return f"{GROUP}/{version}/namespaces/{namespace}/inferencescalers.tokenscaler.io/{name}/{metric}"


def described(name: str) -> dict[str, str]:
    return {
        "kind": "InferenceScaler",
        "namespace": "inference",
        "name": name,
        "apiVersion": "tokenscaler.io/v1alpha1",
    }


def test_one_object_in_the_newer_version() -> None:
    answer = get(an_app(), path("llama"))

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "kind": "MetricValueList",
        "apiVersion": "custom.metrics.k8s.io/v1beta2",
        "metadata": {},
        "items": [
            {
                "describedObject": described("llama"),
                "metric": {"name": DESIRED, "selector": None},
                "timestamp": "2030-03-17T17:46:35Z",
                "value": "7",
            }
        ],
    }


def test_one_object_in_the_older_version() -> None:
    document = get(an_app(), path("mistral", version="v1beta1")).json()

    assert document["apiVersion"] == "custom.metrics.k8s.io/v1beta1"
    assert document["items"] == [
        {
            "describedObject": described("mistral"),
            "metricName": DESIRED,
            "selector": None,
            "timestamp": "2030-03-17T17:46:35Z",
            "value": "3",
        }
    ]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("", ["llama", "mistral"], id="all that publish"),
        pytest.param("?labelSelector=team%3Dchat", ["mistral"], id="by the objects' own labels"),
        pytest.param("?labelSelector=team+in+(chat,search)", ["llama", "mistral"], id="by a list"),
        pytest.param("?metricLabelSelector=target%3Dvllm-llama", ["llama"], id="by the metric's labels"),
        pytest.param("?labelSelector=team&metricLabelSelector=scaler%3Dmistral", ["mistral"], id="by both"),
    ],
)
def test_all_objects(query: str, names: list[str]) -> None:
    items = get(an_app(), path("*") + query).json()["items"]

    assert [item["describedObject"]["name"] for item in items] == names


def test_one_object_is_not_selected_by_its_labels() -> None:
    assert get(an_app(), path("llama") + "?labelSelector=team%3Dchat").status_code == 200


@pytest.mark.parametrize(
    ("asked", "code", "reason", "message"),
    [
        pytest.param(path("mistral", "waiting-requests"), 503, "ServiceUnavailable", "it is too dark", id="unknown"),
        pytest.param(path("*", "waiting-requests"), 503, "ServiceUnavailable", "mistral", id="unknown of one of all"),
        pytest.param(path("falcon"), 404, "NotFound", "there is scaler=llama", id="no such object"),
        pytest.param(path("plain"), 404, "NotFound", "no InferenceScaler", id="an object of another mode"),
        pytest.param(path("elsewhere"), 404, "NotFound", "no InferenceScaler", id="an object of another namespace"),
        pytest.param(path("llama", "load"), 404, "NotFound", "there is no metric load", id="no such metric"),
        pytest.param(path("*") + "?labelSelector=team%3Dnone", 404, "NotFound", "inference", id="nothing selected"),
        pytest.param(path("*") + "?labelSelector=a%3D%3D%3Db", 400, "BadRequest", "labelSelector", id="a bad selector"),
        pytest.param(
            path("llama") + "?metricLabelSelector=(", 400, "BadRequest", "metricLabelSelector", id="another bad one"
        ),
        pytest.param(f"{GROUP}/v1beta2/namespaces/inference/pods/a/load", 404, "NotFound", "", id="another kind"),
        pytest.param(f"{GROUP}/v1beta2/namespaces/inference/metrics/load", 404, "NotFound", "", id="of a namespace"),
    ],
)
def test_what_is_not_there_is_an_error_and_never_zero(asked: str, code: int, reason: str, message: str) -> None:
    answer = get(an_app(), asked)

    assert answer.status_code == code
    status = answer.json()
    assert (status["kind"], status["reason"], status["code"]) == ("Status", reason, code)
    assert message in status["message"]


def test_before_the_pools_have_been_read_nothing_is_known_and_discovery_is_there() -> None:
    source = FakePools()
    source.not_known_yet = NotKnownYet("not read yet")
    app = an_app(source)

    assert get(app, path("llama")).status_code == 503
    assert get(app, f"{GROUP}/v1beta2").status_code == 200


def test_discovery_names_both_versions_the_newer_one_first() -> None:
    group = get(an_app(), GROUP).json()

    assert [version["version"] for version in group["versions"]] == ["v1beta2", "v1beta1"]
    assert group["preferredVersion"]["version"] == "v1beta2"


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_discovery_lists_the_metrics_as_subresources(version: str) -> None:
    listed = get(an_app(), f"{GROUP}/{version}").json()

    assert listed["groupVersion"] == f"custom.metrics.k8s.io/{version}"
    assert {resource["name"] for resource in listed["resources"]} == {
        f"inferencescalers.tokenscaler.io/{name}" for name in METRIC_NAMES
    }
    assert {resource["kind"] for resource in listed["resources"]} == {"MetricValueList"}


def test_aggregated_discovery_has_one_resource_with_subresources() -> None:
    answer = get(an_app(), "/apis", {"Accept": aggregated_media_type("v2")})

    custom = next(item for item in answer.json()["items"] if item["metadata"]["name"] == "custom.metrics.k8s.io")
    versions: list[dict[str, Any]] = custom["versions"]
    assert [version["version"] for version in versions] == ["v1beta2", "v1beta1"]
    (resource,) = versions[0]["resources"]
    assert (resource["resource"], resource["scope"]) == ("inferencescalers.tokenscaler.io", "Namespaced")
    assert {each["subresource"] for each in resource["subresources"]} == set(METRIC_NAMES)


def test_the_right_to_read_is_that_of_a_subresource_of_the_object() -> None:
    expected = Access(
        *("custom.metrics.k8s.io", "v1beta2", "inference", "inferencescalers.tokenscaler.io", "get"),
        name="llama",
        subresource=DESIRED,
    )

    assert access_to(path("llama")) == expected
    assert access_to(path("*")) == replace(expected, name="*")
    assert access_to(f"{GROUP}/v1beta2") is None


def test_the_api_server_is_asked_for_the_right_to_one_object() -> None:
    api = FakeReviewsApi()
    access = access_to(path("llama"))
    assert access is not None

    Reviews(api, ManualClock(NOW)).verdict(Caller("somebody"), access)

    (body,) = api.asked
    assert body["spec"]["resourceAttributes"] == {
        "group": "custom.metrics.k8s.io",
        "version": "v1beta2",
        "resource": "inferencescalers.tokenscaler.io",
        "subresource": DESIRED,
        "namespace": "inference",
        "name": "llama",
        "verb": "get",
    }
