"""What is answered at which path, over real TLS and as the API server's aggregator asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from autoscaler.external_metrics.values import NotKnownYet
from tests.fakes.metric_pools import FakePools, a_pool
from tests.fakes.served_metrics_api import A_METRIC, AS_THE_HPA, FRONT_PROXY, Answer, ServedMetricsApi

PREFIX = "/apis/external.metrics.k8s.io/v1beta1"
PODS = f"{PREFIX}/namespaces/inference"


class Asked:
    """An API with two pools, asked as the HPA controller asks."""

    def __init__(self, api: ServedMetricsApi, client: tuple[Path, Path]) -> None:
        self._api = api
        self._client = client
        assert isinstance(api.pools, FakePools)
        self.pools = api.pools

    def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._api.get(path, self._client, {**AS_THE_HPA, **named}, method)

    def refusal(self, path: str, method: str = "GET") -> tuple[int, str, str]:
        answer = self.get(path, method)
        document = answer.document
        assert document == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": document["message"],
            "reason": document["reason"],
            "code": answer.status,
        }
        assert "retry-after" not in answer.headers
        return answer.status, document["reason"], document["message"]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    pools = FakePools(a_pool("llama", metrics={"kv-cache-usage": "854m"}), a_pool("mistral", engine="sglang"))
    with ServedMetricsApi(pools) as api:
        yield Asked(api, api.authority.issue(FRONT_PROXY, tmp_path_factory.mktemp("clients")))


@pytest.fixture
def asked(served: Asked) -> Iterator[Asked]:
    before = list(served.pools.pools)
    yield served
    served.pools.pools, served.pools.not_known_yet = before, None


def test_a_metric_is_a_list_of_values_with_their_own_times(asked: Asked) -> None:
    answer = asked.get(f"{A_METRIC}?labelSelector={quote('scaler=llama')}")
    assert answer.headers["content-type"] == "application/json"
    assert answer.document == {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [
            {
                "metricName": "tokenscaler-desired-replicas",
                "metricLabels": {"scaler": "llama", "target": "vllm-llama", "engine": "vllm"},
                "timestamp": "2030-03-17T17:46:35Z",
                "value": "7",
            }
        ],
    }


@pytest.mark.parametrize(
    "accept",
    ["application/vnd.kubernetes.protobuf, */*", "application/vnd.kubernetes.protobuf", "text/html", "*/*"],
)
def test_json_is_answered_whatever_is_asked_for(asked: Asked, accept: str) -> None:
    answer = asked.get(A_METRIC, Accept=accept)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")


@pytest.mark.parametrize(
    ("selector", "scalers"),
    [
        pytest.param("", ["llama", "mistral"], id="nothing"),
        pytest.param("engine in (sglang,vllm),scaler!=llama", ["mistral"], id="a set and an exclusion"),
        pytest.param("!absent,scaler", ["llama", "mistral"], id="absence and presence"),
    ],
)
def test_a_selector_selects(asked: Asked, selector: str, scalers: list[str]) -> None:
    answer = asked.get(f"{A_METRIC}?labelSelector={quote(selector)}")
    assert [item["metricLabels"]["scaler"] for item in answer.document["items"]] == scalers


@pytest.mark.parametrize(
    ("path", "status", "reason", "message"),
    [
        pytest.param(f"{PODS}/cpu", 404, "NotFound", "there is no metric cpu; there are tokenscaler-", id="no metric"),
        pytest.param(f"{PODS}/pending-requests", 404, "NotFound", "has no pending-requests", id="not of these pools"),
        pytest.param(f"{A_METRIC}?labelSelector=a%3D%3D%3D", 400, "BadRequest", "unable to parse", id="no selector"),
        pytest.param(f"{A_METRIC}?labelSelector=scaler%3Dx", 404, "NotFound", "matches the selector", id="no match"),
        pytest.param(f"{PODS}/", 404, "NotFound", "could not find the requested resource", id="no name"),
        pytest.param(f"{A_METRIC}/more", 404, "NotFound", "could not find the requested", id="a path that is too long"),
        pytest.param(f"{PREFIX}/cpu", 404, "NotFound", "could not find the requested", id="of the whole cluster"),
        pytest.param(f"{PREFIX}/", 404, "NotFound", "could not find the requested", id="a slash too many"),
        pytest.param("/openapi/v2", 404, "NotFound", "could not find the requested", id="no OpenAPI"),
        pytest.param("/openapi/v3", 404, "NotFound", "could not find the requested", id="no newer OpenAPI either"),
        pytest.param(
            PREFIX.replace("v1beta1", "v1"), 404, "NotFound", "could not find the requested", id="another version"
        ),
        pytest.param(
            f"{PREFIX}/namespaces/other/tokenscaler-desired-replicas",
            404,
            "NotFound",
            "namespace other has no InferenceScaler",
            id="another namespace",
        ),
    ],
)
def test_what_is_not_there_is_said_in_the_apis_own_form(
    asked: Asked, path: str, status: int, reason: str, message: str
) -> None:
    found = asked.refusal(path)
    assert found[:2] == (status, reason)
    assert message in found[2]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_can_be_written(asked: Asked, method: str) -> None:
    assert asked.refusal(A_METRIC, method)[:2] == (405, "MethodNotAllowed")


def test_a_value_that_is_not_known_is_an_error_and_no_zero(asked: Asked) -> None:
    asked.pools.pools = [a_pool(metrics={"waiting-requests": None})]
    assert asked.refusal(f"{PODS}/waiting-requests") == (
        503,
        "ServiceUnavailable",
        "waiting-requests of InferenceScaler inference/llama is not known: it is too dark",
    )


def test_before_the_pools_are_read_discovery_is_there_and_values_are_not(asked: Asked) -> None:
    asked.pools.not_known_yet = NotKnownYet("the InferenceScalers have not been read yet")
    assert asked.get(PREFIX).status == 200
    assert asked.refusal(A_METRIC) == (503, "ServiceUnavailable", "the InferenceScalers have not been read yet")


def test_discovery_of_the_version_lists_one_placeholder(asked: Asked) -> None:
    assert asked.get(PREFIX).document == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "external.metrics.k8s.io/v1beta1",
        "resources": [
            {
                "name": "externalmetrics",
                "singularName": "",
                "namespaced": True,
                "kind": "ExternalMetricValueList",
                "verbs": ["get"],
            }
        ],
    }


GROUP = {
    "name": "external.metrics.k8s.io",
    "versions": [{"groupVersion": "external.metrics.k8s.io/v1beta1", "version": "v1beta1"}],
    "preferredVersion": {"groupVersion": "external.metrics.k8s.io/v1beta1", "version": "v1beta1"},
}


def test_discovery_of_the_group(asked: Asked) -> None:
    group = asked.get("/apis/external.metrics.k8s.io").document
    assert group == {"kind": "APIGroup", "apiVersion": "v1", **GROUP}


AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
OLDER = AGGREGATED.replace("v=v2", "v=v2beta1")


@pytest.mark.parametrize(
    ("accept", "content_type", "kind"),
    [
        pytest.param(AGGREGATED, AGGREGATED, "APIGroupDiscoveryList", id="as the aggregator asks"),
        pytest.param(
            f"{AGGREGATED},{OLDER},application/json", AGGREGATED, "APIGroupDiscoveryList", id="as kubectl asks"
        ),
        pytest.param(f"{OLDER}, application/json", OLDER, "APIGroupDiscoveryList", id="as older ones ask"),
        pytest.param(
            f"application/vnd.kubernetes.protobuf,{AGGREGATED}",
            AGGREGATED,
            "APIGroupDiscoveryList",
            id="protobuf first",
        ),
        pytest.param("application/json", "application/json", "APIGroupList", id="plain"),
        pytest.param("*/*", "application/json", "APIGroupList", id="anything"),
        pytest.param(AGGREGATED.replace("v=v2", "v=v9"), "application/json", "APIGroupList", id="a version to come"),
    ],
)
def test_discovery_of_all_groups_in_the_wanted_form(asked: Asked, accept: str, content_type: str, kind: str) -> None:
    answer = asked.get("/apis", Accept=accept)
    assert (answer.status, answer.headers["content-type"], answer.document["kind"]) == (200, content_type, kind)
    assert answer.headers["vary"] == "Accept"


def test_plain_discovery_of_all_groups(asked: Asked) -> None:
    document = asked.get("/apis", Accept="application/json").document
    assert document == {"kind": "APIGroupList", "apiVersion": "v1", "groups": [GROUP]}


def test_aggregated_discovery_of_all_groups(asked: Asked) -> None:
    answer = asked.get("/apis", Accept=AGGREGATED)
    assert answer.document == {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": "external.metrics.k8s.io", "creationTimestamp": None},
                "versions": [
                    {
                        "version": "v1beta1",
                        "resources": [
                            {
                                "resource": "externalmetrics",
                                "responseKind": {
                                    "group": "external.metrics.k8s.io",
                                    "version": "v1beta1",
                                    "kind": "ExternalMetricValueList",
                                },
                                "scope": "Namespaced",
                                "singularResource": "",
                                "verbs": ["get"],
                            }
                        ],
                        "freshness": "Current",
                    }
                ],
            }
        ],
    }


def test_aggregated_discovery_is_not_sent_twice(asked: Asked) -> None:
    tag = asked.get("/apis", Accept=AGGREGATED).headers["etag"]
    again = asked.get("/apis", Accept=AGGREGATED, If_None_Match=tag)
    assert (again.status, again.content, again.headers["etag"]) == (304, b"", tag)
    assert asked.get("/apis", Accept=AGGREGATED, If_None_Match='"another"').status == 200
