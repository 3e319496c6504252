"""What do conditions say of a pool's replicas: do they start in the time that the policy counts on?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from autoscaler.api.conditions import ConditionStatus, ConditionType
from policies.cold_start import ColdStart
from policies.decision_input import DecisionInput
from policies.reasons import Reason
from policies.wording import duration

Judgement: TypeAlias = tuple[ConditionStatus, Reason, str]


def judge_supply(decision_input: DecisionInput) -> Iterator[tuple[ConditionType, Judgement]]:
    """A judgement for each condition that can be judged; without any start seen there is none of cold starts."""
    if decision_input.cold_start.is_measured:
        prior_seconds = decision_input.parameters.cold_start.prior_seconds
        yield ConditionType.COLD_STARTS_IN_TIME, _cold_starts(decision_input.cold_start, prior_seconds)


def _cold_starts(cold_start: ColdStart, prior_seconds: float) -> Judgement:
    seen = f"19 of 20 starts take up to {duration(cold_start.l95_seconds)} ({_phases(cold_start)})"
    if cold_start.l95_seconds <= prior_seconds:
        return ConditionStatus.TRUE, Reason.STARTS_IN_TIME, seen
    message = f"{seen}; coldStart.priorSeconds says {duration(prior_seconds)}"
    return ConditionStatus.FALSE, Reason.STARTS_SLOWLY, message


def _phases(cold_start: ColdStart) -> str:
    """The medians of the phases that could be told apart, and how many starts were seen."""
    medians = (
        ("node", cold_start.node_seconds),
        ("image", cold_start.image_seconds),
        ("load", cold_start.load_seconds),
    )
    known = [f"{name} {duration(seconds)}" for name, seconds in medians if seconds is not None]
    return ", ".join([*known, f"{cold_start.starts} seen"])
