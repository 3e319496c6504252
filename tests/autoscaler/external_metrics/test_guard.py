"""Who is answered and who is refused, over real TLS."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoscaler.external_metrics.front_proxy import NoTrust
from autoscaler.external_metrics.guard import access_to
from autoscaler.external_metrics.reviews import Access
from autoscaler.kubernetes_gateway.api_failure import Unreachable
from tests.fakes.client_certificates import SERVER, ClientAuthority
from tests.fakes.served_metrics_api import (
    A_METRIC,
    AS_THE_HPA,
    FRONT_PROXY,
    Answer,
    ServedMetricsApi,
    ask,
)

DISCOVERY = "/apis/external.metrics.k8s.io/v1beta1"
DROPPED = (ssl.SSLError, ConnectionError)


@pytest.fixture
def api() -> Iterator[ServedMetricsApi]:
    with ServedMetricsApi() as served:
        served.reviews_api.tokens = {"reader's": "reader", "nobody's friend": "stranger"}
        served.reviews_api.readers = {"reader"}
        yield served


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def refusal_of(answer: Answer) -> tuple[int, str]:
    assert answer.document["kind"] == "Status"
    assert answer.document["code"] == answer.status
    assert answer.document["status"] == "Failure"
    return answer.status, answer.document["reason"]


def test_the_api_server_speaks_for_the_hpa(api: ServedMetricsApi, tmp_path: Path) -> None:
    answer = api.get(client=api.authority.issue(FRONT_PROXY, tmp_path), headers=AS_THE_HPA)
    assert (answer.status, answer.document["items"][0]["value"]) == (200, "7")
    assert api.reviews_api.asked == []


def test_any_name_may_speak_where_none_is_demanded(api: ServedMetricsApi, tmp_path: Path) -> None:
    api.trust = api.trust_in()
    answer = api.get(client=api.authority.issue("some-proxy", tmp_path), headers=AS_THE_HPA)
    assert answer.status == 200


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(AS_THE_HPA, id="headers of the front proxy from nobody"),
        pytest.param({**AS_THE_HPA, "X-Remote-Group": "system:masters"}, id="and with the group of the masters"),
        pytest.param({}, id="nothing at all"),
        pytest.param({"Authorization": "Bearer "}, id="an empty token"),
        pytest.param({"Authorization": "Basic cm9vdDpyb290"}, id="a password"),
        pytest.param(bearer("made up"), id="a token that is nobody's"),
        pytest.param({**AS_THE_HPA, **bearer("made up")}, id="headers of the front proxy beside such a token"),
        pytest.param(bearer("x" * 20_000), id="a token that is far too long"),
    ],
)
@pytest.mark.parametrize("path", [A_METRIC, DISCOVERY, "/apis", "/openapi/v2", "/", "/metrics"])
def test_without_a_certificate_or_a_token_nothing_is_answered(
    api: ServedMetricsApi, headers: dict[str, str], path: str
) -> None:
    assert refusal_of(api.get(path, headers=headers)) == (401, "Unauthorized")


def test_a_certificate_with_a_name_that_is_not_allowed_speaks_for_nobody(api: ServedMetricsApi, tmp_path: Path) -> None:
    client = api.authority.issue("somebody-else", tmp_path)
    assert refusal_of(api.get(client=client, headers=AS_THE_HPA)) == (401, "Unauthorized")


def test_a_certificate_alone_names_nobody(api: ServedMetricsApi, tmp_path: Path) -> None:
    client = api.authority.issue(FRONT_PROXY, tmp_path)
    assert refusal_of(api.get(client=client)) == (401, "Unauthorized")


def test_without_trust_the_front_proxys_certificate_says_nothing(api: ServedMetricsApi, tmp_path: Path) -> None:
    api.trust = NoTrust("not read yet")
    client = api.authority.issue(FRONT_PROXY, tmp_path)
    assert refusal_of(api.get(client=client, headers=AS_THE_HPA)) == (401, "Unauthorized")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("expired", id="one that has ended"),
        pytest.param("foreign", id="one of another authority with the same name"),
        pytest.param("server", id="one that is for servers"),
    ],
)
def test_a_certificate_that_does_not_verify_ends_the_connection(
    api: ServedMetricsApi, tmp_path: Path, kind: str
) -> None:
    client = {
        "expired": lambda: api.authority.issue(FRONT_PROXY, tmp_path, valid_for=-datetime.timedelta(hours=1)),
        "foreign": lambda: ClientAuthority().issue(FRONT_PROXY, tmp_path),
        "server": lambda: api.authority.issue(FRONT_PROXY, tmp_path, usage=SERVER),
    }[kind]()
    with pytest.raises(DROPPED):
        api.get(client=client, headers=AS_THE_HPA)


def test_a_connection_that_outlives_its_certificate_says_nothing_any_more(
    api: ServedMetricsApi, tmp_path: Path
) -> None:
    # The guard's own clock is moved; TLS has verified the certificate when the connection was made.
    client = api.authority.issue(FRONT_PROXY, tmp_path)
    connection = api.connection(client)
    assert ask(connection, headers=AS_THE_HPA).status == 200
    api.guard_clock.advance(2 * 86_400)
    assert refusal_of(ask(connection, headers=AS_THE_HPA)) == (401, "Unauthorized")
    connection.close()


def test_a_token_is_reviewed_and_so_is_the_right_to_read(api: ServedMetricsApi) -> None:
    answer = api.get(headers=bearer("reader's"))
    assert answer.status == 200
    assert [body["kind"] for body in api.reviews_api.asked] == ["TokenReview", "SubjectAccessReview"]
    assert api.reviews_api.asked[1]["spec"] == {
        "user": "reader",
        "uid": "uid-of-reader",
        "groups": ["system:authenticated"],
        "extra": {"a": ["b"]},
        "resourceAttributes": {
            "group": "external.metrics.k8s.io",
            "version": "v1beta1",
            "namespace": "inference",
            "resource": "tokenscaler-desired-replicas",
            "verb": "list",
        },
    }


def test_answers_are_remembered_for_ten_seconds(api: ServedMetricsApi) -> None:
    for _ in range(3):
        assert api.get(headers=bearer("reader's")).status == 200
    assert len(api.reviews_api.asked) == 2
    api.clock.advance(10.0)
    api.reviews_api.readers.clear()
    assert refusal_of(api.get(headers=bearer("reader's"))) == (403, "Forbidden")


def test_a_token_without_the_right_is_refused_by_name(api: ServedMetricsApi) -> None:
    answer = api.get(headers=bearer("nobody's friend"))
    assert refusal_of(answer) == (403, "Forbidden")
    assert answer.document["message"] == (
        'tokenscaler-desired-replicas.external.metrics.k8s.io is forbidden: User "stranger" cannot list resource '
        '"tokenscaler-desired-replicas" in API group "external.metrics.k8s.io" in the namespace "inference": '
        "no RBAC policy matched"
    )


def test_forged_headers_beside_a_token_change_nothing(api: ServedMetricsApi) -> None:
    answer = api.get(
        headers={**bearer("nobody's friend"), "X-Remote-User": "reader", "X-Remote-Group": "system:masters"}
    )
    assert refusal_of(answer) == (403, "Forbidden")


def test_a_known_caller_may_discover_without_any_right(api: ServedMetricsApi) -> None:
    for path in (DISCOVERY, "/apis", "/apis/external.metrics.k8s.io"):
        assert api.get(path, headers=bearer("nobody's friend")).status == 200
    assert [body["kind"] for body in api.reviews_api.asked] == ["TokenReview"]


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_health_is_for_everybody(api: ServedMetricsApi, path: str) -> None:
    assert api.get(path).status == 200


def test_answers_are_counted_but_those_to_probes(api: ServedMetricsApi) -> None:
    api.get("/healthz")
    api.get(headers=bearer("reader's"))
    api.get(headers=bearer("nobody's friend"))
    api.get("/nowhere", headers=bearer("reader's"))
    api.get()
    assert list(api.answers) == [200, 403, 404, 401]


def test_while_the_api_server_is_away_a_token_is_refused_for_now(api: ServedMetricsApi) -> None:
    api.reviews_api.failure = Unreachable("create", "/apis", "no route")
    answer = api.get(headers=bearer("reader's"))
    assert refusal_of(answer) == (503, "ServiceUnavailable")
    api.reviews_api.failure = None
    assert api.get(headers=bearer("reader's")).status == 200


def test_nobody_takes_us_for_another_server(api: ServedMetricsApi) -> None:
    connection = api.connection(name="somebody-else.tokenscaler-system.svc")
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(connection)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(A_METRIC, ("inference", "tokenscaler-desired-replicas"), id="a metric of a namespace"),
        pytest.param(f"{A_METRIC}/more", ("inference", "tokenscaler-desired-replicas/more"), id="with a subresource"),
        pytest.param(f"{A_METRIC}\n", ("inference", "tokenscaler-desired-replicas\n"), id="with a line's end"),
        pytest.param(f"{DISCOVERY}/cpu", ("", "cpu"), id="a metric of the whole cluster"),
        pytest.param(DISCOVERY, None, id="discovery of the version"),
        pytest.param("/apis", None, id="discovery of all groups"),
        pytest.param("/openapi/v2", None, id="no metric"),
        pytest.param(f"{DISCOVERY}/namespaces", None, id="no metric either"),
    ],
)
def test_what_is_read_at_a_path(path: str, expected: tuple[str, str] | None) -> None:
    wanted = expected and Access("external.metrics.k8s.io", "v1beta1", *expected)
    assert access_to(path) == wanted
