"""What do all limits of one decision share? The input, the votes, and what follows from them alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from policies.constraints.replica_bounds import ReplicaBounds
from policies.decision_input import DecisionInput
from policies.history import ScalingHistory
from policies.parameters import ScalingParameters
from policies.recommendation import ScalingRecommendation
from policies.sight import Sight, reads_replicas


@dataclass(frozen=True, slots=True)
class Situation:
    """One decision before any limit.

    `binding` is the largest vote, None where none has an opinion. `advice` are votes that are recorded and change
    nothing. `history` is the input's as far as it may be relied on. `idle_since_seconds` is since when it is proven
    that there are no requests.

    `current_replicas` is what the target asks for now, whoever wrote it, without `replaced_replicas`: so many of what
    it asks for stand in place of replicas that were about to go, and are no part of the plan.
    """

    decision_input: DecisionInput
    history: ScalingHistory
    current_replicas: int
    replaced_replicas: int
    recommendations: tuple[ScalingRecommendation, ...]
    advice: tuple[ScalingRecommendation, ...]
    binding: ScalingRecommendation | None
    bounds: ReplicaBounds
    sight: Sight
    idle_since_seconds: float | None

    @property
    def now_seconds(self) -> float:
        """The moment of the decision, unix time."""
        return self.decision_input.now_seconds

    @property
    def parameters(self) -> ScalingParameters:
        """The policy."""
        return self.decision_input.parameters

    @property
    def reads_replicas(self) -> bool:
        """Whether any vote rests on what the pool's own replicas show; else the policy is one in an HPA's terms."""
        return reads_replicas(self.recommendations)


def largest(recommendations: Iterable[ScalingRecommendation]) -> ScalingRecommendation | None:
    """The vote for the most replicas; the first of several that ask for the same; None where none has an opinion."""
    found, most = None, -math.inf
    for recommendation in recommendations:
        if recommendation.replicas is not None and recommendation.replicas > most:
            found, most = recommendation, recommendation.replicas
    return found
