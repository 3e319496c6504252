"""How many more must be asked for while replicas are on nodes that are about to go?

A replica whose node has been noticed serves for two minutes at most, and a controller of pods makes another one only
when it has died. So its replacement is asked for beyond the plan, at once and past the windows, and given back when
the replica has gone: it was never demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.constraints.behavior import SelectPolicy
from policies.constraints.constraint import Limited
from policies.reasons import Reason
from policies.wording import counted

if TYPE_CHECKING:
    from policies.situation import Situation


def replace_leaving(situation: Situation, replicas: int) -> Limited:
    """The planned count and one more for each replica that is about to go, within maximum and accelerators.

    What was asked for beyond the plan before is given back only where all is seen, and where the policy lets the
    count be lowered at all: 8 planned, 2 leaving: 10, and 8 when they have gone.
    """
    counts = situation.decision_input.replicas
    extra = counts.leaving if replicas else 0
    if not may_give_back(situation):
        extra = max(extra, situation.replaced_replicas)
    asked = max(replicas, min(replicas + extra, most_replicas(situation)))
    if asked == replicas:
        return Limited(replicas, Reason.NOT_LIMITED, "")
    if counts.leaving == 0:
        message = f"{counted(asked - replicas, 'replica')} more until it is seen that they may go"
        return Limited(asked, Reason.LEAVING_REPLICAS, message)
    they = "runs on a node" if counts.leaving == 1 else "run on nodes"
    message = f"{asked} asked for: {counted(counts.leaving, 'replica')} {they} about to go"
    return Limited(asked, Reason.LEAVING_REPLICAS, message)


def most_replicas(situation: Situation) -> int:
    """The most that may be asked for beside the plan too, by the maximum and the accelerators."""
    allowance, most = situation.decision_input.accelerator_allowance, situation.bounds.maximum
    return most if allowance is None else min(most, max(allowance.replicas, situation.bounds.minimum))


def may_give_back(situation: Situation) -> bool:
    """Whether what stands beside the plan may go: all is seen, and the count may be lowered at all."""
    is_seen = situation.sight.reason is Reason.NOT_LIMITED and not any(
        vote.reason is Reason.SIGNAL_UNKNOWN for vote in situation.recommendations
    )
    return is_seen and situation.parameters.behavior.scale_down.select_policy is not SelectPolicy.DISABLED
