"""The report as one JSON document, for machines. Numbers of a policy are means over its seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from autoscaler.replay.clairvoyant import Clairvoyant
from autoscaler.replay.comparison import PolicyOutcome
from autoscaler.replay.fleet_description import Fleet
from autoscaler.replay.result import PoolResult
from autoscaler.replay.trace_load import TraceLoad

Figure = Callable[[PoolResult], float | None]

# By their names in the document; None where a run has no such number.
FIGURES: Mapping[str, Figure] = {
    "requests": lambda result: result.requests,
    "dropped": lambda result: result.dropped,
    "rejected": lambda result: result.rejected,
    "unfinished": lambda result: result.unfinished,
    "attainment": lambda result: result.attainment,
    "ttft_p50_s": lambda result: result.time_to_first_token.p50_seconds,
    "ttft_p99_s": lambda result: result.time_to_first_token.p99_seconds,
    "itl_p50_s": lambda result: result.inter_token_latency.p50_seconds,
    "itl_p99_s": lambda result: result.inter_token_latency.p99_seconds,
    "accelerator_hours": lambda result: result.accelerator_hours,
    "cost_dollars": lambda result: result.cost_dollars,
    "replica_hours": lambda result: result.replica_hours,
    "scale_ups": lambda result: result.scale_ups,
    "scale_downs": lambda result: result.scale_downs,
    "reversals": lambda result: result.reversals,
    "max_replicas": lambda result: result.max_replicas,
    "preemptions": lambda result: result.preemptions,
    "tokens_per_accelerator_second": lambda result: result.tokens_per_accelerator_second,
    "dollars_per_million_tokens": lambda result: result.dollars_per_million_tokens,
}
WHOLE_NUMBERS = frozenset(
    {"requests", "dropped", "rejected", "unfinished", "scale_ups", "scale_downs", "reversals", "max_replicas"}
    | {"preemptions"}
)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that is told about a comparison."""

    fleet: Fleet
    load: TraceLoad
    trace_name: str
    seeds: tuple[int, ...]
    outcomes: tuple[PolicyOutcome, ...]
    clairvoyant: Clairvoyant | None
    assumptions: tuple[str, ...]
    was_stopped: bool = False


def mean_figure(outcome: PolicyOutcome, name: str) -> float | None:
    """One figure's mean over the seeds; None where no run has it."""
    values = [value for result in outcome.results if (value := FIGURES[name](result)) is not None]
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    return round(mean) if name in WHOLE_NUMBERS and mean == round(mean) else mean


def report_document(report: Report) -> dict[str, Any]:
    """The document. `in_simulation` says what all of its numbers are."""
    fleet = report.fleet
    return {
        "in_simulation": True,
        "trace": report.trace_name,
        "trace_scale": report.load.scale,
        "start_s": report.load.start_seconds,
        "end_s": report.load.end_seconds,
        "hours": report.load.hours,
        "seeds": list(report.seeds),
        "was_stopped": report.was_stopped,
        "fleet": {
            "profile": fleet.profile.name,
            "accelerators_per_replica": fleet.profile.accelerators_per_replica,
            "time_to_first_token_objective_s": fleet.objectives.time_to_first_token_seconds,
            "inter_token_latency_objective_s": fleet.objectives.inter_token_latency_seconds,
            "cold_start_mean_s": fleet.cold_start.mean_seconds,
            "dollars_per_accelerator_hour": fleet.description.dollars_per_accelerator_hour,
            "sampled_one_in": report.load.sampled_one_in,
        },
        "assumptions": list(report.assumptions),
        "policies": {outcome.name: _policy(outcome, report.clairvoyant) for outcome in report.outcomes},
        "clairvoyant": None if report.clairvoyant is None else report.clairvoyant.document(),
    }


def _policy(outcome: PolicyOutcome, clairvoyant: Clairvoyant | None) -> dict[str, Any]:
    figures = {name: mean_figure(outcome, name) for name in FIGURES}
    hours = figures["accelerator_hours"]
    ratio = hours / clairvoyant.accelerator_hours if clairvoyant is not None and hours is not None else None
    document: dict[str, Any] = {**figures, "ratio_to_clairvoyant": ratio}
    if len(outcome.results) > 1:
        document["by_seed"] = [_by_seed(result) for result in outcome.results]
    return document


def _by_seed(result: PoolResult) -> dict[str, Any]:
    return {"seed": result.seed, **{name: figure(result) for name, figure in FIGURES.items()}}
