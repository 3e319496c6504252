"""Can a NodePool's nodes be had at this moment, by how its last launches ended, and when is it worth another try?

A breaker for each offering (instance type, zone, capacity type): it opens with a failure, for 3 minutes, then 10, then
30 as long as each further try fails, and closes with the first node that comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from policies.reasons import Reason
from policies.wording import duration

# Karpenter itself asks for an offering again after 3 minutes; want of capacity lasts for hours.
BACK_OFF_SECONDS = (180.0, 600.0, 1800.0)
# Whoever fails again so long after it was worth another try fails anew.
FORGOTTEN_SECONDS = 1800.0


class LaunchFailure(StrEnum):
    """Why no node came, by who can do something about it: nobody, whoever raises the quota, whoever mends the spec."""

    CAPACITY = "capacity"
    QUOTA = "quota"
    CONFIGURATION = "configuration"


REASONS: Mapping[LaunchFailure, Reason] = {
    LaunchFailure.CAPACITY: Reason.OUT_OF_CAPACITY,
    LaunchFailure.QUOTA: Reason.QUOTA_EXCEEDED,
    LaunchFailure.CONFIGURATION: Reason.LAUNCH_MISCONFIGURED,
}
_WHAT_TO_DO = {
    LaunchFailure.CAPACITY: "the cloud has none to give",
    LaunchFailure.QUOTA: "the account's quota is used up: raise it, waiting does not help",
    LaunchFailure.CONFIGURATION: "the cloud refuses what the NodePool or its NodeClass asks for: mend it",
}
# Error codes of clouds. Whoever hands out quotas calls them limits, but not every limit is one: requests are throttled.
_QUOTA_WORDS = (
    "vcpulimitexceeded",
    "maxspotinstancecountexceeded",
    "instancelimitexceeded",
    "quota",
    "quotaexceeded",
)
_CAPACITY_WORDS = (
    "insufficientcapacity",
    "insufficientinstancecapacity",
    "insufficienthostcapacity",
    "insufficientreservedinstancecapacity",
    "unfulfillablecapacity",
    "spotmaxpricetoolow",
    "zone_resource_pool_exhausted",
    "skunotavailable",
    "allocationfailed",
    "insufficient capacity",
    "sufficient capacity",
)


@dataclass(frozen=True, slots=True, order=True)
class Offering:
    """What can be bought; "any" where a launch left it open or nobody knows any more."""

    instance_type: str
    zone: str
    capacity_type: str

    def __str__(self) -> str:
        return f"{self.capacity_type} {self.instance_type} in {self.zone}"


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """How a launch ended: a node (`failure` None) of one offering, or none of all that were allowed.

    `is_standing`: it is being tried again and again and fails to this moment.
    """

    at_seconds: float
    offerings: tuple[Offering, ...]
    failure: LaunchFailure | None = None
    message: str = ""
    is_standing: bool = False


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """An offering that is not worth a try before `retry_at_seconds`, after so many tries that failed."""

    offering: Offering
    failure: LaunchFailure
    failed_at_seconds: float
    tries: int
    retry_at_seconds: float
    message: str


@dataclass(frozen=True, slots=True)
class LaunchProblem:
    """Why a NodePool makes no nodes now: the class of its last failure, and a sentence with all that is open."""

    failure: LaunchFailure
    message: str

    @property
    def reason(self) -> Reason:
        """One word for conditions."""
        return REASONS[self.failure]


def classify_failure(reason: str, message: str) -> LaunchFailure:
    """The class of a failed launch by what Karpenter says of it; what is neither capacity nor quota is a mistake."""
    words = f"{reason} {message}".lower()
    if any(word in words for word in _QUOTA_WORDS):
        return LaunchFailure.QUOTA
    if any(word in words for word in _CAPACITY_WORDS):
        return LaunchFailure.CAPACITY
    return LaunchFailure.CONFIGURATION


def open_breakers(results: Iterable[LaunchResult], now_seconds: float) -> tuple[OpenBreaker, ...]:
    """The offerings of one NodePool that are not worth a try now, by all that is known of the last hour's launches."""
    breakers: dict[Offering, OpenBreaker] = {}
    for result in sorted(results, key=lambda each: each.at_seconds):
        for offering in result.offerings:
            if result.failure is None:
                breakers.pop(offering, None)
            else:
                breakers[offering] = _after_failure(
                    breakers.get(offering), offering, result, result.failure, now_seconds
                )
    return tuple(
        breakers[offering] for offering in sorted(breakers) if breakers[offering].retry_at_seconds > now_seconds
    )


def launch_problem(results: Iterable[LaunchResult], now_seconds: float) -> LaunchProblem | None:
    """Why one NodePool makes no nodes; None where it does, or where it is time to try again.

    A node of any of its offerings that came after the last failure shows that there are some to be had.
    """
    known = tuple(results)
    failed = open_breakers(known, now_seconds)
    if not failed:
        return None
    last = max(failed, key=lambda each: each.failed_at_seconds)
    if any(each.failure is None and each.at_seconds > last.failed_at_seconds for each in known):
        return None
    waits = "; ".join(
        f"{each.offering} not before {duration(each.retry_at_seconds - now_seconds)} from now" for each in failed[:4]
    )
    more = f"; and {len(failed) - 4} more" if len(failed) > 4 else ""
    said = f" ({last.message})" if last.message else ""
    return LaunchProblem(last.failure, f"{_WHAT_TO_DO[last.failure]}{said}; asked for again: {waits}{more}")


def _after_failure(
    before: OpenBreaker | None, offering: Offering, result: LaunchResult, failure: LaunchFailure, now_seconds: float
) -> OpenBreaker:
    at_seconds = max(result.at_seconds, now_seconds) if result.is_standing else result.at_seconds
    if before is not None and at_seconds < before.retry_at_seconds:
        # One of several launches of the same moment, or one that was under way: no further try.
        return replace(before, failure=failure, failed_at_seconds=at_seconds, message=result.message)
    is_anew = before is None or at_seconds - before.retry_at_seconds > FORGOTTEN_SECONDS
    tries = 1 if is_anew or before is None else before.tries + 1
    waits = BACK_OFF_SECONDS if failure is not LaunchFailure.QUOTA else BACK_OFF_SECONDS[-1:]
    seconds = waits[min(tries, len(waits)) - 1]
    return OpenBreaker(offering, failure, at_seconds, tries, at_seconds + seconds, result.message)
