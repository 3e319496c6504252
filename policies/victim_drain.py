"""Which victims may go now, and which are first taken out of the router until their requests have ended?

A victim that serves is given no new requests, and goes when what it had is done or a deadline has passed. While it
waits it is still a replica: the count that stands includes it, and where load returns it serves again at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

# Routers hear of it within seconds. What was in flight at a sample before that says nothing of what came meanwhile.
ROUTERS_HEAR_SECONDS = 10.0
# An engine that has crashed is scraped no more: what it had then is lost already.
RECENT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class DrainedVictim:
    """A replica that is to go. `in_flight` is (when, how many requests) of its newest sample; None: nobody knows.

    `drained_at_seconds` None: it is still in the router. `can_be_drained` False: nothing would take it out.
    """

    name: str
    is_ready: bool
    can_be_drained: bool
    drained_at_seconds: float | None = None
    in_flight: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class DrainStep:
    """What is to be done about victims now, by name: taken out of the router, waited for, or gone without.

    `undrained` of those that may go are not taken out first, as nothing would do it; `cut_off` had requests left, or
    may have had, when their time was over.
    """

    take_out: tuple[str, ...]
    waiting: tuple[str, ...]
    may_go: tuple[str, ...]
    undrained: tuple[str, ...]
    cut_off: tuple[str, ...]


def next_drain_step(victims: Iterable[DrainedVictim], deadline_seconds: float, now_seconds: float) -> DrainStep:
    """The step for victims in the order in which they are to go. One that loads, or serves nobody, may go at once."""
    take_out, waiting, may_go, undrained, cut_off = [], [], [], [], []
    for victim in victims:
        if not victim.is_ready and not _has_requests(victim, now_seconds):
            may_go.append(victim.name)
        elif not victim.can_be_drained:
            may_go.append(victim.name)
            undrained.append(victim.name)
        elif victim.drained_at_seconds is None:
            take_out.append(victim.name)
        elif _is_idle(victim, victim.drained_at_seconds):
            may_go.append(victim.name)
        elif now_seconds - victim.drained_at_seconds >= deadline_seconds:
            may_go.append(victim.name)
            cut_off.append(victim.name)
        else:
            waiting.append(victim.name)
    return DrainStep(tuple(take_out), tuple(waiting), tuple(may_go), tuple(undrained), tuple(cut_off))


def _has_requests(victim: DrainedVictim, now_seconds: float) -> bool:
    """Whether it had some just now. One that is not Ready may: an overloaded engine, or one on a node that drains."""
    if victim.in_flight is None:
        return False
    sampled_at_seconds, requests = victim.in_flight
    return requests > 0.0 and now_seconds - sampled_at_seconds < RECENT_SECONDS


def _is_idle(victim: DrainedVictim, drained_at_seconds: float) -> bool:
    """Whether nothing was in flight at a sample by which routers had heard."""
    if victim.in_flight is None:
        return False
    sampled_at_seconds, requests = victim.in_flight
    return requests <= 0.0 and sampled_at_seconds >= drained_at_seconds + ROUTERS_HEAR_SECONDS
