"""Should replicas be asked for beside the plan now, so that one on-demand node's move back to spot?

Only while nothing else goes on, and has not for a scale-down window; within the maximum and the accelerators; one node
at a time. What comes serves before as many go. What does not come in time, or leaves as many nodes on demand as before,
is not tried again for half an hour.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from policies.constraints.constraint import Limited
from policies.constraints.leaving_replicas import may_give_back, most_replicas
from policies.constraints.stabilization import scale_down_window_seconds
from policies.history import ReturnMemory
from policies.parameters import Mode
from policies.reasons import Reason
from policies.wording import counted, duration

if TYPE_CHECKING:
    from policies.situation import Situation
    from policies.spot_return import SpotReturn

# After a try that came to nothing. A breaker on launches opens for as long at most, and tells more of why.
REST_SECONDS = 1800.0
# Beside the longest time of a start: until somebody has looked at the pod, the node, and the pod again.
LOOKING_SECONDS = 60.0
_NO_MEMORY = ReturnMemory()


@dataclass(frozen=True, slots=True)
class JudgedReturn:
    """The count with what is asked for beside the plan, and what is to be remembered of it; None: nothing."""

    limited: Limited
    memory: ReturnMemory | None


def return_to_spot(situation: Situation, replicas: int) -> Limited:
    """The count, or as many more as move the replicas of one on-demand node: 10 planned, 11 asked for."""
    return judge_return(situation, replicas).limited


def judge_return(situation: Situation, replicas: int) -> JudgedReturn:
    """What becomes of a way back to spot by this decision, whose count is `replicas` so far."""
    memory = situation.history.spot_return or _NO_MEMORY
    offer = situation.decision_input.spot_return
    if memory.moved_replicas:
        return _go_on(situation, replicas, memory, offer)
    if offer is None or offer.nodes_beyond_floor == 0:
        rests = replace(memory, settled_since_seconds=None) if _rests(memory, situation.now_seconds) else None
        return JudgedReturn(Limited(replicas, Reason.NOT_LIMITED, ""), rests)
    return _begin(situation, replicas, memory, offer)


def _begin(situation: Situation, replicas: int, memory: ReturnMemory, offer: SpotReturn) -> JudgedReturn:
    now_seconds = situation.now_seconds
    if not _is_calm(situation, replicas):
        is_as_planned = replicas == situation.current_replicas
        memory = replace(
            memory, settled_since_seconds=None, nodes_before=memory.nodes_before if is_as_planned else None
        )
        return JudgedReturn(Limited(replicas, Reason.NOT_LIMITED, ""), memory)
    since_seconds = now_seconds if memory.settled_since_seconds is None else memory.settled_since_seconds
    memory = replace(memory, settled_since_seconds=since_seconds)
    beyond = f"{counted(offer.nodes_beyond_floor, 'node')} on demand beyond the floor"
    room = most_replicas(situation) - replicas
    if offer.waits:
        return JudgedReturn(Limited(replicas, Reason.NOT_LIMITED, f"{beyond}: {offer.because}"), memory)
    if offer.surge_replicas == 0:
        return _refused(replicas, memory, f"{beyond}: {offer.because}")
    if offer.surge_replicas > room:
        message = (
            f"{beyond}: {counted(offer.surge_replicas, 'replica')} more for a while would move one to spot, and the "
            f"maximum and the accelerators leave {max(0, room)}"
        )
        return _refused(replicas, memory, message)
    if _rests(memory, now_seconds):
        assert memory.rests_until_seconds is not None
        left = duration(memory.rests_until_seconds - now_seconds)
        return _refused(replicas, memory, f"{beyond}: what was to move one to spot did not come; tried again in {left}")
    if now_seconds - since_seconds < scale_down_window_seconds(situation.decision_input):
        return JudgedReturn(Limited(replicas, Reason.NOT_LIMITED, ""), memory)
    if memory.nodes_before is not None and offer.nodes_beyond_floor >= memory.nodes_before:
        return _given_up(situation, replicas, "the last one has left as many nodes on demand")
    asked = replicas + offer.surge_replicas
    message = f"{asked} asked for: {beyond}, so that {_in_place(offer.surge_replicas)}"
    started = ReturnMemory(
        moved_replicas=offer.surge_replicas,
        begun_at_seconds=now_seconds,
        on_spot_before=offer.replicas_on_spot,
        nodes_before=offer.nodes_beyond_floor,
    )
    return JudgedReturn(Limited(asked, Reason.RETURNING_TO_SPOT, message), started)


def _go_on(situation: Situation, replicas: int, memory: ReturnMemory, offer: SpotReturn | None) -> JudgedReturn:
    """Waits for what was asked for, then has as many go; gives up where something else is the matter."""
    counts = situation.decision_input.replicas
    if counts.spec not in (situation.history.last_seen_replicas, situation.history.last_desired_replicas):
        return JudgedReturn(Limited(replicas, Reason.NOT_LIMITED, ""), None)  # somebody else has set the count
    asked = replicas + memory.moved_replicas
    if not may_give_back(situation) and counts.leaving == 0:
        # What stands beside the plan stays until all is seen again.
        return JudgedReturn(Limited(replicas, Reason.NOT_LIMITED, ""), memory)
    on_spot = 0 if offer is None else offer.replicas_on_spot - memory.on_spot_before
    if replicas != situation.current_replicas or counts.leaving:
        message = "the way back to spot is left: another count is wanted, or replicas are about to go"
        return JudgedReturn(Limited(replicas, Reason.RETURN_REFUSED, message), None)
    if counts.stuck:
        return _given_up(situation, replicas, f"{counted(counts.stuck, 'replica')} stuck")
    # With more there than asked for, by a rollout, nobody can say who goes.
    if counts.ready == counts.status == counts.spec == asked and on_spot > 0:
        message = f"all {asked} serve: {_in_place(memory.moved_replicas)}"
        memory = ReturnMemory(nodes_before=memory.nodes_before)
        return JudgedReturn(Limited(replicas, Reason.RETURNING_TO_SPOT, message), memory)
    # Whoever has just begun to lead has not looked at nodes yet.
    if offer is not None and not offer.can_buy_spot:
        return _given_up(situation, replicas, "spot cannot be had any more")
    begun_at_seconds = memory.begun_at_seconds or 0.0
    limit_seconds = situation.decision_input.cold_start.start_limit_seconds + LOOKING_SECONDS
    waited_seconds = situation.now_seconds - begun_at_seconds
    if waited_seconds >= limit_seconds:
        return _given_up(situation, replicas, f"after {duration(waited_seconds)} they do not all serve on spot")
    if asked > most_replicas(situation):
        return _given_up(situation, replicas, "the maximum and the accelerators leave no room any more")
    message = f"{asked} asked for until all serve, so that {_in_place(memory.moved_replicas)}"
    return JudgedReturn(Limited(asked, Reason.RETURNING_TO_SPOT, message), memory)


def _in_place(replicas: int) -> str:
    return f"{replicas} more on spot take the place of as many on demand"


def _given_up(situation: Situation, replicas: int, why: str) -> JudgedReturn:
    memory = ReturnMemory(rests_until_seconds=situation.now_seconds + REST_SECONDS)
    return JudgedReturn(Limited(replicas, Reason.RETURN_REFUSED, f"the way back to spot is given up: {why}"), memory)


def _refused(replicas: int, memory: ReturnMemory, message: str) -> JudgedReturn:
    return JudgedReturn(Limited(replicas, Reason.RETURN_REFUSED, message), memory)


def _rests(memory: ReturnMemory, now_seconds: float) -> bool:
    return memory.rests_until_seconds is not None and now_seconds < memory.rests_until_seconds


def _is_calm(situation: Situation, replicas: int) -> bool:
    """Whether the count stands as it should, all of it serves and is seen, and it may be lowered again."""
    counts = situation.decision_input.replicas
    is_settled = replicas == counts.spec == counts.status == counts.ready and situation.replaced_replicas == 0
    is_scaled = situation.parameters.mode is Mode.SCALE
    return is_settled and counts.terminating == 0 and is_scaled and replicas > 0 and may_give_back(situation)
