"""May the pool have so many replicas, by its share of the accelerators there are?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.constraints.constraint import Limited
from policies.reasons import Reason

if TYPE_CHECKING:
    from policies.situation import Situation


def limit_to_accelerators(situation: Situation, replicas: int) -> Limited:
    """The count, cut to the allowance of the AcceleratorPool, but never below the minimum: that was promised.

    Without an allowance (no pool, or it has no ceiling, or its plan is not known yet) nothing is cut.
    """
    allowance = situation.decision_input.accelerator_allowance
    most = None if allowance is None else max(allowance.replicas, situation.bounds.minimum)
    if allowance is None or most is None or replicas <= most:
        return Limited(replicas, Reason.NOT_LIMITED, "")
    message = f"wanted {replicas}, capped at {most} by {allowance.because}"
    return Limited(most, Reason.ACCELERATOR_CEILING, message)
