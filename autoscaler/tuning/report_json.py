"""What came of a search as one JSON document, for machines."""

from __future__ import annotations

from typing import Any

from autoscaler.tuning.dimension import Values
from autoscaler.tuning.figures import Figures
from autoscaler.tuning.tuning_report import TuningReport
from autoscaler.tuning.verdict import Judged


def tuning_document(report: TuningReport) -> dict[str, Any]:
    """The document. `in_simulation` says what all of its numbers are; `verdict` is null where it was stopped."""
    front = report.outcome.front()
    verdict = report.verdict
    return {
        "in_simulation": True,
        "is_policy_only": report.is_policy_only,
        "policy": report.policy,
        "traces": list(report.traces),
        "trace_scale": report.trace_scale,
        "profile": report.fleet.profile.name,
        "objective": report.objective.shown(),
        "searched": [dimension.shown() for dimension in report.dimensions],
        "seeds": list(report.seeds),
        "held_out_seeds": list(report.held_out_seeds),
        "hold_out_percent": report.hold_out_percent,
        "was_stopped": report.verdict is None,
        "trials": [
            {**_figures(trial.figures), "values": dict(trial.values), "is_on_front": trial in front}
            for trial in report.outcome.trials
        ],
        "invalid_proposals": report.outcome.invalid,
        "given": _judged(report.given),
        "found": _judged(report.found),
        "baselines": {each.name: _judged(each) for each in report.baselines},
        "verdict": None if verdict is None else {"keeps_given": verdict.keeps_given, "reason": verdict.reason},
        "changes": {change.path: change.value for change in report.changes},
        "assumptions": list(report.assumptions),
    }


def _judged(each: Judged) -> dict[str, Any]:
    values: Values = each.values
    return {
        "values": dict(values),
        "search": _with_loads(each.search),
        "held_out": None if each.held_out is None else _with_loads(each.held_out),
    }


def _with_loads(figures: Figures) -> dict[str, Any]:
    return {**_figures(figures), "traces": {name: _figures(alone) for name, alone in figures.by_load()}}


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "attainment": figures.attainment,
        "missed_share": figures.missed_share,
        "accelerator_hours": figures.accelerator_hours,
        "reversals_per_hour": figures.reversals_per_hour,
        "max_replicas": figures.max_replicas,
    }
