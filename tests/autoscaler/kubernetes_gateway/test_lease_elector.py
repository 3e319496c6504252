from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autoscaler.clock import ManualClock, SystemClock
from autoscaler.kubernetes_gateway.api_failure import Timeout, Unreachable
from autoscaler.kubernetes_gateway.connection import (
    CONNECT_TIMEOUT_SECONDS,
    UNACKNOWLEDGED_TIMEOUT_MILLISECONDS,
    WRITE_TIMEOUT_SECONDS,
    connect,
)
from autoscaler.kubernetes_gateway.lease_elector import LeaseElector, LeaseTiming
from tests.fakes.api_server import Answer, FakeApiServer, Request

NAMESPACE = "inference"

Candidate = Callable[..., LeaseElector]


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as fake:
        yield fake


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_790_000_000.0)


@pytest.fixture
def candidate(server: FakeApiServer, tmp_path: Path, clock: ManualClock) -> Candidate:
    connection = connect(server.write_kubeconfig(tmp_path), None)

    def make(identity: str, own_clock: ManualClock | None = None) -> LeaseElector:
        return LeaseElector(connection, NAMESPACE, "tokenscaler", identity, own_clock or clock, lambda: 0.5)

    return make


def _spec(server: FakeApiServer) -> dict[str, object]:
    spec = server.get("leases", "tokenscaler", NAMESPACE)["spec"]
    assert isinstance(spec, dict)
    return spec


def _is_write(request: Request) -> bool:
    return request.method in ("PUT", "POST")


def test_the_first_one_creates_the_lease_and_leads(candidate: Candidate, server: FakeApiServer) -> None:
    one = candidate("one")
    one.step()
    assert one.is_leader()
    assert _spec(server) == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 10,
        "leaseTransitions": 0,
        "acquireTime": "2026-09-21T14:13:20.000000Z",
        "renewTime": "2026-09-21T14:13:20.000000Z",
    }


def test_the_second_one_waits_while_the_first_renews(candidate: Candidate, clock: ManualClock) -> None:
    one, two = candidate("one"), candidate("two")
    for _ in range(30):
        one.step()
        two.step()
        clock.advance(1.5)
    assert (one.is_leader(), two.is_leader(), two.holder) == (True, False, "one")


def test_a_dead_leader_is_followed_within_the_promised_time(
    candidate: Candidate, clock: ManualClock, server: FakeApiServer
) -> None:
    one, two = candidate("one"), candidate("two")
    one.step()
    # The last look of the second one before the last renewal of the first: the worst case.
    two.step()
    one.step()
    died_at_seconds = clock.now_seconds()
    while not two.is_leader():
        clock.advance(two.step())
    assert clock.now_seconds() - died_at_seconds <= 12.0
    assert _spec(server)["leaseTransitions"] == 1


def test_a_candidate_trusts_its_own_clock_not_the_time_in_the_lease(
    candidate: Candidate, clock: ManualClock, server: FakeApiServer
) -> None:
    skewed = ManualClock(clock.now_seconds() - 3600.0)
    one, two = candidate("one", skewed), candidate("two")
    for _ in range(20):
        one.step()
        two.step()
        clock.advance(1.5)
        skewed.advance(1.5)
    assert (one.is_leader(), two.is_leader()) == (True, False)
    assert str(_spec(server)["renewTime"]).startswith("2026-09-21T13:1")


def test_a_newcomer_waits_a_whole_lease_before_it_follows_a_dead_leader(
    candidate: Candidate, clock: ManualClock
) -> None:
    candidate("one").step()
    clock.advance(3600.0)
    two = candidate("two")
    two.step()
    assert not two.is_leader()
    clock.advance(9.9)
    two.step()
    assert not two.is_leader()
    clock.advance(0.2)
    two.step()
    assert two.is_leader()


@pytest.mark.parametrize(
    ("age_seconds", "may_write"),
    [
        pytest.param(0.0, True, id="just renewed"),
        pytest.param(5.9, True, id="within the renew deadline"),
        pytest.param(6.0, False, id="at the deadline"),
        pytest.param(60.0, False, id="after having been stopped for a minute"),
    ],
)
def test_the_fence_closes_with_time_alone(
    candidate: Candidate, clock: ManualClock, age_seconds: float, may_write: bool
) -> None:
    one = candidate("one")
    one.step()
    clock.advance(age_seconds)
    assert one.fence() is may_write


def test_a_leader_that_was_stopped_learns_that_it_has_been_followed(
    candidate: Candidate, clock: ManualClock, server: FakeApiServer
) -> None:
    one, two = candidate("one"), candidate("two")
    one.step()
    two.step()
    clock.advance(60.0)
    two.step()
    assert two.is_leader()
    one.step()
    assert (one.is_leader(), one.holder) == (False, "two")
    assert _spec(server)["holderIdentity"] == "two"


def test_a_leader_that_was_stopped_and_not_followed_leads_on(candidate: Candidate, clock: ManualClock) -> None:
    one = candidate("one")
    one.step()
    clock.advance(60.0)
    assert not one.fence()
    one.step()
    assert one.fence()


def test_a_candidate_that_was_stopped_does_not_take_a_lease_that_was_renewed(
    candidate: Candidate, clock: ManualClock
) -> None:
    one, two = candidate("one"), candidate("two")
    one.step()
    two.step()
    clock.advance(60.0)
    one.step()
    two.step()
    assert (one.is_leader(), two.is_leader()) == (True, False)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(500), id="a server error"),
        pytest.param(Answer(403), id="a missing permission"),
        pytest.param(Answer(429, headers={"Retry-After": "1"}), id="throttled"),
        pytest.param(Answer(None), id="a broken connection"),
        pytest.param(Answer(200, b"<html>"), id="a proxy's page"),
    ],
)
def test_a_renewal_that_fails_does_not_prolong_the_right_to_write(
    candidate: Candidate, clock: ManualClock, server: FakeApiServer, answer: Answer
) -> None:
    one = candidate("one")
    one.step()
    server.fail(_is_write, answer, times=100)
    for _ in range(4):
        clock.advance(1.5)
        one.step()
    assert not one.fence()
    assert one.problem is not None


def test_a_renewal_that_happened_unheard_is_no_obstacle(
    candidate: Candidate, clock: ManualClock, server: FakeApiServer
) -> None:
    one = candidate("one")
    one.step()
    # What a request that was answered too late leaves behind: our own renewal under a newer resourceVersion.
    lease = server.get("leases", "tokenscaler", NAMESPACE)
    server.put("leases", lease)
    clock.advance(1.5)
    one.step()
    assert one.fence()


def test_two_that_want_an_expired_lease_at_once_do_not_both_get_it(
    candidate: Candidate, clock: ManualClock, server: FakeApiServer
) -> None:
    candidate("one").step()
    two = candidate("two")
    two.step()
    clock.advance(11.0)
    server.fail(_is_write, Answer(409), times=1)
    two.step()
    assert not two.is_leader()
    assert two.problem is None


def test_a_released_lease_is_taken_at_the_next_look(
    candidate: Candidate, clock: ManualClock, server: FakeApiServer
) -> None:
    one, two = candidate("one"), candidate("two")
    one.step()
    two.step()
    one.release()
    assert not one.fence()
    assert _spec(server)["holderIdentity"] == ""
    clock.advance(1.5)
    two.step()
    assert two.is_leader()
    assert _spec(server)["leaseTransitions"] == 1


def test_who_does_not_hold_the_lease_does_not_release_it(candidate: Candidate, server: FakeApiServer) -> None:
    one, two = candidate("one"), candidate("two")
    one.step()
    two.step()
    two.release()
    assert _spec(server)["holderIdentity"] == "one"


def test_a_lease_that_was_deleted_is_made_again(
    candidate: Candidate, clock: ManualClock, server: FakeApiServer
) -> None:
    one = candidate("one")
    one.step()
    server.delete("leases", "tokenscaler", NAMESPACE)
    clock.advance(1.5)
    one.step()
    assert one.fence()
    assert _spec(server)["holderIdentity"] == "one"


def test_a_lease_without_a_spec_is_taken(candidate: Candidate, server: FakeApiServer) -> None:
    server.put("leases", {"metadata": {"name": "tokenscaler", "namespace": NAMESPACE}})
    one = candidate("one")
    one.step()
    assert one.is_leader()


def test_changes_of_leadership_are_told_once(server: FakeApiServer, tmp_path: Path, clock: ManualClock) -> None:
    told: list[bool] = []
    connection = connect(server.write_kubeconfig(tmp_path), None)
    one = LeaseElector(connection, NAMESPACE, "l", "one", clock, lambda: 0.5, on_change=told.append)
    one.step()
    one.step()
    server.fail(lambda _: True, Answer(500), times=100)
    clock.advance(7.0)
    one.step()
    one.step()
    assert told == [True, False]


def test_a_started_elector_leads_and_releases_when_stopped(server: FakeApiServer, tmp_path: Path) -> None:
    connection = connect(server.write_kubeconfig(tmp_path), None)
    one = LeaseElector(connection, NAMESPACE, "tokenscaler", "one", SystemClock(), lambda: 0.5)
    one.start()
    one.stop()
    assert not one.is_leader()
    assert not server.all("leases") or _spec(server)["holderIdentity"] == ""


def test_an_unreachable_server_is_a_problem_not_a_crash(candidate: Candidate, server: FakeApiServer) -> None:
    one = candidate("one")
    server.stop()
    one.step()
    assert isinstance(one.problem, Unreachable | Timeout)
    assert not one.is_leader()
    assert one.holder is None


def test_a_write_cannot_be_under_way_longer_than_the_lease_outlives_the_fence() -> None:
    timing = LeaseTiming()
    margin_seconds = timing.lease_duration_seconds - timing.renew_deadline_seconds
    assert margin_seconds > CONNECT_TIMEOUT_SECONDS + WRITE_TIMEOUT_SECONDS
    assert margin_seconds > CONNECT_TIMEOUT_SECONDS + UNACKNOWLEDGED_TIMEOUT_MILLISECONDS / 1000
    # A candidate has seen the last renewal one retry after it, waits, and may fail once.
    assert timing.lease_duration_seconds + 2 * timing.retry_seconds < 15.0


def test_timings_that_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="renew deadline < lease duration"):
        LeaseTiming(lease_duration_seconds=10.0, renew_deadline_seconds=10.0)


def test_a_tenure_lasts_while_nobody_else_has_led(
    candidate: Candidate, clock: ManualClock, server: FakeApiServer
) -> None:
    one = candidate("one")
    assert one.tenure() is None
    one.step()
    first = one.tenure()
    assert first is not None
    clock.advance(60.0)  # the lease could not be renewed for a minute, and nobody else was there
    assert one.tenure() is None
    one.step()
    assert one.tenure() == first


def test_who_leads_again_after_another_has_a_new_tenure(candidate: Candidate, clock: ManualClock) -> None:
    one, two = candidate("one"), candidate("two")
    one.step()
    first = one.tenure()
    two.step()
    clock.advance(10.1)
    two.step()
    assert two.is_leader()
    two.release()
    one.step()
    assert one.tenure() not in (None, first)


def test_a_lease_that_was_won_without_hearing_of_it_begins_a_new_tenure(
    candidate: Candidate, clock: ManualClock, server: FakeApiServer
) -> None:
    one, two = candidate("one"), candidate("two")
    one.step()
    first = one.tenure()
    two.step()
    clock.advance(10.1)
    two.step()
    one.step()
    assert one.tenure() is None
    lease = server.get("leases", "tokenscaler", NAMESPACE)
    server.put("leases", lease | {"spec": {**lease["spec"], "holderIdentity": "one"}})
    one.step()
    assert one.tenure() not in (None, first)
