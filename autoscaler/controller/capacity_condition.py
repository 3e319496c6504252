"""What does a condition say of what is known of a replica's capacity?"""

from __future__ import annotations

from typing import TypeAlias

from autoscaler.api.conditions import ConditionStatus
from policies.capacity.memory import CapacityMemory
from policies.capacity.utilization import LEAST_SAFE_UTILIZATION
from policies.reasons import Reason
from policies.wording import counted, joined, number

Judgement: TypeAlias = tuple[ConditionStatus, Reason, str]

# Long prompts miss objectives at any load, and what else is missed sinks slowly with fewer requests a replica.
BEYOND_LEAST = "where the objectives are still missed, state looser ones, a larger minReplicas, or shorten prompts"


def judge_capacity(memory: CapacityMemory) -> Judgement:
    """Learned, and what, and whether all was given that is given by itself; or not yet, and why it began anew."""
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
    if known.safe_utilization <= LEAST_SAFE_UTILIZATION:
        learned += f", the least that is learned: {BEYOND_LEAST}"
    evidence = f"learned from {counted(round(known.samples), 'minute')}, nearest to {known.law}"
    return ConditionStatus.TRUE, Reason.CAPACITY_LEARNED, joined((learned, evidence, anew))
