"""Is this one of the bursts that replicas stand ready for? Then more of them would be ready when it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.bursts import BEYOND_CALM, measured_load
from policies.constraints.constraint import Limited
from policies.reasons import Reason
from policies.wording import counted, duration

if TYPE_CHECKING:
    from policies.situation import Situation


def limit_in_passing_burst(situation: Situation, replicas: int) -> Limited:
    """No growth beyond what stands for recurring bursts, as long as this one is like them.

    It is like them while it takes no more than these replicas can do with all of their time, and has lasted no longer
    than the longest. Votes ask for a share of each replica's time, so at a burst's height they ask for more. Where they
    have come near what stands in the calm before, this is no burst but growth.
    """
    bursts, nothing = situation.decision_input.recurring_bursts, "no burst that what stands ready serves"
    if bursts is None or situation.parameters.objectives is None:
        return Limited(replicas, Reason.NOT_LIMITED, nothing)
    standing = max(situation.current_replicas, bursts.replicas)
    began_at_seconds = bursts.under_way_since_seconds
    lasted_seconds = 0.0 if began_at_seconds is None else situation.now_seconds - began_at_seconds
    is_sudden = lasted_seconds <= bursts.longest_seconds and BEYOND_CALM * bursts.calm_replicas <= bursts.replicas
    if replicas <= standing or not is_sudden:
        return Limited(replicas, Reason.NOT_LIMITED, nothing)
    needed = measured_load(situation.decision_input, situation.recommendations).bare_need
    if needed is None or needed > standing:
        return Limited(replicas, Reason.NOT_LIMITED, nothing)
    message = (
        f"kept at {standing}, which stand ready for it: it is like {counted(bursts.bursts, 'burst')} before it, "
        f"which lasted up to {duration(bursts.longest_seconds)}"
    )
    return Limited(standing, Reason.PASSING_BURST, message)
