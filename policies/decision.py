"""The product: one pure function from everything that was seen to one replica count, with its explanation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from policies.constraints.accelerators import limit_to_accelerators
from policies.constraints.activation import idle_since, leave_alone, limit_last_replica, wake_up
from policies.constraints.constraint import Constraint
from policies.constraints.leaving_replicas import replace_leaving
from policies.constraints.missing_data import is_refusal, limit_by_missing_data
from policies.constraints.mode import limit_by_mode
from policies.constraints.node_move import move_to_other_nodes
from policies.constraints.passing_burst import limit_in_passing_burst
from policies.constraints.rate_limit import limit_by_rate
from policies.constraints.replica_bounds import bounds_at, limit_to_bounds
from policies.constraints.stabilization import limit_by_stabilization, longest_window_seconds
from policies.constraints.stuck_replicas import replace_stuck
from policies.constraints.tolerance import limit_by_tolerance
from policies.counterfactuals import Counterfactuals, counterfactuals, without_binding_vote
from policies.decision_input import DecisionInput
from policies.explanation import explain
from policies.history import (
    MoveMemory,
    ScalingHistory,
    after_any_gap,
    not_from_the_future,
    replaced_within,
    with_recommendation,
)
from policies.reasons import Reason
from policies.recommendation import ScalingRecommendation
from policies.recommenders.forecast import NAME as FORECAST
from policies.recommenders.inter_token_latency_divergence import divergence_of
from policies.recommenders.recommender import RECOMMENDERS
from policies.sight import assess_sight
from policies.situation import Situation, largest

# What happens to the largest vote, rounded up, until it is the desired count.
STEPS: Mapping[str, Constraint] = MappingProxyType(
    {
        "tolerance": limit_by_tolerance,
        "missingData": limit_by_missing_data,
        "stabilization": limit_by_stabilization,
        "rateLimit": limit_by_rate,
        "lastReplica": limit_last_replica,
        "bounds": limit_to_bounds,
        "accelerators": limit_to_accelerators,
        "mode": limit_by_mode,
    }
)
# The same where some of the replicas are stuck.
STEPS_WITH_STUCK_REPLICAS: Mapping[str, Constraint] = MappingProxyType(
    {"tolerance": limit_by_tolerance, "stuckReplicas": replace_stuck, **STEPS}
)
# The step, after the tolerance, that there is while bursts recur.
PASSING_BURST_STEP = "passingBurst"


def with_passing_burst_step(table: Mapping[str, Constraint]) -> Mapping[str, Constraint]:
    """The table with that step."""
    return MappingProxyType({"tolerance": limit_by_tolerance, PASSING_BURST_STEP: limit_in_passing_burst, **table})


STEPS_IN_BURSTS = with_passing_burst_step(STEPS)
STEPS_IN_BURSTS_WITH_STUCK_REPLICAS = with_passing_burst_step(STEPS_WITH_STUCK_REPLICAS)
# The step by which replicas on nodes that are about to go are replaced: after all that a plan is limited by.
LEAVING_STEP = "leavingReplicas"
# The step after it, by which replicas go back from on demand to spot. What the two add is beside the plan.
MOVE_STEP = "nodeMove"
BESIDE_THE_PLAN = frozenset({LEAVING_STEP, MOVE_STEP})
# A pool that we have put to sleep wakes up straight to the count that is asked for.
STEPS_ASLEEP: Mapping[str, Constraint] = MappingProxyType(
    {
        "wakeUp": wake_up,
        "missingData": limit_by_missing_data,
        "bounds": limit_to_bounds,
        "accelerators": limit_to_accelerators,
        "mode": limit_by_mode,
    }
)
# A count beyond the bounds is brought to the nearer one at once, as in HPA: bounds are not a matter of load.
STEPS_BEYOND_BOUNDS: Mapping[str, Constraint] = MappingProxyType(
    {"bounds": limit_to_bounds, "accelerators": limit_to_accelerators, "mode": limit_by_mode}
)
# Somebody else has switched the pool off.
STEPS_SWITCHED_OFF: Mapping[str, Constraint] = MappingProxyType({"switchedOff": leave_alone})

# What has passed this step is the recommendation that later decisions look back on.
RECOMMENDED_AFTER = "missingData"
# Reasons of a step that had nothing to do.
NEUTRAL = frozenset({Reason.NOT_LIMITED, Reason.DESIRED_WITHIN_RANGE})


class DecisionStep(NamedTuple):
    """What one limit made of the count: replicas before and after it, why, and a sentence with the numbers."""

    name: str
    before: int
    after: int
    reason: Reason
    message: str
    node_move: MoveMemory | None = None  # what is to be remembered of it

    @property
    def is_telling(self) -> bool:
        """Whether the limit had something to do, or to say."""
        return self.after != self.before or self.reason not in NEUTRAL


@dataclass(frozen=True)  # without slots, so that the sentence is made once
class ScalingDecision:
    """The count, who asked for it (`binding` is the largest vote), what limited it, and what to remember next."""

    desired_replicas: int
    reason: Reason
    recommendations: tuple[ScalingRecommendation, ...]
    binding: str | None
    steps: tuple[DecisionStep, ...]
    next_history: ScalingHistory
    situation: Situation = field(repr=False, compare=False)

    @cached_property
    def message(self) -> str:
        """The decision in one sentence. Made for the first who reads it: in a replay most are read by nobody."""
        without_forecast = _without_forecast(self.situation, self.desired_replicas)
        telling = (step.message for step in self.steps if step.is_telling)
        return explain(self.situation, self.desired_replicas, [without_forecast, *telling])


def decide(decision_input: DecisionInput) -> ScalingDecision:
    """The replica count for this moment.

    The same input gives the same decision. With missing or stale signals the count is never lowered (see
    `constraints/missing_data.py`). A change that the caller then writes it reports by `history.with_rescale`.
    """
    situation = _understand(decision_input)
    replicas, steps = _constrain(situation)
    telling = [step for step in steps if step.is_telling]
    return ScalingDecision(
        desired_replicas=replicas,
        reason=_reason(situation, telling),
        recommendations=(*situation.recommendations, *situation.advice),
        binding=situation.binding.recommender if situation.binding else None,
        steps=steps,
        next_history=_next_history(situation, steps, replicas),
        situation=situation,
    )


def counterfactuals_of(decision_input: DecisionInput) -> Counterfactuals:
    """What `decide` would come to without the binding vote, and without each limit that changes the count.

    For who reads a decision; it costs as much as the decision itself.
    """
    situation = _understand(decision_input)
    _, steps = _constrain(situation)
    changed_by = tuple(step.name for step in steps if step.after != step.before)
    return counterfactuals(situation, changed_by, _count_of)


def _constrain(situation: Situation) -> tuple[int, tuple[DecisionStep, ...]]:
    """The count that comes of the limits in their order, and what each made of it."""
    table, replicas = _table_for(situation)
    steps: list[DecisionStep] = []
    for name, limit in table.items():
        limited = limit(situation, replicas)
        steps.append(DecisionStep(name, replicas, *limited))
        replicas = limited.replicas
    return replicas, tuple(steps)


def _count_of(situation: Situation, skipped: str | None) -> int:
    """The count alone, without the limit that is named."""
    table, replicas = _table_for(situation)
    for name, limit in table.items():
        if name != skipped:
            replicas = limit(situation, replicas).replicas
    return replicas


def _understand(decision_input: DecisionInput) -> Situation:
    now_seconds = decision_input.now_seconds
    history = after_any_gap(not_from_the_future(decision_input.history, now_seconds), now_seconds)
    votes = tuple(vote for recommend in RECOMMENDERS.values() for vote in recommend(decision_input))
    recommendations = tuple(vote for vote in votes if not vote.is_advice)
    replaced = replaced_within(history, decision_input.replicas.spec)
    return Situation(
        decision_input=decision_input,
        history=history,
        current_replicas=decision_input.replicas.spec - replaced,
        replaced_replicas=replaced,
        recommendations=recommendations,
        advice=tuple(vote for vote in votes if vote.is_advice),
        binding=largest(recommendations),
        bounds=bounds_at(decision_input.parameters, now_seconds, decision_input.cold_start.l90_seconds),
        sight=assess_sight(decision_input, history, recommendations),
        idle_since_seconds=idle_since(decision_input, history, recommendations),
    )


def _table_for(situation: Situation) -> tuple[Mapping[str, Constraint], int]:
    """Which limits apply, and the count that they begin with."""
    current, bounds = situation.current_replicas, situation.bounds
    proposed = current if situation.binding is None else situation.binding.rounded_up
    if current == 0:
        return (STEPS_ASLEEP, proposed) if situation.history.is_scaled_to_zero else (STEPS_SWITCHED_OFF, 0)
    if not bounds.minimum <= current <= bounds.maximum:
        return STEPS_BEYOND_BOUNDS, current
    counts = situation.decision_input.replicas
    if situation.decision_input.recurring_bursts is None:
        table = STEPS_WITH_STUCK_REPLICAS if counts.stuck else STEPS
    else:
        table = STEPS_IN_BURSTS_WITH_STUCK_REPLICAS if counts.stuck else STEPS_IN_BURSTS
    if counts.leaving or situation.replaced_replicas:
        table = with_leaving_step(table)
    is_on_both = situation.decision_input.node_move is not None or situation.history.node_move is not None
    return _before_mode(table, MOVE_STEP, move_to_other_nodes) if is_on_both else table, proposed


def with_leaving_step(table: Mapping[str, Constraint]) -> Mapping[str, Constraint]:
    """The table with replacements for replicas that are about to go, before its last step, the mode."""
    return _before_mode(table, LEAVING_STEP, replace_leaving)


def _before_mode(table: Mapping[str, Constraint], name: str, limit: Constraint) -> Mapping[str, Constraint]:
    *limits, mode = table.items()
    return dict([*limits, (name, limit), mode])


def _without_forecast(situation: Situation, desired_replicas: int) -> str:
    """What would be without the forecast where it rules: the load that it speaks of has not come yet."""
    binding = situation.binding
    if binding is None or not binding.is_forecast:
        return ""
    count = _count_of(without_binding_vote(situation), None)
    what = "the forecast" if binding.recommender == FORECAST else "it"
    return "" if count == desired_replicas else f"without {what}: {count}"


def _reason(situation: Situation, telling: list[DecisionStep]) -> Reason:
    """The last limit that changed the count; else the first that has something to say; else the binding vote's."""
    changes = [step for step in telling if step.after != step.before]
    if telling:
        return changes[-1].reason if changes else telling[0].reason
    return situation.binding.reason if situation.binding else Reason.NO_VOTES


def _next_history(situation: Situation, steps: tuple[DecisionStep, ...], desired_replicas: int) -> ScalingHistory:
    now_seconds, sight, history = situation.now_seconds, situation.sight, situation.history
    recommendations = history.recommendations
    divergence = divergence_of(situation.decision_input, history)
    for step in steps:
        if step.name == RECOMMENDED_AFTER and not is_refusal(situation, step.reason):
            kept_seconds = longest_window_seconds(situation.decision_input)
            recommendations = with_recommendation(recommendations, now_seconds, step.after, kept_seconds)
    return replace(
        history,
        recommendations=recommendations,
        last_desired_replicas=desired_replicas,
        last_seen_replicas=situation.decision_input.replicas.spec,
        replaced_replicas=max(
            (desired_replicas - step.before for step in steps if step.name in BESIDE_THE_PLAN), default=0
        ),
        replaced_of_seen=situation.replaced_replicas,
        node_move=next((step.node_move for step in steps if step.name == MOVE_STEP), None),
        blind_since_seconds=sight.blind_since_seconds,
        consecutive_good_readings=sight.consecutive_good_readings,
        is_in_fallback=sight.is_in_fallback,
        low_coverage_since_seconds=sight.low_coverage_since_seconds,
        most_missing_replicas=sight.most_missing_replicas,
        idle_since_seconds=situation.idle_since_seconds,
        latency_measured_at_seconds=divergence.measured_at_seconds,
        uneven_measurements=divergence.measurements,
    )
