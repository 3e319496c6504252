"""Bounds on what a connection may ask, and certificates that change while it is open."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from autoscaler.external_metrics.limited_protocol import Limits
from autoscaler.external_metrics.serving_certificate import new_material, with_new_certificate
from autoscaler.external_metrics.tls import BadPair, ServingPair
from tests.fakes.client_certificates import ClientAuthority
from tests.fakes.served_metrics_api import A_METRIC, AS_THE_HPA, FRONT_PROXY, HPA_ACCOUNT, NAMES, ServedMetricsApi, ask
from tests.servers.process import wait_until

HEALTH = "/healthz"


@pytest.fixture
def api() -> Iterator[ServedMetricsApi]:
    with ServedMetricsApi() as served:
        yield served


def raw(api: ServedMetricsApi) -> ssl.SSLSocket:
    """A bare connection, on which anything may be sent."""
    context = ssl.create_default_context(cadata=api.material.authority_pem)
    plain = socket.create_connection(("127.0.0.1", api.server.port), timeout=10)
    return context.wrap_socket(plain, server_hostname=NAMES[0])


def answer_to(connection: ssl.SSLSocket, *parts: bytes) -> bytes:
    """What comes back until the server closes the connection, or b"" where it only closes it."""
    received = b""
    try:
        for part in parts:
            connection.sendall(part)
        while data := connection.recv(65_536):
            received += data
    except (ConnectionError, ssl.SSLError, BrokenPipeError):
        pass
    return received


def test_one_connection_serves_many_requests(api: ServedMetricsApi) -> None:
    connection = api.connection()
    assert {ask(connection, HEALTH).status for _ in range(50)} == {200}
    connection.close()


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([b"GET /healthz HTTP/1.1\r\nx: ", *[b"a" * 10_000] * 20], id="one header that never ends"),
        pytest.param([b"GET /healthz HTTP/1.1\r\n", *[b"x: " + b"a" * 5000 + b"\r\n"] * 40], id="headers without end"),
        pytest.param([b"GET /", *[b"a" * 10_000] * 20], id="a path that never ends"),
    ],
)
def test_a_head_that_is_too_large_is_refused(api: ServedMetricsApi, parts: list[bytes]) -> None:
    assert sum(map(len, parts)) > Limits().head_bytes
    with raw(api) as connection:
        answer = answer_to(connection, *parts)
    assert answer == b"" or answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))
    assert api.get(HEALTH).status == 200


def test_a_large_head_within_the_bound_is_answered(api: ServedMetricsApi) -> None:
    headers = {f"X-Remote-Extra-{i}": "x" * 1000 for i in range(40)}
    assert api.get(HEALTH, headers=headers).status == 200


def test_a_body_is_not_read_for_ever(api: ServedMetricsApi) -> None:
    head = b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n"
    with raw(api) as connection:
        answer_to(connection, head, *[b"a" * Limits().body_bytes] * 50)
    assert api.get(HEALTH).status == 200


CHUNKED = b"POST /healthz HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("end_of_head", "piece"),
    [
        pytest.param(b"0\r\n", b"x: " + b"a" * 5000 + b"\r\n", id="headers behind the body"),
        pytest.param(b"", b"1;" + b"a" * 5000 + b"\r\nx\r\n", id="names of chunks that are longer than the chunks"),
    ],
)
def test_nothing_that_follows_a_head_is_read_for_ever(api: ServedMetricsApi, end_of_head: bytes, piece: bytes) -> None:
    with raw(api) as connection:
        connection.sendall(CHUNKED + end_of_head)
        with pytest.raises((ConnectionError, ssl.SSLError)):
            connection.sendall(piece * 10_000)
    assert api.get(HEALTH).status == 200


@pytest.mark.parametrize("header", [f"X-Remote-User: {HPA_ACCOUNT}", "Authorization: Bearer good"])
def test_a_header_behind_the_body_says_nothing_of_the_caller(
    api: ServedMetricsApi, header: str, tmp_path: Path
) -> None:
    """A front proxy that takes them for a part of the body passes them on as its own caller wrote them."""
    api.reviews_api.tokens, api.reviews_api.readers = {"good": HPA_ACCOUNT}, {HPA_ACCOUNT}
    connection = api.connection(api.authority.issue(FRONT_PROXY, tmp_path))
    connection.connect()
    head = f"GET {A_METRIC} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    answer = answer_to(connection.sock, f"{head}0\r\n{header}\r\n\r\n".encode())
    connection.close()
    assert answer.startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(
    "nonsense",
    [
        pytest.param(b"\x00\x01\x02\x03\r\n\r\n", id="bytes"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: a\r\nhost : b\r\n\r\n", id="a header with a blank"),
        pytest.param(b"GET / HTTP/9.9\r\n\r\n", id="another protocol"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
        pytest.param(b"GET / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", id="two lengths"),
    ],
)
def test_nonsense_ends_the_connection_and_nothing_else(api: ServedMetricsApi, nonsense: bytes) -> None:
    with raw(api) as connection:
        answer = answer_to(connection, nonsense)
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 401"))
    assert api.get(HEALTH).status == 200


@pytest.fixture
def impatient() -> Iterator[ServedMetricsApi]:
    """A server that waits two seconds for a request: long enough for a busy machine."""
    with ServedMetricsApi(limits=Limits(arrival_seconds=2.0)) as served:
        yield served


def test_who_is_too_slow_is_not_waited_for(impatient: ServedMetricsApi) -> None:
    beginnings = {
        "nothing": b"",
        "half a line": b"GET /healthz HT",
        "no end of the headers": b"GET /healthz HTTP/1.1\r\nhost: x\r\n",
        "half a body": b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc",
    }
    with ExitStack() as stack:
        slow = {name: stack.enter_context(raw(impatient)) for name in beginnings}
        for name, beginning in beginnings.items():
            if beginning:
                slow[name].sendall(beginning)
        # Each of these returns only when the server closes.
        answers = {name: answer_to(connection) for name, connection in slow.items()}
    assert answers.pop("half a body").startswith(b"HTTP/1.1 405")
    assert set(answers.values()) == {b""}


def test_an_idle_connection_is_kept(impatient: ServedMetricsApi) -> None:
    connection = impatient.connection()
    assert ask(connection, HEALTH).status == 200
    assert not threading.Event().wait(2.5)
    assert ask(connection, HEALTH).status == 200
    connection.close()


@pytest.fixture
def small() -> Iterator[ServedMetricsApi]:
    """A server that has room for five connections."""
    with ServedMetricsApi(limits=Limits(connections=5)) as served:
        yield served


def test_there_are_only_so_many_connections(small: ServedMetricsApi) -> None:
    opened = [small.connection() for _ in range(5)]
    assert {ask(connection, HEALTH).status for connection in opened} == {200}
    with pytest.raises((ConnectionError, ssl.SSLError)):
        small.get(HEALTH)
    assert ask(opened[0], HEALTH).status == 200
    opened.pop().close()
    wait_until(lambda: _answers(small), "a place is free again", 10)
    for connection in opened:
        connection.close()


def test_strangers_cannot_keep_the_api_server_out(small: ServedMetricsApi, tmp_path: Path) -> None:
    strangers = [small.connection() for _ in range(5)]
    assert {ask(connection, HEALTH).status for connection in strangers} == {200}
    front_proxy = small.authority.issue(FRONT_PROXY, tmp_path)
    assert small.get(client=front_proxy, headers=AS_THE_HPA).status == 200
    for connection in strangers:
        connection.close()


def _answers(api: ServedMetricsApi) -> bool:
    try:
        return api.get(HEALTH).status == 200
    except (ConnectionError, ssl.SSLError):
        return False


def test_a_new_certificate_drops_no_request(api: ServedMetricsApi) -> None:
    """Requests run on over kept and over new connections, while the certificate changes under them ten times."""
    failures: list[object] = []
    stop = threading.Event()

    def keep_asking() -> None:
        kept = api.connection()
        while not stop.is_set():
            try:
                failures.extend(answer for answer in (ask(kept, HEALTH), api.get(HEALTH)) if answer.status != 200)
            except OSError as error:
                failures.append(error)
                break
        kept.close()

    asking = threading.Thread(target=keep_asking)
    asking.start()
    served = set()
    for _ in range(10):
        renewed = with_new_certificate(api.material, NAMES, api.guard_clock.now_seconds())
        assert api.context.serve_with(renewed.pair) is None
        served.add(_served_certificate(api))
    stop.set()
    asking.join(10)
    assert failures == []
    assert len(served) == 10


def _served_certificate(api: ServedMetricsApi) -> bytes:
    with raw(api) as connection:
        return connection.getpeercert(binary_form=True) or b""


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(lambda good: ServingPair("nonsense", good.key_pem), id="no certificate"),
        pytest.param(lambda good: ServingPair(good.certificate_pem, ""), id="no key"),
        pytest.param(
            lambda good: ServingPair(good.certificate_pem, new_material(NAMES, 0.0).pair.key_pem), id="another's key"
        ),
    ],
)
def test_a_bad_pair_is_refused_and_the_old_one_served_on(api: ServedMetricsApi, pair) -> None:
    before = _served_certificate(api)
    assert isinstance(api.context.serve_with(pair(api.material.pair)), BadPair)
    assert _served_certificate(api) == before


def test_a_new_authority_of_the_front_proxy_counts_for_new_connections(api: ServedMetricsApi, tmp_path: Path) -> None:
    old, new = api.authority, ClientAuthority()
    old_client, new_client = old.issue(FRONT_PROXY, tmp_path), new.issue(FRONT_PROXY, tmp_path)
    kept = api.connection(old_client)
    assert ask(kept, headers=AS_THE_HPA).status == 200

    assert api.context.look_at_clients_of(old.pem + new.pem) is None
    assert api.get(client=old_client, headers=AS_THE_HPA).status == 200
    assert api.get(client=new_client, headers=AS_THE_HPA).status == 200

    assert api.context.look_at_clients_of(new.pem) is None
    assert api.get(client=new_client, headers=AS_THE_HPA).status == 200
    with pytest.raises((ssl.SSLError, ConnectionError)):
        api.get(client=old_client, headers=AS_THE_HPA)
    kept.close()


def test_connections_that_were_judged_before_end_when_told_to(api: ServedMetricsApi, tmp_path: Path) -> None:
    kept = api.connection(api.authority.issue(FRONT_PROXY, tmp_path))
    assert ask(kept, headers=AS_THE_HPA).status == 200
    api.server.begin_anew()
    kept.sock.settimeout(10)
    assert kept.sock.recv(1) == b""
    kept.close()


@pytest.mark.parametrize("authority", ["nonsense", ""])
def test_a_bad_authority_is_refused(api: ServedMetricsApi, authority: str, tmp_path: Path) -> None:
    assert isinstance(api.context.look_at_clients_of(authority), BadPair)
    client = api.authority.issue(FRONT_PROXY, tmp_path)
    assert api.get(client=client, headers=AS_THE_HPA).status == 200


def test_old_protocols_are_not_spoken(api: ServedMetricsApi) -> None:
    context = ssl.create_default_context(cadata=api.material.authority_pem)
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    plain = socket.create_connection(("127.0.0.1", api.server.port), timeout=10)
    with plain, pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(plain, server_hostname=NAMES[0])
