"""Should replicas be asked for beside the plan now, so that one node's move to nodes of the other kind?

To spot, where the floor allows it; to nodes on demand, where the floor is broken. Only while nothing else goes on, and
has not for a while; within the maximum and the accelerators; one node at a time. What comes serves before as many go.
What does not come in time, or leaves as many nodes as before, is not tried again for a while.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from policies.capacity_split import CapacityType
from policies.constraints.constraint import Limited
from policies.constraints.leaving_replicas import may_give_back, most_replicas
from policies.constraints.stabilization import scale_down_window_seconds
from policies.history import MoveMemory
from policies.parameters import Mode
from policies.reasons import Reason
from policies.wording import counted, duration

if TYPE_CHECKING:
    from policies.node_move import NodeMove
    from policies.situation import Situation

# After a try that came to nothing. A breaker on launches opens for as long at most, and tells more of why.
REST_SECONDS = 1800.0
# What fails time after time costs money and saves none: each rest is twice the last one, up to a day.
LONGEST_REST_SECONDS = 86_400.0
# Beside the longest time of a start: until somebody has looked at the pod, the node, and the pod again. A broken floor
# is mended after as long a calm: it is a promise, and needs no proof that it pays.
LOOKING_SECONDS = 60.0


def move_to_other_nodes(situation: Situation, replicas: int) -> Limited:
    """The count, or as many more as move the replicas of one node: 10 planned, 11 asked for.

    With it comes what is to be remembered of the move.
    """
    memory = situation.history.node_move
    offer = situation.decision_input.node_move
    if memory is not None and memory.moved_replicas:
        return _go_on(situation, replicas, memory, offer)
    if offer is None or offer.nodes_beyond_floor == 0:
        if memory is None or not _rests(memory, situation.now_seconds):
            return Limited(replicas, Reason.NOT_LIMITED, "")
        return Limited(replicas, Reason.NOT_LIMITED, "", replace(memory, settled_since_seconds=None))
    if memory is None or memory.to is not offer.to:
        memory = MoveMemory(to=offer.to)
    return _begin(situation, replicas, memory, offer)


def _begin(situation: Situation, replicas: int, memory: MoveMemory, offer: NodeMove) -> Limited:
    now_seconds = situation.now_seconds
    if not _is_calm(situation, replicas):
        is_as_planned = replicas == situation.current_replicas
        memory = replace(
            memory, settled_since_seconds=None, nodes_before=memory.nodes_before if is_as_planned else None
        )
        return Limited(replicas, Reason.NOT_LIMITED, "", memory)
    since_seconds = now_seconds if memory.settled_since_seconds is None else memory.settled_since_seconds
    memory = replace(memory, settled_since_seconds=since_seconds)
    nodes = counted(offer.nodes_beyond_floor, "node")
    beyond = f"{nodes} on {'demand' if offer.to is CapacityType.SPOT else 'spot'} beyond the floor"
    room = most_replicas(situation) - replicas
    if offer.waits:
        return Limited(replicas, Reason.NOT_LIMITED, f"{beyond}: {offer.because}", memory)
    if offer.surge_replicas == 0:
        return _refused(replicas, memory, f"{beyond}: {offer.because}")
    if offer.surge_replicas > room:
        more = counted(offer.surge_replicas, "replica")
        message = (
            f"{beyond}: {more} more for a while would move one to {_WHERE[offer.to]}, and the maximum and the "
            f"accelerators leave {max(0, room)}"
        )
        return _refused(replicas, memory, message)
    if _rests(memory, now_seconds):
        return _refused(replicas, memory, f"{beyond}: {_not_come(memory, offer, now_seconds)}")
    if now_seconds - since_seconds < _calm_seconds(situation, offer.to):
        return Limited(replicas, Reason.NOT_LIMITED, "", memory)
    if memory.nodes_before is not None and offer.nodes_beyond_floor >= memory.nodes_before:
        return _given_up(situation, replicas, memory, f"the last one has left as many nodes {_ON[offer.to.other]}")
    asked = replicas + offer.surge_replicas
    message = f"{asked} asked for: {beyond}, so that {_in_place(offer.surge_replicas, offer.to)}"
    started = MoveMemory(
        to=offer.to,
        moved_replicas=offer.surge_replicas,
        begun_at_seconds=now_seconds,
        there_before=offer.replicas_there,
        nodes_before=offer.nodes_beyond_floor,
        failures=memory.failures if memory.nodes_before is None else 0,
    )
    return Limited(asked, _DOING[offer.to], message, started)


def _go_on(situation: Situation, replicas: int, memory: MoveMemory, offer: NodeMove | None) -> Limited:
    """Waits for what was asked for, then has as many go; gives up where something else is the matter."""
    counts = situation.decision_input.replicas
    if counts.spec not in (situation.history.last_seen_replicas, situation.history.last_desired_replicas):
        return Limited(replicas, Reason.NOT_LIMITED, "", None)  # somebody else has set the count
    asked = replicas + memory.moved_replicas
    if not may_give_back(situation) and counts.leaving == 0:
        # What stands beside the plan stays until all is seen again.
        return Limited(replicas, Reason.NOT_LIMITED, "", memory)
    come = 0 if offer is None or offer.to is not memory.to else offer.replicas_there - memory.there_before
    if replicas != situation.current_replicas or counts.leaving:
        message = f"the way to {_WHERE[memory.to]} is left: another count is wanted, or replicas are about to go"
        return Limited(replicas, _REFUSED[memory.to], message, None)
    if counts.stuck:
        return _given_up(situation, replicas, memory, f"{counted(counts.stuck, 'replica')} stuck")
    # With more there than asked for, by a rollout, nobody can say who goes.
    if counts.ready == counts.status == counts.spec == asked and come > 0:
        message = f"all {asked} serve: {_in_place(memory.moved_replicas, memory.to)}"
        memory = MoveMemory(to=memory.to, nodes_before=memory.nodes_before, failures=memory.failures)
        return Limited(replicas, _DOING[memory.to], message, memory)
    # Whoever has just begun to lead has not looked at nodes yet.
    if offer is not None and not offer.can_buy:
        return _given_up(situation, replicas, memory, f"{_WHAT[memory.to]} cannot be had any more")
    begun_at_seconds = memory.begun_at_seconds or 0.0
    limit_seconds = situation.decision_input.cold_start.start_limit_seconds + LOOKING_SECONDS
    waited_seconds = situation.now_seconds - begun_at_seconds
    if waited_seconds >= limit_seconds:
        why = f"after {duration(waited_seconds)} they do not all serve {_ON[memory.to]}"
        return _given_up(situation, replicas, memory, why)
    if asked > most_replicas(situation):
        return _given_up(situation, replicas, memory, "the maximum and the accelerators leave no room any more")
    message = f"{asked} asked for until all serve, so that {_in_place(memory.moved_replicas, memory.to)}"
    return Limited(asked, _DOING[memory.to], message, memory)


_DOING = {CapacityType.SPOT: Reason.RETURNING_TO_SPOT, CapacityType.ON_DEMAND: Reason.RESTORING_FLOOR}
_REFUSED = {CapacityType.SPOT: Reason.RETURN_REFUSED, CapacityType.ON_DEMAND: Reason.FLOOR_NOT_RESTORED}
_WHERE = {CapacityType.SPOT: "spot", CapacityType.ON_DEMAND: "on demand"}
_ON = {CapacityType.SPOT: "on spot", CapacityType.ON_DEMAND: "on demand"}
_WHAT = {CapacityType.SPOT: "spot", CapacityType.ON_DEMAND: "a node on demand"}


def _in_place(replicas: int, to: CapacityType) -> str:
    take = "takes" if replicas == 1 else "take"
    return f"{replicas} more {_ON[to]} {take} the place of as many {_ON[to.other]}"


def _not_come(memory: MoveMemory, offer: NodeMove, now_seconds: float) -> str:
    """That a move rests, and for how long; what has never come to spot at all may not be made for it."""
    assert memory.rests_until_seconds is not None
    left = duration(memory.rests_until_seconds - now_seconds)
    times = f" {memory.failures} times in a row" if memory.failures > 1 else ""
    never = memory.failures > 1 and offer.to is CapacityType.SPOT and offer.replicas_there == 0
    hint = " (do its pods select spot nodes, and tolerate their taints?)" if never else ""
    return f"what was to move one to {_WHERE[offer.to]} did not come{times}{hint}; tried again in {left}"


def _given_up(situation: Situation, replicas: int, memory: MoveMemory, why: str) -> Limited:
    failures = memory.failures + 1
    # A floor that is broken is tried to be mended as often as may be.
    longest = LONGEST_REST_SECONDS if memory.to is CapacityType.SPOT else REST_SECONDS
    rest_seconds = min(REST_SECONDS * 2.0 ** min(failures - 1, 16), longest)
    rests = MoveMemory(to=memory.to, rests_until_seconds=situation.now_seconds + rest_seconds, failures=failures)
    message = f"the way to {_WHERE[memory.to]} is given up: {why}"
    return Limited(replicas, _REFUSED[memory.to], message, rests)


def _refused(replicas: int, memory: MoveMemory, message: str) -> Limited:
    return Limited(replicas, _REFUSED[memory.to], message, memory)


def _rests(memory: MoveMemory, now_seconds: float) -> bool:
    return memory.rests_until_seconds is not None and now_seconds < memory.rests_until_seconds


def _calm_seconds(situation: Situation, to: CapacityType) -> float:
    window_seconds = scale_down_window_seconds(situation.decision_input)
    return window_seconds if to is CapacityType.SPOT else min(window_seconds, LOOKING_SECONDS)


def _is_calm(situation: Situation, replicas: int) -> bool:
    """Whether the count stands as it should, all of it serves and is seen, and it may be lowered again."""
    counts = situation.decision_input.replicas
    is_settled = replicas == counts.spec == counts.status == counts.ready and situation.replaced_replicas == 0
    is_scaled = situation.parameters.mode is Mode.SCALE
    return is_settled and counts.terminating == 0 and is_scaled and may_give_back(situation)
