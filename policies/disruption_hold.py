"""May nodes be taken away now? Not while replicas are on their way to nodes: what looks empty or idle is about to fill.

The NodePools' disruption budgets are closed while the pool grows and for a while after, and opened again. What stood
there before is kept at the NodePool itself, so that whoever comes after a crash finds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from policies.reasons import Reason

# Growth comes in steps; each patch makes Karpenter judge the NodePool anew, so they share one.
HOLD_SECONDS = 300.0
# A pool that always grows a little would keep every node, and its old image, for ever.
LONGEST_HOLD_SECONDS = 3600.0


class HoldStep(StrEnum):
    """What is to be done to the budgets."""

    NOTHING = "nothing"
    CLOSE = "close"
    REOPEN = "reopen"


@dataclass(frozen=True, slots=True)
class HoldMemory:
    """What is remembered of a NodePool between two looks; None: it has not been, in this process."""

    grew_at_seconds: float | None = None
    reopened_at_seconds: float | None = None  # because it had been closed for too long


@dataclass(frozen=True, slots=True)
class DisruptionOutcome:
    """What stands for the nodes of an AcceleratorPool: whether they may be taken away, or what is in the way."""

    reason: Reason
    message: str

    @property
    def is_allowed(self) -> bool:
        """Whether Karpenter may take nodes away, as the user's own budgets say."""
        return self.reason is Reason.DISRUPTION_ALLOWED


def next_hold_step(
    is_growing: bool, held_since_seconds: float | None, memory: HoldMemory, now_seconds: float
) -> tuple[HoldStep, HoldMemory]:
    """The step, and what to remember next. `held_since_seconds` None: the budgets are the user's own.

    Budgets that somebody closed before this process began are kept closed as if the pool had just grown.
    """
    grew_at = now_seconds if is_growing else memory.grew_at_seconds
    if held_since_seconds is None:
        rested = memory.reopened_at_seconds is None or (
            now_seconds - memory.reopened_at_seconds >= LONGEST_HOLD_SECONDS
        )
        step = HoldStep.CLOSE if is_growing and rested else HoldStep.NOTHING
        return step, HoldMemory(grew_at, None if rested else memory.reopened_at_seconds)
    if now_seconds - held_since_seconds >= LONGEST_HOLD_SECONDS:
        return HoldStep.REOPEN, HoldMemory(grew_at, now_seconds)
    if grew_at is None:
        return HoldStep.NOTHING, HoldMemory(now_seconds)
    step = HoldStep.REOPEN if now_seconds - grew_at >= HOLD_SECONDS else HoldStep.NOTHING
    return step, HoldMemory(grew_at)
