"""Which direction does the policy's mode allow?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.constraints.constraint import Limited
from policies.parameters import Mode
from policies.reasons import Reason

if TYPE_CHECKING:
    from policies.situation import Situation


def limit_by_mode(situation: Situation, replicas: int) -> Limited:
    """The count; in ScaleUpOnly never less than the present one. Who writes in which mode is not decided here."""
    mode, current = situation.parameters.mode, situation.decision_input.replicas.spec
    if mode is Mode.SCALE_UP_ONLY and replicas < current:
        return Limited(current, Reason.SCALE_UP_ONLY, f"wanted {replicas}, kept at {current}: the mode is ScaleUpOnly")
    return Limited(replicas, Reason.NOT_LIMITED, mode.value)
