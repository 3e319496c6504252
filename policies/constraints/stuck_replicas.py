"""How many replicas must be asked for so that enough of them work, while some are stuck?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.constraints.activation import limit_last_replica
from policies.constraints.constraint import Limited
from policies.reasons import Reason

if TYPE_CHECKING:
    from policies.observation import ReplicaCounts
    from policies.situation import Situation

# What keeps some replicas from starting may keep their replacements too: a fault of the cluster must not order a fleet.
MOST_REPLACED = 2


def count_with_stuck(counts: ReplicaCounts, needed: int) -> int:
    """The count to ask for so that `needed` replicas work.

    Stuck replicas that a smaller count would take away first are replaced only as far as the rest is too few, the
    others in any case; two at most together. A count that shrinks leaves the others beside the needed ones, however
    many they are, so that what is kept is never stuck replicas alone.
    6 working and 2 stuck, 8 needed: 10. 3 working and 1 wedged, 1 needed: 2.
    """
    missing = max(0, needed - counts.supply)
    replaced = min(MOST_REPLACED, counts.outlasting + min(counts.stuck - counts.outlasting, missing))
    return max(needed + replaced, min(counts.spec, needed + counts.outlasting))


def replace_stuck(situation: Situation, replicas: int) -> Limited:
    """The count, or more so that as many work as the largest vote and the minimum ask for."""
    counts, binding = situation.decision_input.replicas, situation.binding
    if binding is None:
        return Limited(replicas, Reason.NOT_LIMITED, "")
    # A pool that may not sleep yet needs one replica that works.
    needed = max(binding.rounded_up, situation.bounds.minimum, limit_last_replica(situation, 0).replicas)
    asked = count_with_stuck(counts, needed) if needed > 0 else 0
    if asked <= max(needed, replicas):
        return Limited(replicas, Reason.NOT_LIMITED, "")
    return Limited(asked, Reason.STUCK_REPLICAS, f"{asked} asked for, so that {needed} work")
