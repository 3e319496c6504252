"""The report as one JSON document, for machines. Numbers of a policy are means over its seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autoscaler.replay.clairvoyant import Clairvoyant
from autoscaler.replay.comparison import PolicyOutcome
from autoscaler.replay.fleet_description import Fleet
from autoscaler.replay.node_result import NodeResult, NodeUse
from autoscaler.replay.result import PoolResult
from autoscaler.replay.trace_load import TraceLoad

Figure = Callable[[PoolResult], float | None]

# By their names in the document; None where a run has no such number.
FIGURES: Mapping[str, Figure] = {
    "requests": lambda result: result.requests,
    "dropped": lambda result: _of_requests(result, result.dropped),
    "rejected": lambda result: _of_requests(result, result.rejected),
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
    "preemptions": lambda result: _of_requests(result, result.preemptions),
    "tokens_per_accelerator_second": lambda result: result.tokens_per_accelerator_second,
    "dollars_per_million_tokens": lambda result: result.dollars_per_million_tokens,
    # Of a run of rates, which has no figures of single requests.
    "short_seconds": lambda result: result.short_seconds,
    "short_share": lambda result: result.short_share,
    # Of a fleet whose nodes are described.
    "node_hours": lambda result: _of_nodes(result, lambda nodes: nodes.node_hours),
    "max_nodes": lambda result: _of_nodes(result, lambda nodes: nodes.max_nodes),
    "launched_nodes": lambda result: _of_nodes(result, lambda nodes: nodes.launched_nodes),
    "refused_launches": lambda result: _of_nodes(result, lambda nodes: nodes.refused_launches),
    "spot_reclaims": lambda result: _of_nodes(result, lambda nodes: nodes.spot_reclaims),
    "node_deaths": lambda result: _of_nodes(result, lambda nodes: nodes.node_deaths),
    "requests_lost_to_reclaims": lambda result: _of_nodes(result, lambda _: result.lost_to_reclaims),
    "limit_changes": lambda result: _of_nodes(result, lambda nodes: len(nodes.limit_changes)),
}
NODE_FIGURES = frozenset(
    {"node_hours", "max_nodes", "launched_nodes", "refused_launches", "spot_reclaims", "node_deaths"}
    | {"requests_lost_to_reclaims", "limit_changes"}
)
RATE_FIGURES = frozenset({"short_seconds", "short_share"})
WHOLE_NUMBERS = frozenset(
    {"requests", "dropped", "rejected", "unfinished", "scale_ups", "scale_downs", "reversals", "max_replicas"}
    | {"preemptions"}
    | NODE_FIGURES - {"node_hours"}
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


def _of_nodes(result: PoolResult, figure: Callable[[NodeResult], float]) -> float | None:
    return None if result.nodes is None else figure(result.nodes)


def _of_requests(result: PoolResult, figure: int) -> int | None:
    return None if result.is_of_rates else figure


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
            "sampled_one_in": report.load.sampled_one_in,
            **_nodes(fleet),
        },
        "assumptions": list(report.assumptions),
        "policies": {outcome.name: _policy(outcome, report.clairvoyant) for outcome in report.outcomes},
        "clairvoyant": None if report.clairvoyant is None else report.clairvoyant.document(),
    }


def _nodes(fleet: Fleet) -> dict[str, Any]:
    """What a fleet with nodes is made of; its prices are by capacity type."""
    nodes = fleet.nodes
    if nodes is None:
        return {"dollars_per_accelerator_hour": fleet.description.dollars_per_accelerator_hour}
    used = {pool.capacity_type for pool in nodes.node_pools}
    return {
        "dollars_per_accelerator_hour": {kind.value: nodes.dollars_per_accelerator_hour[kind] for kind in sorted(used)},
        "accelerators_per_node": nodes.shape.accelerators,
        "node_pools": [pool.name for pool in nodes.node_pools],
    }


def _policy(outcome: PolicyOutcome, clairvoyant: Clairvoyant | None) -> dict[str, Any]:
    figures = {name: mean_figure(outcome, name) for name in _figures(outcome.results)}
    hours = figures["accelerator_hours"]
    ratio = hours / clairvoyant.accelerator_hours if clairvoyant is not None and hours is not None else None
    document: dict[str, Any] = {**figures, **_of_types(outcome.results), "ratio_to_clairvoyant": ratio}
    for first in outcome.results[:1]:
        document |= _limits(first)
    if len(outcome.results) > 1:
        document["by_seed"] = [_by_seed(result) for result in outcome.results]
    return document


def _limits(result: PoolResult) -> dict[str, Any]:
    """Every write of a NodePool's limits in the first seed's run, seconds from its start; nothing without nodes."""
    if result.nodes is None:
        return {}
    began_at = result.started_at_seconds
    changes = [
        {"at_s": change.at_seconds - began_at, "node_pool": change.node_pool, "nodes": change.to_nodes}
        for change in result.nodes.limit_changes
    ]
    return {"limits": changes}


def _by_seed(result: PoolResult) -> dict[str, Any]:
    figures = {name: FIGURES[name](result) for name in _figures((result,))}
    return {"seed": result.seed, **figures, **_of_types((result,))}


def _figures(results: Sequence[PoolResult]) -> Iterator[str]:
    """The names of the figures that there are: those of nodes, or of rates, only where these were simulated."""
    has_nodes = any(result.nodes is not None for result in results)
    left_out = frozenset() if has_nodes else NODE_FIGURES
    left_out |= frozenset() if any(result.is_of_rates for result in results) else RATE_FIGURES
    return (name for name in FIGURES if name not in left_out)


def _of_types(results: Sequence[PoolResult]) -> dict[str, Any]:
    by_type = by_capacity_type(results)
    return {"by_capacity_type": by_type} if by_type else {}


def by_capacity_type(results: Sequence[PoolResult]) -> dict[str, dict[str, float]]:
    """Node-hours, accelerator-hours and dollars by capacity type, means over the results; {} without nodes."""
    uses: dict[str, list[NodeUse]] = {}
    for result in results:
        for kind, use in (result.nodes.by_capacity_type if result.nodes is not None else {}).items():
            uses.setdefault(kind.value, []).append(use)
    return {
        kind: {
            "node_hours": math.fsum(use.node_hours for use in each) / len(each),
            "accelerator_hours": math.fsum(use.accelerator_hours for use in each) / len(each),
            "cost_dollars": math.fsum(use.cost_dollars for use in each) / len(each),
        }
        for kind, each in uses.items()
    }
