"""What a vote is, and the table of all votes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from policies.decision_input import DecisionInput
from policies.reasons import Reason


@dataclass(frozen=True, slots=True)
class ScalingRecommendation:
    """One vote: replicas as a real number, or None for "no opinion" with the reason why.

    `values` holds the terms of the formula by name, with units in the names, so that the record can be checked by hand.
    """

    recommender: str
    replicas: float | None
    reason: Reason
    message: str
    values: Mapping[str, float]


class Recommender(Protocol):
    """A pure function from the input to one vote; None when the policy does not use this vote at all."""

    def __call__(self, decision_input: DecisionInput) -> ScalingRecommendation | None: ...
