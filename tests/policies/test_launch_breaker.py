"""When a NodePool's nodes cannot be had, and when they are worth another try."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.launch_breaker import (
    LaunchFailure,
    LaunchResult,
    Offering,
    classify_failure,
    launch_problem,
    open_breakers,
)
from policies.reasons import Reason

CAPACITY, QUOTA, CONFIGURATION = LaunchFailure
A, B = Offering("p5.48xlarge", "us-east-1a", "spot"), Offering("p5.48xlarge", "us-east-1b", "spot")
MINUTE = 60.0


def failed(
    minute: float, *offerings: Offering, failure: LaunchFailure = CAPACITY, standing: bool = False
) -> LaunchResult:
    return LaunchResult(minute * MINUTE, offerings or (A,), failure, "no luck", standing)


def came(minute: float, offering: Offering = A) -> LaunchResult:
    return LaunchResult(minute * MINUTE, (offering,))


@pytest.mark.parametrize(
    ("results", "at_minute", "open_until"),
    [
        pytest.param([], 0, {}, id="nothing was launched"),
        pytest.param([came(0)], 1, {}, id="a node came"),
        pytest.param([failed(0)], 1, {A: 3}, id="the first failure waits for 3 minutes"),
        pytest.param([failed(0)], 3, {}, id="then it is worth a try"),
        pytest.param([failed(0), failed(3)], 4, {A: 13}, id="the second in a row for 10"),
        pytest.param([failed(0), failed(3), failed(13)], 14, {A: 43}, id="the third for 30"),
        pytest.param([failed(0), failed(3), failed(13), failed(43)], 44, {A: 73}, id="and so does the fourth"),
        pytest.param([failed(0), failed(0.1), failed(1)], 2, {A: 3}, id="several launches of one moment are one try"),
        pytest.param([failed(0), came(1)], 2, {}, id="a node that comes closes it"),
        pytest.param(
            [failed(0), came(4), failed(5)], 6, {A: 8}, id="and what fails after that fails for the first time"
        ),
        pytest.param([failed(0), failed(40)], 41, {A: 43}, id="so does what fails long after"),
        pytest.param([failed(0, A, B)], 1, {A: 3, B: 3}, id="a launch that might take either zone opens both"),
        pytest.param([failed(0, A, B), came(1, B)], 2, {A: 3}, id="a node of one zone says nothing of the other"),
        pytest.param([failed(0, failure=QUOTA)], 29, {A: 30}, id="a quota is not raised within minutes"),
        pytest.param([failed(0, standing=True)], 90, {A: 93}, id="a launch that fails to this moment"),
        pytest.param([came(1), failed(0)], 2, {}, id="results come in any order"),
    ],
)
def test_breakers(results: list[LaunchResult], at_minute: float, open_until: dict[Offering, float]) -> None:
    found = open_breakers(results, at_minute * MINUTE)

    assert {each.offering: each.retry_at_seconds / MINUTE for each in found} == open_until


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        pytest.param([], None, id="nothing was launched"),
        pytest.param([failed(0)], Reason.OUT_OF_CAPACITY, id="no capacity"),
        pytest.param([failed(0, failure=QUOTA)], Reason.QUOTA_EXCEEDED, id="no quota"),
        pytest.param([failed(0, failure=CONFIGURATION)], Reason.LAUNCH_MISCONFIGURED, id="a mistake"),
        pytest.param([failed(0, A), came(0.5, B)], None, id="another zone has some"),
        pytest.param([came(0, B), failed(0.5, A)], Reason.OUT_OF_CAPACITY, id="another zone had some before"),
    ],
)
def test_a_node_pool_makes_no_nodes(results: list[LaunchResult], reason: Reason | None) -> None:
    problem = launch_problem(results, MINUTE)

    assert (None if problem is None else problem.reason) == reason


def test_the_problem_is_the_one_that_was_met_last_though_it_was_no_further_try() -> None:
    tries = [failed(0), failed(0.5, B, failure=QUOTA), failed(1, failure=CONFIGURATION)]
    problem = launch_problem(tries, 2 * MINUTE)
    assert problem is not None
    assert problem.failure is CONFIGURATION
    assert "mend it (no luck)" in problem.message


def test_the_problem_says_what_was_said_and_when_it_is_tried_again() -> None:
    problem = launch_problem([failed(0, A, B)], MINUTE)

    assert problem is not None
    assert problem.message == (
        "the cloud has none to give (no luck); asked for again: spot p5.48xlarge in us-east-1a not before 2 min from "
        "now; spot p5.48xlarge in us-east-1b not before 2 min from now"
    )


@pytest.mark.parametrize(
    ("count", "more"), [pytest.param(4, "", id="four are all told"), pytest.param(6, "; and 2 more", id="of six four")]
)
def test_of_many_offerings_four_are_told(count: int, more: str) -> None:
    offerings = [replace(A, zone=f"zone-{number}") for number in range(count)]
    problem = launch_problem([failed(0, *offerings)], MINUTE)
    assert problem is not None
    told = [f"spot p5.48xlarge in zone-{number} not before 2 min from now" for number in range(4)]
    assert problem.message.partition("asked for again: ")[2] == "; ".join(told) + more


@pytest.mark.parametrize(
    ("reason", "message", "failure"),
    [
        ("InsufficientCapacityError", "NodeClaim x event: all requested instance types were unavailable", CAPACITY),
        ("InsufficientCapacityError", "with fleet error(s), VcpuLimitExceeded: You have requested more", QUOTA),
        ("InsufficientCapacityError", "MaxSpotInstanceCountExceeded: Max spot instance count exceeded", QUOTA),
        ("LaunchFailed", "InsufficientInstanceCapacity: We currently do not have sufficient p5.48xlarge", CAPACITY),
        ("LaunchFailed", "ZONE_RESOURCE_POOL_EXHAUSTED", CAPACITY),
        ("LaunchFailed", "UnauthorizedOperation: You are not authorized to perform this operation", CONFIGURATION),
        ("SecurityGroupsNotFound", "no security groups matched", CONFIGURATION),
    ],
)
def test_failures_are_told_apart(reason: str, message: str, failure: LaunchFailure) -> None:
    assert classify_failure(reason, message) is failure
