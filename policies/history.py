"""What is remembered of a pool between two decisions? Every part is bounded by the windows of the rules that read it.

Lists of times are made of named tuples, which records and statuses hold as short rows: [seconds, count].
`decide` returns the next history. What the caller then wrote (or failed to write) is not known to it: the caller adds
a rescale that has happened by `with_rescale`, and nothing where the write failed, so a failed patch is never an event.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from policies.capacity_split import CapacityType
from policies.constraints.behavior import ScalingBehavior, ScalingPolicy

# Longer silence than this between two decisions means that the time between them was not seen. Two missed 30 s ticks.
LONGEST_GAP_SECONDS = 120.0


class TimedRecommendation(NamedTuple):
    """A recommendation before stabilization, and when it was last made (unix seconds)."""

    at_seconds: float
    replicas: int


class ScaleEvent(NamedTuple):
    """A change of the count that we have written: positive up, negative down. Changes by others are no events."""

    at_seconds: float
    change: int


@dataclass(frozen=True, slots=True)
class MoveMemory:
    """How far a move to nodes of the other kind has come: `moved_replicas` stand beside the plan for it.

    It has gone on since `begun_at_seconds`. Before one, `settled_since_seconds` is since when nothing else has gone on;
    after one that came to nothing, `rests_until_seconds` is when the next may begin. `nodes_before` were beyond the
    floor when the last one began, and `failures` came to nothing in a row.
    """

    settled_since_seconds: float | None = None
    moved_replicas: int = 0
    begun_at_seconds: float | None = None
    there_before: int = 0  # replicas that served on the other kind then
    rests_until_seconds: float | None = None
    nodes_before: int | None = None
    to: CapacityType = CapacityType.SPOT
    failures: int = 0


@dataclass(frozen=True, slots=True)
class ScalingHistory:
    """What the next decision needs to know of the earlier ones. `None`: it has not happened, or does not hold now.

    `complete_since_seconds` is the time since which every recommendation is in `recommendations`; a restart without
    a saved history sets it to the start. `recommendations` has one entry for each distinct count, at the last time it
    was recommended (the stabilization windows ask for no more), the newest last. `scale_events` holds growth and
    shrinking, each in the order that HPA stores them in.
    """

    complete_since_seconds: float
    recommendations: tuple[TimedRecommendation, ...] = ()
    scale_events: tuple[ScaleEvent, ...] = ()
    last_desired_replicas: int | None = None
    last_seen_replicas: int | None = None  # the target's own count when that was decided, or as written since
    blind_since_seconds: float | None = None  # set until three good readings have followed
    consecutive_good_readings: int = 0
    is_in_fallback: bool = False
    low_coverage_since_seconds: float | None = None  # since when no more replicas have been missing than now
    most_missing_replicas: int = 0  # since then
    idle_since_seconds: float | None = None  # since when counters prove that there is no request
    is_scaled_to_zero: bool = False  # the zero is ours: our own last rescale went there
    latency_measured_at_seconds: float | None = None  # of the last latencies whose gaps between tokens were judged
    uneven_measurements: int = 0  # how many of them in a row have diverged, up to what is believed
    replaced_replicas: int = 0  # of the last desired: beyond the plan, in place of replicas that were about to go
    replaced_of_seen: int = 0  # the same of the last seen ones, which stand where that was never written
    node_move: MoveMemory | None = None  # of a pool with replicas that should be on the other kind of nodes


def new_history(now_seconds: float, spec_replicas: int) -> ScalingHistory:
    """A history that begins now: the present count is its first recommendation, as in the HorizontalPodAutoscaler."""
    return ScalingHistory(
        complete_since_seconds=now_seconds,
        recommendations=(TimedRecommendation(now_seconds, spec_replicas),),
    )


def with_rescale(
    history: ScalingHistory, behavior: ScalingBehavior, now_seconds: float, from_replicas: int, to_replicas: int
) -> ScalingHistory:
    """The history after the caller has written `to_replicas` over `from_replicas`; call it for nothing else.

    It becomes an event of the rate policies, and a target at zero is known to be there by our doing. Where it stands at
    another count later, somebody else has set it, were it the one from before.
    """
    growth = tuple(event for event in history.scale_events if event.change > 0)
    shrinking = tuple(event for event in history.scale_events if event.change < 0)
    change = to_replicas - from_replicas
    if change > 0:
        growth = store_event(growth, change, now_seconds, behavior.scale_up.policies)
    elif change < 0:
        shrinking = store_event(shrinking, change, now_seconds, behavior.scale_down.policies)
    return replace(
        history,
        scale_events=(*growth, *shrinking),
        last_seen_replicas=to_replicas,
        is_scaled_to_zero=to_replicas == 0,
    )


def with_followed_rescale(
    history: ScalingHistory, behavior: ScalingBehavior, now_seconds: float, spec_replicas: int
) -> ScalingHistory:
    """The history after a look at a target that somebody else scales by our count (an HPA).

    A change since the last look towards the count that was wanted then is a rescale like one of our own, for the rate
    policies and for whose zero it is. Any other change is somebody's own, and a zero of theirs is no sleep of ours.
    """
    seen, wanted = history.last_seen_replicas, history.last_desired_replicas
    if seen is None or wanted is None or spec_replicas == seen:
        return history
    if min(seen, wanted) <= spec_replicas <= max(seen, wanted):
        return with_rescale(history, behavior, now_seconds, seen, spec_replicas)
    return replace(history, is_scaled_to_zero=False)


def with_owner_of_zero(history: ScalingHistory, spec_replicas: int, is_count_ours: bool | None) -> ScalingHistory:
    """The history with whose zero it is, where the target itself can tell (`is_count_ours` not None).

    The target knows better than what is remembered: a write whose answer got lost may have happened, a process may
    have died before it saved what it wrote, and a zero of ours may have become somebody else's since.
    """
    if spec_replicas != 0 or is_count_ours is None:
        return history
    return replace(history, is_scaled_to_zero=is_count_ours)


def store_event(
    events: tuple[ScaleEvent, ...], change: int, now_seconds: float, policies: Iterable[ScalingPolicy]
) -> tuple[ScaleEvent, ...]:
    """One direction's events with a new one, in the place of the last outdated one or at the end.

    Exactly as HPA keeps them: outdated is what is older than the longest period of this direction, though the other
    direction's policies may look back further. Where the two differ, it shows in the counts.
    """
    longest_seconds = longest_period_seconds(policies)
    outdated = [index for index, event in enumerate(events) if now_seconds - event.at_seconds > longest_seconds]
    place = outdated[-1] if outdated else len(events)
    return (*events[:place], ScaleEvent(now_seconds, change), *events[place + 1 :])


def longest_period_seconds(policies: Iterable[ScalingPolicy]) -> float:
    """How long the events of a direction are kept at least; 0 for no policies."""
    return float(max((policy.period_seconds for policy in policies), default=0))


def with_recommendation(
    recommendations: Iterable[TimedRecommendation], now_seconds: float, replicas: int, kept_seconds: float
) -> tuple[TimedRecommendation, ...]:
    """The recommendations with one more, and without those that are older than `kept_seconds`."""
    younger = [
        earlier
        for earlier in recommendations
        if earlier.replicas != replicas and now_seconds - earlier.at_seconds < kept_seconds
    ]
    return (*younger, TimedRecommendation(now_seconds, replicas))


def not_from_the_future(history: ScalingHistory, now_seconds: float) -> ScalingHistory:
    """The history with nothing in it later than now: what is, has happened just now.

    A clock that was put back, or that of another leader, would else keep its rescales in every rate's period, and its
    recommendations in every window, for as long as it was ahead.
    """
    move = history.node_move
    times = (
        history.complete_since_seconds,
        *(entry[0] for entry in history.recommendations),
        *(event[0] for event in history.scale_events),
        history.blind_since_seconds or 0.0,
        history.low_coverage_since_seconds or 0.0,
        history.idle_since_seconds or 0.0,
        *((move.settled_since_seconds or 0.0, move.begun_at_seconds or 0.0) if move else ()),
    )
    if max(times) <= now_seconds:
        return history

    def by_now(at_seconds: float | None) -> float | None:
        return None if at_seconds is None else min(at_seconds, now_seconds)

    return replace(
        history,
        complete_since_seconds=min(history.complete_since_seconds, now_seconds),
        recommendations=tuple(
            TimedRecommendation(min(at_seconds, now_seconds), replicas)
            for at_seconds, replicas in history.recommendations
        ),
        scale_events=tuple(
            ScaleEvent(min(at_seconds, now_seconds), change) for at_seconds, change in history.scale_events
        ),
        blind_since_seconds=by_now(history.blind_since_seconds),
        low_coverage_since_seconds=by_now(history.low_coverage_since_seconds),
        idle_since_seconds=by_now(history.idle_since_seconds),
        node_move=move
        and replace(
            move,
            settled_since_seconds=by_now(move.settled_since_seconds),
            begun_at_seconds=by_now(move.begun_at_seconds),
        ),
    )


def after_any_gap(history: ScalingHistory, now_seconds: float) -> ScalingHistory:
    """The history as it may be relied on now: complete only since now where nothing was decided for two minutes."""
    if not history.recommendations or now_seconds - history.recommendations[-1].at_seconds <= LONGEST_GAP_SECONDS:
        return history
    return replace(history, complete_since_seconds=now_seconds, idle_since_seconds=None)


def held_replicas(history: ScalingHistory, spec_replicas: int) -> int:
    """The count to hold where nothing may be concluded from the signals.

    It is the last desired count or the present one as planned, whichever is more: a wish that could not be written yet
    is kept up, and no lowering that was not carried out is carried out blind. A count that somebody else has set since
    is a fact, and held as it is.
    """
    if history.last_desired_replicas is None:
        return spec_replicas
    set_by_others = spec_replicas not in (history.last_seen_replicas, history.last_desired_replicas)
    if set_by_others:
        return spec_replicas
    wish = history.last_desired_replicas - history.replaced_replicas
    return max(planned_replicas(history, spec_replicas), wish)


def planned_replicas(history: ScalingHistory, spec_replicas: int) -> int:
    """The present count without what was last asked for in place of replicas that were about to go.

    Where somebody else has set the count since, it is the present count as it is.
    """
    return spec_replicas - replaced_within(history, spec_replicas)


def replaced_within(history: ScalingHistory, spec_replicas: int) -> int:
    """How many of the present count stand in place of replicas that were about to go."""
    if spec_replicas == history.last_desired_replicas:
        return history.replaced_replicas
    return history.replaced_of_seen if spec_replicas == history.last_seen_replicas else 0
