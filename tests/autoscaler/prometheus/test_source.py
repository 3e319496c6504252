from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autoscaler.clock import SystemClock
from autoscaler.prometheus.answer import FailureKind, PrometheusFailure, Vector
from autoscaler.prometheus.settings import PrometheusSettings
from autoscaler.prometheus.source import Answer, PrometheusSource, Question
from policies.reasons import Reason
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.prometheus_server import FakePrometheus, Reply, compressed, rejection, scalar, vector

ONE_ROW = vector([({"pod": "a"}, 1.5)])


@contextlib.contextmanager
def a_source(url: str, **settings: Any) -> Iterator[PrometheusSource]:
    source = PrometheusSource(
        PrometheusSettings(url=url, **{"read_timeout_seconds": 10.0, "round_seconds": 20.0, **settings}), SystemClock()
    )
    yield source
    source.close()


def ask_once(reply: Reply, **settings: Any) -> tuple[Answer, FakePrometheus]:
    with FakePrometheus(lambda promql: reply) as fake, a_source(fake.url, **settings) as source:
        return source.ask([Question("probe", "up")])[0], fake


def test_a_query_travels_in_the_body_of_a_post_so_no_length_limit_of_addresses_applies() -> None:
    promql = 'up{namespace=~"' + "|".join(f"team-{number}" for number in range(2000)) + '"}'
    with FakePrometheus(lambda promql: ONE_ROW) as fake, a_source(fake.url + "/prometheus/") as source:
        answer = source.ask([Question("probe", promql)])[0]
    assert answer == Vector([({"pod": "a"}, 1.5)], 1_800_000_000.0)
    received = fake.requests[0]
    assert (received.method, received.path, received.address_query) == ("POST", "/prometheus/api/v1/query", "")
    assert received.form["query"] == promql


def test_headers_and_query_parameters_go_with_each_request() -> None:
    _, fake = ask_once(
        ONE_ROW, headers={"X-Scope-OrgID": "team-a"}, query_parameters={"dedup": "true"}, read_timeout_seconds=2.5
    )
    assert fake.requests[0].headers["X-Scope-OrgID"] == "team-a"
    assert fake.requests[0].form["dedup"] == "true"
    assert fake.requests[0].form["timeout"] == "2500ms"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(vector([]), Vector([], None), id="no series is an empty vector"),
        pytest.param(compressed(ONE_ROW), Vector([({"pod": "a"}, 1.5)], 1_800_000_000.0), id="gzip is undone"),
        pytest.param(scalar(7), Vector([({}, 7.0)], 1_800_000_000.0, is_scalar=True), id="a scalar has no labels"),
        pytest.param(
            vector([({"pod": "a"}, "+Inf")]),
            Vector([({"pod": "a"}, float("inf"))], 1_800_000_000.0),
            id="infinity is read",
        ),
        pytest.param(
            vector([], warnings=["store 10.0.0.7 did not answer"]),
            Vector([], None, ("store 10.0.0.7 did not answer",)),
            id="warnings come along",
        ),
    ],
)
def test_answers(reply: Reply, expected: Vector) -> None:
    assert ask_once(reply)[0] == expected


@pytest.mark.parametrize(
    ("warnings", "is_partial"),
    [
        pytest.param((), False, id="no warning"),
        pytest.param(("failed to query store",), True, id="a store is missing"),
        pytest.param(('PromQL info: metric might not be a counter: "x"',), False, id="a remark on the query"),
        pytest.param(("PromQL info: x", "fetch series: timeout"), True, id="a remark and a missing store"),
    ],
)
def test_only_warnings_about_data_make_an_answer_partial(warnings: tuple[str, ...], is_partial: bool) -> None:
    assert Vector([], None, warnings).is_partial is is_partial


def matrix() -> Reply:
    return Reply(body=json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}}).encode())


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        pytest.param(
            rejection(422, "execution", "many-to-many matching not allowed"),
            FailureKind.REJECTED,
            "422 execution: many-to-many matching not allowed",
            id="Prometheus refuses the query in its own words",
        ),
        pytest.param(rejection(503, "unavailable", "starting"), FailureKind.REJECTED, "503", id="503 twice"),
        pytest.param(
            rejection(503, "timeout", "query timed out"), FailureKind.TIMEOUT, "timed out", id="the query's own timeout"
        ),
        pytest.param(
            Reply(401, b"<html><body>Unauthorized</body></html>"),
            FailureKind.REJECTED,
            "401: Unauthorized; check the token",
            id="a proxy wants a login",
        ),
        pytest.param(
            Reply(302, b"", {"Location": "https://login.example/"}),
            FailureKind.REJECTED,
            "a redirect to https://login.example/",
            id="a redirect is not followed",
        ),
        pytest.param(
            Reply(200, b"<!DOCTYPE html><html><title>Sign in</title></html>"),
            FailureKind.BAD_ANSWER,
            "an HTML page (Sign in)",
            id="a login page with status 200",
        ),
        pytest.param(
            Reply(200, ONE_ROW.body[:60]), FailureKind.BAD_ANSWER, "JSON that breaks off", id="truncated JSON"
        ),
        pytest.param(Reply(200, b""), FailureKind.BAD_ANSWER, "an empty body", id="nothing at all"),
        pytest.param(Reply(200, b"[]"), FailureKind.BAD_ANSWER, "without status success", id="other JSON"),
        pytest.param(Reply(200, b'{"status":"success"}'), FailureKind.BAD_ANSWER, "resultType None", id="no data"),
        pytest.param(matrix(), FailureKind.BAD_ANSWER, "resultType 'matrix'", id="a range instead of numbers"),
        pytest.param(
            Reply(200, ONE_ROW.body, promised_bytes=10_000),
            FailureKind.UNREACHABLE,
            "broke off",
            id="the connection is cut in the middle",
        ),
        pytest.param(Reply(200, b"x" * 5000), FailureKind.TOO_LARGE, "more than 2000 bytes", id="too many bytes"),
        pytest.param(
            compressed(Reply(200, b"x" * 50_000_000)),
            FailureKind.TOO_LARGE,
            "more than 2000 bytes",
            id="few bytes that unpack to many",
        ),
        pytest.param(Reply(delay_seconds=3), FailureKind.TIMEOUT, "timed out", id="no answer"),
        pytest.param(
            Reply(200, ONE_ROW.body * 100, drip_seconds=0.05),
            FailureKind.TIMEOUT,
            "",
            id="an answer that drips for longer than the round",
        ),
    ],
)
def test_each_way_of_failing_is_one_value(reply: Reply, kind: FailureKind, words: str) -> None:
    # Only those that are to be late get little time: a busy machine is late by itself.
    hurry = {"read_timeout_seconds": 0.5, "round_seconds": 2.0} if kind is FailureKind.TIMEOUT else {}
    started = time.monotonic()
    answer, fake = ask_once(reply, maximum_answer_bytes=2000, **hurry)
    assert isinstance(answer, PrometheusFailure)
    assert (answer.kind, words in answer.message) == (kind, True), answer
    assert f"query probe at {fake.url}" in answer.message
    assert time.monotonic() - started < 20.0, "a round of 2 s; the rest is for a machine that is busy"


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_refused_connection_is_unreachable() -> None:
    with a_source(f"http://127.0.0.1:{closed_port()}") as source:
        answer = source.ask([Question("probe", "up")])[0]
    assert isinstance(answer, PrometheusFailure)
    assert (answer.kind, answer.reason) == (FailureKind.UNREACHABLE, Reason.PROMETHEUS_UNREACHABLE)
    assert "Connection refused" in answer.message


def test_a_bad_moment_of_a_proxy_is_tried_once_more() -> None:
    replies = iter([Reply(502, b"bad gateway"), ONE_ROW])
    with FakePrometheus(lambda promql: next(replies)) as fake, a_source(fake.url) as source:
        assert isinstance(source.ask([Question("probe", "up")])[0], Vector)
    assert len(fake.requests) == 2


def test_retry_after_does_not_hold_up_the_round() -> None:
    started = time.monotonic()
    ask_once(Reply(503, b"busy", {"Retry-After": "60"}))
    assert time.monotonic() - started < 30.0


def test_answers_come_in_the_order_of_the_questions_and_failures_stay_alone() -> None:
    def answer(promql: str) -> Reply:
        return rejection(422, "execution", "no") if promql == "7" else vector([({"q": promql}, float(promql))])

    with FakePrometheus(answer) as fake, a_source(fake.url) as source:
        answers = source.ask([Question(f"n{number}", str(number)) for number in range(20)])
        counts = source.counts()
    values = [found.samples[0][1] if isinstance(found, Vector) else None for found in answers]
    assert values == [*map(float, range(7)), None, *map(float, range(8, 20))]
    assert (counts.asked, counts.answered, counts.rejected) == (20, 19, 1)


def test_a_dead_prometheus_costs_one_bounded_request_a_round_and_recovers() -> None:
    replies = {"current": Reply(delay_seconds=3)}
    questions = [Question(f"n{number}", "up") for number in range(20)]
    with FakePrometheus(lambda promql: replies["current"]) as fake, a_source(fake.url, round_seconds=1.0) as source:
        started = time.monotonic()
        first = source.ask(questions)
        assert time.monotonic() - started < 15.0
        asked_before = len(fake.requests)
        started = time.monotonic()
        second = source.ask(questions)
        assert time.monotonic() - started < 15.0
        assert len(fake.requests) - asked_before <= 1
        replies["current"] = ONE_ROW
        deadline = time.monotonic() + 5
        while not isinstance(source.ask(questions)[0], Vector) and time.monotonic() < deadline:
            pass
        third = source.ask(questions)
    assert all(isinstance(found, PrometheusFailure) and found.kind is FailureKind.TIMEOUT for found in first)
    assert all(isinstance(found, PrometheusFailure) and found.kind is FailureKind.TIMEOUT for found in second)
    assert all(isinstance(found, Vector) for found in third)


def test_that_it_goes_and_that_it_comes_back_is_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    replies = {"current": ONE_ROW}
    questions = [Question("running", "up"), Question("waiting", "up")]
    caplog.set_level("INFO", "autoscaler.prometheus.source")
    with FakePrometheus(lambda promql: replies["current"]) as fake, a_source(fake.url) as source:
        for reply in (ONE_ROW, Reply(403), Reply(403), rejection(422, "execution", "no"), ONE_ROW, ONE_ROW):
            replies["current"] = reply
            source.ask(questions)
            source.ask([])
    assert [record.message for record in caplog.records] == ["Prometheus does not answer", "Prometheus answers again"]
    assert "403" in vars(caplog.records[0])["problem"]


def replace_by_symbolic_link(link: Path, content: str) -> None:
    """As the kubelet updates a mounted Secret."""
    version = link.with_name(f"{link.name}-{time.monotonic_ns()}")
    version.write_text(content)
    temporary = link.with_name(f"{link.name}-new")
    temporary.symlink_to(version)
    os.replace(temporary, link)


def test_a_bearer_token_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    token = tmp_path / "token"
    replace_by_symbolic_link(token, "first\n")
    with (
        FakePrometheus(lambda promql: ONE_ROW) as fake,
        a_source(fake.url, bearer_token_file=token) as source,
    ):
        source.ask([Question("probe", "up")])
        replace_by_symbolic_link(token, "other")
        source.ask([Question("probe", "up")])
        token.unlink()
        failure = source.ask([Question("probe", "up")])[0]
    assert [received.headers["Authorization"] for received in fake.requests] == ["Bearer first", "Bearer other"]
    assert isinstance(failure, PrometheusFailure)
    assert "cannot read" in failure.message
    assert "token" in failure.message
    assert "other" not in failure.message


def test_basic_auth_sends_the_password_of_a_file(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    _, fake = ask_once(ONE_ROW, basic_auth_username="scaler", basic_auth_password_file=password)
    assert fake.requests[0].headers["Authorization"] == "Basic c2NhbGVyOnNlY3JldA=="


def test_tls_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    authority, stranger = CertificateAuthority(), CertificateAuthority()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*authority.issue("127.0.0.1", tmp_path / "server"))
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(cadata=authority.certificate_text)
    ca_file = tmp_path / "ca.pem"
    ca_file.write_text(stranger.certificate_text)
    certificate, key = authority.issue("scaler", tmp_path / "client")
    files = {"ca_file": ca_file, "client_certificate_file": certificate, "client_key_file": key}
    with FakePrometheus(lambda promql: ONE_ROW, tls=server) as fake, a_source(fake.url, **files) as source:
        refused = source.ask([Question("probe", "up")])[0]
        ca_file.write_text(authority.certificate_text + "\n")
        accepted = source.ask([Question("probe", "up")])[0]
    assert isinstance(refused, PrometheusFailure)
    assert refused.kind is FailureKind.UNREACHABLE
    assert "certificate verify failed" in refused.message
    assert isinstance(accepted, Vector)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        pytest.param({"url": "prometheus:9090"}, "no http:// or https://", id="an address without scheme"),
        pytest.param({"url": "http://u:p@host"}, "would be logged", id="a password in the address"),
        pytest.param({"url": "http://host/api/v1"}, "leave /api/v1 off", id="the path of the API"),
        pytest.param({"url": "http://host?x=1"}, "use query_parameters", id="parameters in the address"),
        pytest.param({"basic_auth_username": "x"}, "go together", id="a name without a password"),
        pytest.param({"client_key_file": "k"}, "needs client_certificate_file", id="a key without a certificate"),
        pytest.param(
            {"bearer_token_file": "t", "basic_auth_username": "x", "basic_auth_password_file": "p"},
            "exclude each other",
            id="two logins",
        ),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PrometheusSettings(**{"url": "http://host", **settings})
