"""What does a condition say of what is known of a replica's capacity?"""

from __future__ import annotations

from typing import TypeAlias

from autoscaler.api.conditions import ConditionStatus
from policies.capacity.memory import CapacityMemory
from policies.reasons import Reason
from policies.wording import counted, joined, number

Judgement: TypeAlias = tuple[ConditionStatus, Reason, str]


def judge_capacity(memory: CapacityMemory) -> Judgement:
    """Learned, and what; or not yet, and why it began anew."""
    anew = f"begun anew: {memory.begun_because}" if memory.begun_because else ""
    known = memory.capacity
    if known is None:
        nothing = "what a replica can do within the objectives is not known yet, so the pool grows and does not shrink"
        return ConditionStatus.FALSE, Reason.CAPACITY_NOT_LEARNED, joined((nothing, anew))
    learned = (
        f"a replica computes {number(known.prefill_tokens_per_second)} prompt tokens or "
        f"{number(known.decode_tokens_per_second)} answer tokens a second within the objectives, "
        f"{number(100 * known.safe_utilization)} % of which is safe"
    )
    evidence = f"learned from {counted(round(known.samples), 'minute')}, nearest to {known.law}"
    return ConditionStatus.TRUE, Reason.CAPACITY_LEARNED, joined((learned, evidence, anew))
