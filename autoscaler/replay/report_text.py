"""The report as a table for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table

from autoscaler.replay.comparison import PolicyOutcome
from autoscaler.replay.report_json import NODE_FIGURES, Report, by_capacity_type, mean_figure

Shown = Callable[[float], str]

LATENCY_FIGURES = frozenset({"attainment", "ttft_p50_s", "ttft_p99_s", "itl_p50_s", "itl_p99_s"})
COLUMNS: tuple[tuple[str, str, Shown], ...] = (
    ("met", "attainment", lambda value: f"{100 * value:.2f} %"),
    ("TTFT p50", "ttft_p50_s", lambda value: f"{value:.2f} s"),
    ("p99", "ttft_p99_s", lambda value: f"{value:.2f} s"),
    ("ITL p50", "itl_p50_s", lambda value: f"{1000 * value:.0f} ms"),
    ("p99", "itl_p99_s", lambda value: f"{1000 * value:.0f} ms"),
    ("acc.-hours", "accelerator_hours", lambda value: f"{value:,.2f}"),
    ("dollars", "cost_dollars", lambda value: f"{value:,.2f}"),
    ("$/M tokens", "dollars_per_million_tokens", lambda value: f"{value:.3f}"),
    ("max", "max_replicas", lambda value: f"{value:.0f}"),
    ("up", "scale_ups", lambda value: f"{value:.0f}"),
    ("down", "scale_downs", lambda value: f"{value:.0f}"),
)

# In their place where only rates were run, of which nothing else is known.
COLUMNS_OF_RATES: tuple[tuple[str, str, Shown], ...] = (
    ("short", "short_seconds", lambda value: f"{value:,.0f} s"),
    ("of the time", "short_share", lambda value: f"{100 * value:.2f} %"),
    *(column for column in COLUMNS if column[1] not in LATENCY_FIGURES),
)


def columns_of(report: Report) -> tuple[tuple[str, str, Shown], ...]:
    """The columns of the table of this report."""
    is_of_rates = any(result.is_of_rates for outcome in report.outcomes for result in outcome.results)
    return COLUMNS_OF_RATES if is_of_rates else COLUMNS


def report_title(report: Report) -> str:
    """What was replayed on what, in a line."""
    load, fleet = report.load, report.fleet
    return (
        f"In simulation: {report.trace_name} x {load.scale:g}, {load.hours:.2f} h on {fleet.profile.name}; "
        f"objectives {fleet.objectives.time_to_first_token_seconds:g} s, "
        f"{1000 * fleet.objectives.inter_token_latency_seconds:g} ms; cold start {fleet.cold_start.mean_seconds:.0f} s"
    )


def report_table(report: Report) -> RenderableType:
    """Title, one row a policy, and the clairvoyant plan below."""
    table = Table(title=report_title(report), title_justify="left", box=None, pad_edge=False)
    table.add_column("policy")
    for heading, _, _ in columns_of(report):
        table.add_column(heading, justify="right")
    table.add_column("x clairvoyant", justify="right")
    for outcome in report.outcomes:
        table.add_row(outcome.name, *_cells(outcome, report), ratio_to_clairvoyant(outcome, report))
    if report.clairvoyant is not None:
        found = report.clairvoyant
        cells = [""] * len(COLUMNS)
        cells[0], cells[5] = f"{100 * found.attainment:.2f} %", f"{found.accelerator_hours:,.2f}"
        table.add_row("(clairvoyant)", *cells, "1.00")
    stopped = ["Stopped before the end: the table is of what was run."] if report.was_stopped else []
    return Group(table, *node_sentences(report), *stopped)


def node_sentences(report: Report) -> Iterator[str]:
    """What the nodes of each policy came to, a sentence each; none for a fleet without nodes."""
    for outcome in report.outcomes:
        figures = {name: mean_figure(outcome, name) for name in NODE_FIGURES}
        if figures["node_hours"] is None:
            continue
        by_type, most = by_capacity_type(outcome.results), figures["max_nodes"]
        hours = ", ".join(
            f"{use['node_hours']:,.2f} node-hours {kind} ({use['cost_dollars']:,.2f} dollars)"
            for kind, use in by_type.items()
        )
        yield (
            f"{outcome.name}: {hours}, at most {most:g} {'node' if most == 1 else 'nodes'}, "
            f"{figures['spot_reclaims']:g} spot reclaims with {figures['requests_lost_to_reclaims']:g} requests lost, "
            f"{figures['node_deaths']:g} deaths, {figures['refused_launches']:g} launches refused, "
            f"{figures['limit_changes']:g} changes of limits"
        )


def _cells(outcome: PolicyOutcome, report: Report) -> list[str]:
    cells = []
    for _, name, shown in columns_of(report):
        value = mean_figure(outcome, name)
        cells.append("-" if value is None else shown(value))
    return cells


def ratio_to_clairvoyant(outcome: PolicyOutcome, report: Report) -> str:
    """Its accelerator-hours by those of the clairvoyant plan, in two digits."""
    hours = mean_figure(outcome, "accelerator_hours")
    if report.clairvoyant is None or hours is None:
        return "-"
    return f"{hours / report.clairvoyant.accelerator_hours:.2f}"
