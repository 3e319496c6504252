"""The other provider is asked over real TLS, and its troubles stay its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from autoscaler.clock import SystemClock
from autoscaler.external_metrics.breaker import FAILURES_UNTIL_OPEN
from autoscaler.external_metrics.caller import Caller
from autoscaler.external_metrics.forwarding import MAXIMUM_AT_ONCE, Forwarder, ForwardingMetrics, NotForwarded
from autoscaler.external_metrics.other_provider import Answer, NoAnswer, OtherProvider, can_be_named
from autoscaler.external_metrics.settings import ForwardSettings
from tests.fakes.certificates import CertificateAuthority
from tests.servers.metrics_provider import ROOT, MetricsProvider
from tests.servers.process import wait_until

PATH = f"{ROOT}/namespaces/shop/s0-kafka-orders"
CALLER = Caller(
    "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
    uid="17",
    groups=("system:serviceaccounts", "system:authenticated"),
    extra={"authentication.kubernetes.io/credential-id": ("JTI=1",)},
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    authority = CertificateAuthority()
    (tmp_path / "ca.crt").write_text(authority.certificate_text)
    authority.issue("other", tmp_path / "server")
    authority.issue("front-proxy-client", tmp_path / "tls")
    (tmp_path / "token").write_text("our-token\n")
    return tmp_path


@pytest.fixture
def other(folder: Path) -> Iterator[MetricsProvider]:
    with MetricsProvider((folder / "server.crt", folder / "server.key"), folder / "ca.crt") as provider:
        provider.behaviour.values = {("shop", "s0-kafka-orders"): "12500m"}
        yield provider


MakeProvider = Callable[..., OtherProvider]


@pytest.fixture
def ask_at(folder: Path) -> Iterator[MakeProvider]:
    """ask_at(url, as_front_proxy=False) -> OtherProvider, closed at the end."""
    with ExitStack() as made:

        def make(url: str, *, as_front_proxy: bool = False) -> OtherProvider:
            settings = ForwardSettings(
                url=url,
                authority=folder / "ca.crt",
                token=folder / "token",
                front_proxy_directory=folder if as_front_proxy else None,
            )
            provider = OtherProvider(settings, SystemClock())
            made.callback(provider.close)
            return provider

        yield make


def outcomes(registry: CollectorRegistry) -> dict[str, float]:
    found = {
        outcome: registry.get_sample_value("tokenscaler_forwarded_requests_total", {"outcome": outcome})
        for outcome in ("answered", "refused", "failed", "not_asked")
    }
    return {outcome: count for outcome, count in found.items() if count}


class Asking:
    """A forwarder in a loop of its own."""

    def __init__(self, provider: OtherProvider, patience_seconds: float = 10.0) -> None:
        self.registry = CollectorRegistry()
        self.executor = ThreadPoolExecutor(MAXIMUM_AT_ONCE)
        self.forwarder = Forwarder(
            provider, self.executor, SystemClock(), ForwardingMetrics(self.registry), patience_seconds
        )

    def get(self, times: int = 1) -> list[Answer | NotForwarded]:
        async def ask() -> list[Answer | NotForwarded]:
            return list(await asyncio.gather(*(self.forwarder.get(PATH, "", CALLER) for _ in range(times))))

        return asyncio.run(ask())


StartAsking = Callable[..., Asking]


@pytest.fixture
def start_asking(other: MetricsProvider, ask_at: MakeProvider) -> Iterator[StartAsking]:
    """start_asking(patience_seconds=10) -> Asking at the other provider, its threads gone at the end."""
    with ExitStack() as started:

        def start(patience_seconds: float = 10.0) -> Asking:
            asking = Asking(ask_at(other.url), patience_seconds)
            started.callback(asking.executor.shutdown)
            return asking

        yield start
        other.behaviour.is_silent = False


def test_with_a_token_we_ask_as_ourselves_and_say_nothing_of_the_caller(
    other: MetricsProvider, ask_at: MakeProvider, folder: Path
) -> None:
    answer = ask_at(other.url).read(PATH, "labelSelector=a%3Db", CALLER)

    assert isinstance(answer, Answer)
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert b'"value": "12500m"' in answer.body
    (request,) = other.requests
    assert request.query == {"labelSelector": ["a=b"]}
    assert request.header("Authorization") == ["Bearer our-token"]
    assert not [name for name, _ in request.headers if name.lower().startswith("x-remote")]


def test_a_renewed_token_counts_at_once(other: MetricsProvider, ask_at: MakeProvider, folder: Path) -> None:
    provider = ask_at(other.url)
    provider.read(PATH, "", None)
    (folder / "token").write_text("newer")

    provider.read(PATH, "", None)

    assert [request.header("Authorization") for request in other.requests] == [["Bearer our-token"], ["Bearer newer"]]


def test_as_a_front_proxy_we_say_who_the_caller_is_and_bring_no_token(
    other: MetricsProvider, ask_at: MakeProvider, folder: Path
) -> None:
    ask_at(other.url, as_front_proxy=True).read(PATH, "", CALLER)

    (request,) = other.requests
    assert request.peer == "front-proxy-client"
    assert request.header("X-Remote-User") == [CALLER.name]
    assert request.header("X-Remote-Uid") == ["17"]
    assert request.header("X-Remote-Group") == ["system:serviceaccounts", "system:authenticated"]
    assert request.header("X-Remote-Extra-authentication.kubernetes.io%2Fcredential-id") == ["JTI=1"]
    assert request.header("Authorization") == []


def test_a_caller_may_have_a_name_of_any_script(other: MetricsProvider, ask_at: MakeProvider) -> None:
    answer = ask_at(other.url, as_front_proxy=True).read(PATH, "", Caller("Ольга", groups=("Gäste",)))

    assert isinstance(answer, Answer)
    (request,) = other.requests
    said = [request.header("X-Remote-User"), request.header("X-Remote-Group")]
    # The receiver of a header sees its bytes.
    assert [[value.encode("latin-1").decode() for value in values] for values in said] == [["Ольга"], ["Gäste"]]


@pytest.mark.parametrize(
    ("caller", "can_be"),
    [
        pytest.param(CALLER, True, id="an account"),
        pytest.param(Caller("Ольга"), True, id="any script"),
        pytest.param(Caller("a\nX-Remote-Group: system:masters"), False, id="a name with a line's end"),
        pytest.param(Caller("a", groups=("b\r\n c",)), False, id="a group with one"),
        pytest.param(Caller("a", extra={"k\n": ("v",)}), True, id="a key is quoted"),
        pytest.param(Caller("a", extra={"k": ("v\0",)}), False, id="a value with a zero"),
    ],
)
def test_what_no_header_can_hold_is_known_before(caller: Caller, can_be: bool) -> None:
    assert can_be_named(caller) is can_be


def test_a_foreign_certificate_is_not_trusted(other: MetricsProvider, ask_at: MakeProvider, folder: Path) -> None:
    (folder / "ca.crt").write_text(CertificateAuthority().certificate_text)

    answer = ask_at(other.url).read(PATH, "", None)

    assert isinstance(answer, NoAnswer)
    assert "certificate verify failed" in answer.problem.lower()
    assert other.requests == []


def test_a_missing_token_is_a_problem_with_its_name(other: MetricsProvider, ask_at: MakeProvider, folder: Path) -> None:
    (folder / "token").unlink()

    answer = ask_at(other.url).read(PATH, "", None)

    assert isinstance(answer, NoAnswer)
    assert "token" in answer.problem


@pytest.mark.parametrize("url", ["http://other:80", "other", "https://"])
def test_only_an_https_address_will_do(url: str, ask_at: MakeProvider) -> None:
    with pytest.raises(ValueError, match="https"):
        ask_at(url)


def test_an_answer_is_passed_on_whatever_it_says(other: MetricsProvider, start_asking: StartAsking) -> None:
    asking = start_asking()
    (found,) = asking.get()
    other.behaviour.status = 500
    broken = asking.get(FAILURES_UNTIL_OPEN + 1)

    assert isinstance(found, Answer)
    # A broken metric of theirs is an answer: it must not cut off the others.
    assert [answer.status for answer in broken if isinstance(answer, Answer)] == [500] * (FAILURES_UNTIL_OPEN + 1)
    assert outcomes(asking.registry) == {"answered": FAILURES_UNTIL_OPEN + 2}


@pytest.mark.parametrize("code", [401, 403])
def test_its_refusal_of_us_is_not_passed_on_as_one_of_the_caller(
    other: MetricsProvider, start_asking: StartAsking, code: int
) -> None:
    other.behaviour.status = code
    asking = start_asking()

    (found,) = asking.get()

    assert isinstance(found, NotForwarded)
    assert "does not let Tokenscaler read external metrics" in found.message
    assert outcomes(asking.registry) == {"refused": 1}


def test_its_silence_is_cut_short_and_after_a_while_it_is_not_asked(
    other: MetricsProvider, start_asking: StartAsking
) -> None:
    other.behaviour.is_silent = True
    asking = start_asking(patience_seconds=0.3)

    failures = asking.get(FAILURES_UNTIL_OPEN)
    (then,) = asking.get()

    assert all(isinstance(each, NotForwarded) and "gave no answer" in each.message for each in failures)
    assert isinstance(then, NotForwarded)
    assert "has not answered for a while" in then.message
    assert outcomes(asking.registry) == {"failed": FAILURES_UNTIL_OPEN, "not_asked": 1}
    wait_until(lambda: len(other.requests) == FAILURES_UNTIL_OPEN, "the questions have come", 30)


def test_only_so_many_are_asked_at_once(other: MetricsProvider, start_asking: StartAsking) -> None:
    other.behaviour.is_silent = True
    asking = start_asking(patience_seconds=0.5)

    found = asking.get(MAXIMUM_AT_ONCE + 3)

    refused = [each for each in found if isinstance(each, NotForwarded) and "too much at once" in each.message]
    assert len(refused) == 3


def test_nobody_there_is_no_answer(folder: Path, ask_at: MakeProvider) -> None:
    with MetricsProvider((folder / "server.crt", folder / "server.key")) as gone:
        url = gone.url

    (found,) = Asking(ask_at(url)).get()

    assert isinstance(found, NotForwarded)
    assert url in found.message
