from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoscaler.kubernetes_gateway.api_failure import (
    ApiFailure,
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    Rejected,
    ServerError,
    Throttled,
    Timeout,
    Unauthorized,
    Unreachable,
    resource_of,
)
from autoscaler.kubernetes_gateway.connection import ApiConnection, connect
from autoscaler.kubernetes_gateway.credentials import CredentialsError
from tests.fakes.api_server import Answer, FakeApiServer

SCALE = "/apis/apps/v1/namespaces/inference/deployments/llama/scale"


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as fake:
        fake.put("deployments", {"metadata": {"name": "llama"}, "spec": {"replicas": 2}})
        yield fake


@pytest.fixture
def connection(server: FakeApiServer, tmp_path: Path) -> Iterator[ApiConnection]:
    made = connect(server.write_kubeconfig(tmp_path), None)
    yield made
    made.close()


def _status(code: int, message: str) -> bytes:
    return json.dumps({"kind": "Status", "message": message, "code": code}).encode()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            Answer(401, _status(401, "Unauthorized")), (Unauthorized, "401 Unauthorized"), id="a token not accepted"
        ),
        pytest.param(
            Answer(403, _status(403, "cannot patch")),
            (Forbidden, 'grant verb "patch" on "deployments/scale" in API group "apps"'),
            id="a missing permission is named",
        ),
        pytest.param(Answer(404, _status(404, "not found")), (NotFound, "404 not found"), id="no such object"),
        pytest.param(Answer(409, _status(409, "modified")), (Conflict, "409 modified"), id="an object that changed"),
        pytest.param(Answer(410, _status(410, "too old")), (Gone, "410 too old"), id="a version no longer kept"),
        pytest.param(Answer(422, _status(422, "invalid")), (Rejected, "422 invalid"), id="a request it will not take"),
        pytest.param(Answer(500, b"<html>oops</html>"), (ServerError, "500 <html>oops"), id="a proxy's error page"),
        pytest.param(Answer(503, b""), (ServerError, "503"), id="503 without Retry-After is an error"),
        pytest.param(Answer(200, b"<html>login</html>"), (ServerError, "no JSON object"), id="a login page with 200"),
        pytest.param(Answer(200, b"[1, 2]"), (ServerError, "no JSON object"), id="JSON that is no object"),
        pytest.param(Answer(None), (Unreachable, "is the API server up"), id="a connection that is dropped"),
        pytest.param(
            Answer(200, b'{"kind": ', is_unfinished=True), (Unreachable, "inside the answer"), id="half an answer"
        ),
    ],
)
def test_every_wrong_answer_is_one_of_our_failures(
    server: FakeApiServer, connection: ApiConnection, answer: Answer, expected: tuple[type[ApiFailure], str]
) -> None:
    server.fail(lambda request: request.method == "PATCH", answer)
    result = connection.patch(SCALE, {"spec": {"replicas": 3}})
    assert isinstance(result, ApiFailure)
    assert (type(result), expected[1] in result.message) == (expected[0], True), result.message
    assert "patch" in result.message
    assert SCALE in result.message


@pytest.mark.parametrize(
    ("answer", "retry_after_seconds"),
    [
        pytest.param(Answer(429, headers={"Retry-After": "7"}), 7.0, id="429 says when"),
        pytest.param(Answer(429), None, id="429 does not say when"),
        pytest.param(Answer(503, headers={"Retry-After": "2"}), 2.0, id="503 with Retry-After"),
        pytest.param(Answer(429, headers={"Retry-After": "soon"}), None, id="Retry-After that is no number"),
    ],
)
def test_throttling_is_told_and_not_retried(
    server: FakeApiServer, connection: ApiConnection, answer: Answer, retry_after_seconds: float | None
) -> None:
    server.fail(lambda request: True, answer, times=5)
    result = connection.get("/api/v1/namespaces/inference/pods/a")
    assert isinstance(result, Throttled)
    assert result.retry_after_seconds == retry_after_seconds
    assert len(server.requests) == 1


def test_a_write_that_hangs_is_given_up(server: FakeApiServer, connection: ApiConnection) -> None:
    server.fail(lambda request: True, Answer(200, hang_seconds=4.0))
    assert isinstance(connection.patch(SCALE, {}), Timeout)


def test_a_stopped_server_is_unreachable(server: FakeApiServer, connection: ApiConnection) -> None:
    server.stop()
    result = connection.get("/version")
    assert isinstance(result, Unreachable)
    assert "Connection refused" in result.message


def test_a_write_names_our_field_manager_and_its_content_type(server: FakeApiServer, connection: ApiConnection) -> None:
    connection.patch(SCALE, {"spec": {"replicas": 3}})
    request = server.requests[-1]
    assert request.query["fieldManager"] == "tokenscaler"
    assert request.query["timeout"] == "2s"
    assert request.headers["Content-Type"] == "application/merge-patch+json"
    assert request.headers["authorization"] == "Bearer secret"


def test_a_renewed_token_is_taken_up_after_a_refusal(
    server: FakeApiServer, connection: ApiConnection, tmp_path: Path
) -> None:
    file = tmp_path / "kubeconfig.json"
    file.write_text(file.read_text().replace("secret", "renewed"))
    server.fail(lambda request: True, Answer(401))
    connection.get("/version")
    connection.get("/version")
    assert server.requests[-1].headers["authorization"] == "Bearer renewed"


@pytest.mark.parametrize(
    ("content", "context"),
    [
        pytest.param(None, None, id="no such file"),
        pytest.param("", None, id="an empty file"),
        pytest.param(": : :", None, id="no YAML"),
        pytest.param("[]", None, id="YAML of another shape"),
        pytest.param("{kind: Config, clusters: [], users: [], contexts: []}", None, id="no context in it"),
        pytest.param(
            "{kind: Config, clusters: [], users: [], contexts: [], current-context: a}", "b", id="no such context"
        ),
    ],
)
def test_unusable_credentials_are_named(tmp_path: Path, content: str | None, context: str | None) -> None:
    file = tmp_path / "config"
    if content is not None:
        file.write_text(content)
    with pytest.raises(CredentialsError, match=str(file)):
        connect(str(file), context)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/api/v1/pods", ("", "pods"), id="all pods"),
        pytest.param("/api/v1/namespaces/a/pods/b", ("", "pods"), id="one pod"),
        pytest.param("/api/v1/namespaces/a", ("", "namespaces"), id="a namespace itself"),
        pytest.param(SCALE, ("apps", "deployments/scale"), id="a subresource"),
        pytest.param(
            "/apis/tokenscaler.io/v1alpha1/inferencescalers", ("tokenscaler.io", "inferencescalers"), id="ours"
        ),
        pytest.param("/version", ("", "/version"), id="no resource at all"),
    ],
)
def test_the_resource_a_path_names(path: str, expected: tuple[str, str]) -> None:
    assert resource_of(path) == expected
