"""Every case of `hpa_cases.json` (its first element describes the form) holds for the production functions.

So does every one of `hpa_edge_cases.json`: edges of bands, windows and integers, with what the controller's code did.
`HPA_CASES=FILE pytest tests/parity` runs another file of the same form.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policies.constraints.behavior import (
    PolicyType,
    ScaleDownRules,
    ScaleUpRules,
    ScalingBehavior,
    ScalingPolicy,
    SelectPolicy,
)
from policies.constraints.rate_limit import replicas_at_period_start, scale_down_limit, scale_up_limit
from policies.constraints.stabilization import stabilize
from policies.history import ScaleEvent, TimedRecommendation, longest_period_seconds, store_event
from policies.hpa.memory import is_outdated, store_recommendation
from policies.hpa.metric_proposal import Tolerance
from policies.hpa.metrics import (
    FailedMetric,
    MeasuredMetric,
    Metric,
    PodCounts,
    ProposedReplicas,
    TargetType,
    UsageRatio,
    propose,
)
from policies.hpa.normalize import limit_with_behavior, limit_without_behavior, stabilize_without_behavior
from policies.hpa.reconcile import HPAMemory, HPASpec, reconcile

NOW = 1_900_000_000.0
OUR_FILES = tuple(Path(__file__).with_name(name) for name in ("hpa_cases.json", "hpa_edge_cases.json"))
CASES_FILES = (Path(os.environ["HPA_CASES"]),) if "HPA_CASES" in os.environ else OUR_FILES
CASES: list[dict[str, Any]] = [case for file in CASES_FILES for case in json.loads(file.read_text())[1:]]

Inputs = Mapping[str, Any]


def rules(
    kind: type[ScaleUpRules] | type[ScaleDownRules], fields: Mapping[str, Any], window: int, tolerance: float
) -> Any:
    """One direction's rules as they stand in the case, without our own bounds on them."""
    given_window, given_tolerance = fields["stabilizationWindowSeconds"], fields["tolerance"]
    return kind.model_construct(
        stabilization_window_seconds=window if given_window is None else given_window,
        select_policy=SelectPolicy(fields["selectPolicy"]),
        policies=policies_of(fields["policies"]),
        tolerance=tolerance if given_tolerance is None else given_tolerance,
    )


def policies_of(given: list[dict[str, Any]]) -> tuple[ScalingPolicy, ...]:
    return tuple(
        ScalingPolicy.model_construct(
            type=PolicyType(policy["type"]), value=policy["value"], period_seconds=policy["periodSeconds"]
        )
        for policy in given
    )


def behavior_of(inputs: Inputs) -> ScalingBehavior | None:
    given = inputs["behavior"]
    if given is None:
        return None
    tolerance, window = inputs.get("tolerance", {"up": 0.1, "down": 0.1}), inputs.get("downscale_stabilization_seconds")
    directions: dict[str, Any] = {}
    if "scaleUp" in given:
        directions["scale_up"] = rules(ScaleUpRules, given["scaleUp"], 0, tolerance["up"])
    if "scaleDown" in given:
        directions["scale_down"] = rules(
            ScaleDownRules, given["scaleDown"], 300 if window is None else window, tolerance["down"]
        )
    return ScalingBehavior.model_construct(**{"scale_up": None, "scale_down": None, **directions})


def events_of(inputs: Inputs) -> tuple[ScaleEvent, ...]:
    return (*events(inputs["scale_up_events"], 1), *events(inputs["scale_down_events"], -1))


def events(given: list[dict[str, Any]], sign: int) -> tuple[ScaleEvent, ...]:
    return tuple(ScaleEvent(NOW - event["age_seconds"], sign * event["change"]) for event in given)


def recommendations_of(inputs: Inputs) -> tuple[TimedRecommendation, ...] | None:
    given = inputs["recommendations"]
    if given is None:
        return None
    return tuple(TimedRecommendation(NOW - entry["age_seconds"], entry["replicas"]) for entry in given)


def pods_of(inputs: Inputs) -> PodCounts:
    # Where a case does not say so, there are pods, ready or not.
    matching = inputs.get("pods_matching_selector", max(inputs["status_replicas"], inputs["ready_pods"], 1))
    return PodCounts(inputs["spec_replicas"], inputs["status_replicas"], inputs["ready_pods"], matching)


def metric_of(given: Mapping[str, Any]) -> Metric:
    match given["source"]:
        case "Proposal":
            return ProposedReplicas(given["proposal"], is_external=given["counts_as"] in ("External", "Object"))
        case "Ratio":
            return UsageRatio(given["usage_ratio"], is_external=given["counts_as"] in ("External", "Object"))
        case "Error":
            return FailedMetric(given["reason"], is_external=given["counts_as"] in ("External", "Object"))
        case source:
            return MeasuredMetric(
                TargetType(given["target_type"]),
                given["target_milli"],
                tuple(given["values_milli"]),
                is_object=source == "Object",
            )


def run_policy_limit(inputs: Inputs) -> dict[str, Any]:
    behavior = behavior_of(inputs)
    assert behavior is not None
    current, happened = inputs["current_replicas"], events_of(inputs)
    if inputs["direction"] == "up":
        return {"replicas": scale_up_limit(current, behavior.scale_up, happened, NOW)}
    return {"replicas": scale_down_limit(current, behavior.scale_down, happened, NOW)}


def run_rate_limit(inputs: Inputs) -> dict[str, Any]:
    behavior = behavior_of(inputs)
    assert behavior is not None
    limited = limit_with_behavior(
        inputs["current_replicas"],
        inputs["desired_replicas"],
        inputs["min_replicas"],
        inputs["max_replicas"],
        behavior,
        events_of(inputs),
        NOW,
    )
    return {"replicas": limited.replicas, "reason": limited.reason.value}


def run_rate_limit_no_behavior(inputs: Inputs) -> dict[str, Any]:
    limited = limit_without_behavior(
        inputs["current_replicas"],
        inputs["desired_replicas"],
        inputs["min_replicas"],
        inputs["max_replicas"],
        inputs["scale_up_limit_factor"],
        inputs["scale_up_limit_minimum"],
    )
    return {"replicas": limited.replicas, "reason": limited.reason.value}


def run_stabilize(inputs: Inputs) -> dict[str, Any]:
    desired, up, down = (
        inputs["desired_replicas"],
        inputs["scale_up_window_seconds"],
        inputs["scale_down_window_seconds"],
    )
    earlier = recommendations_of(inputs) or ()
    stored = store_recommendation(earlier, desired, NOW, max(up, down))
    return {
        "replicas": stabilize(inputs["current_replicas"], desired, earlier, NOW, up, down),
        "recommendations_after": [entry.replicas for entry in stored],
    }


def run_stabilize_no_behavior(inputs: Inputs) -> dict[str, Any]:
    desired, window = inputs["desired_replicas"], inputs["downscale_stabilization_seconds"]
    earlier = recommendations_of(inputs) or ()
    stored = store_recommendation(earlier, desired, NOW, window)
    return {
        "replicas": stabilize_without_behavior(desired, earlier, NOW, window),
        "recommendations_after": [entry.replicas for entry in stored],
        "recommendations_after_count": len(stored),
    }


def run_store_event(inputs: Inputs) -> dict[str, Any]:
    policies = None if inputs["policies"] is None else policies_of(inputs["policies"])
    before = events(inputs["events_before"], 1)
    kept_seconds = longest_period_seconds(policies or ())
    # Without `behavior` an HPA has no rates, and keeps no events.
    after = before if policies is None else store_event(before, inputs["new_change"], NOW, policies)
    return {
        "replicas": None,
        "change_in_last_60s_before": -replicas_at_period_start(0, before, NOW, 60),
        "events_after": [
            {"change": event.change, "outdated": is_outdated(event.at_seconds, NOW, kept_seconds)} for event in after
        ],
    }


def run_metric(inputs: Inputs) -> dict[str, Any]:
    proposal = propose(metric_of(inputs["metric"]), pods_of(inputs), Tolerance(**inputs["tolerance"]))
    if isinstance(proposal, FailedMetric):
        return {"replicas": None, "error": proposal.reason}
    return {
        "replicas": proposal.replicas,
        "value_milli": proposal.value_milli,
        "average_value_milli": proposal.average_value_milli,
    }


def run_reconcile(inputs: Inputs) -> dict[str, Any]:
    gates = {"HPAScaleToZero": True, "HPAConfigurableTolerance": True, **inputs.get("feature_gates", {})}
    behavior, tolerance = behavior_of(inputs), Tolerance(**inputs["tolerance"])
    if behavior is not None and gates["HPAConfigurableTolerance"]:
        tolerance = Tolerance(behavior.scale_up.tolerance, behavior.scale_down.tolerance)
    outcome = reconcile(
        HPASpec(
            inputs["min_replicas"],
            inputs["max_replicas"],
            tuple(metric_of(metric) for metric in inputs["metrics"]),
            tolerance,
            behavior,
            inputs["downscale_stabilization_seconds"],
            gates["HPAScaleToZero"],
        ),
        pods_of(inputs),
        HPAMemory(
            recommendations_of(inputs),
            events(inputs["scale_up_events"], 1),
            events(inputs["scale_down_events"], -1),
            inputs.get("scaled_to_zero_condition", False),
        ),
        NOW,
    )
    return {
        "replicas": outcome.replicas,
        "rescale": outcome.is_rescaled,
        "conditions": outcome.conditions,
        "rescale_reason": outcome.rescale_reason,
    }


STAGES = {
    "policy_limit": run_policy_limit,
    "rate_limit": run_rate_limit,
    "rate_limit_no_behavior": run_rate_limit_no_behavior,
    "stabilize": run_stabilize,
    "stabilize_no_behavior": run_stabilize_no_behavior,
    "store_event": run_store_event,
    "metric": run_metric,
    "reconcile": run_reconcile,
}


@dataclass(frozen=True)
class Case:
    stage: str
    inputs: Inputs
    expected: Mapping[str, Any]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case(case["stage"], case["inputs"], case["expected"]), id=f"{case['id']} {case['title']}")
        for case in CASES
    ],
)
def test_a_stock_hpa_does_the_same(case: Case) -> None:
    actual = STAGES[case.stage](case.inputs)
    if "conditions" in case.expected:
        expected_conditions = case.expected["conditions"]
        actual["conditions"] = {kind: actual["conditions"].get(kind) for kind in expected_conditions}
    assert {key: actual[key] for key in case.expected} == dict(case.expected)


def test_no_stage_is_left_out() -> None:
    assert {case["stage"] for case in CASES} <= STAGES.keys()


def test_a_controller_without_a_window_lends_none() -> None:
    rules_down: dict[str, Any] = {
        "stabilizationWindowSeconds": None,
        "selectPolicy": "Max",
        "policies": [],
        "tolerance": None,
    }
    behavior = behavior_of({"behavior": {"scaleDown": rules_down}, "downscale_stabilization_seconds": 0})
    assert behavior is not None
    assert behavior.scale_down.stabilization_window_seconds == 0
