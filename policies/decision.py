"""The product: one pure function from everything that was seen to one replica count, with its explanation."""

from __future__ import annotations

from dataclasses import dataclass

from policies.history import ScalingHistory
from policies.reasons import Reason
from policies.recommendation import ScalingRecommendation


@dataclass(frozen=True, slots=True)
class DecisionStep:
    """What one limit made of the count: replicas before and after it, why, and a sentence with the numbers."""

    name: str
    before: int
    after: int
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """The count, who asked for it (`binding` is the largest vote), what limited it, and what to remember next."""

    desired_replicas: int
    reason: Reason
    message: str
    recommendations: tuple[ScalingRecommendation, ...]
    binding: str | None
    steps: tuple[DecisionStep, ...]
    next_history: ScalingHistory
