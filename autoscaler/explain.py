"""Why this many replicas: a decision record in words, checked by deciding it again."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from autoscaler.decision_record import DecisionRecord, RecordedDecision, RecordedVote, differences
from policies.decision import ScalingDecision, decide
from policies.observation import MetricsObservation, ObservationUnavailable, QueryValue
from policies.wording import duration, joined, number


def render_record(record: DecisionRecord) -> RenderableType:
    """The record for a terminal: the sentence, the votes (the binding one marked), the limits, what was seen."""
    decision, replicas = record.decision, record.input.replicas
    found = differences(record)
    # What the record leaves out for its length is told by the decision made again, where that is the same one.
    again = None if found else decide(record.input)
    supply = (
        f"replicas: {replicas.spec} asked for, {replicas.ready} ready, {replicas.starting} starting, "
        f"{replicas.stuck} stuck, {replicas.terminating} terminating"
        + (f", {replicas.leaving} on nodes about to go" if replicas.leaving else "")
    )
    return Group(
        headline(record),
        Text(decision.message),
        Text(supply),
        Text(_start_and_standstill(record)),
        _seen(record),
        _votes(record, again),
        _steps(record, again),
        _otherwise(record.decision),
        Text(f"write: {record.actuation.reason.value}: {record.actuation.message}"),
        _proof(found),
    )


def _start_and_standstill(record: DecisionRecord) -> str:
    """How long a start takes, and which replicas do nothing with what they hold."""
    cold_start, metrics = record.input.cold_start, record.input.metrics
    whence = f"{cold_start.starts} starts seen" if cold_start.is_measured else "the policy's prior"
    most = duration(cold_start.l90_seconds)
    start = f"a start takes {duration(cold_start.l50_seconds)}, nine in ten up to {most} ({whence})"
    if isinstance(metrics, ObservationUnavailable) or not metrics.wedged_replicas:
        return start
    return f"{start}; wedged: {', '.join(metrics.wedged_replicas)}"


def headline(record: DecisionRecord) -> Text:
    """Which pool, when, from how many replicas to how many, why, and in which mode."""
    return Text.assemble(
        (f"{record.namespace}/{record.name}", "bold"),
        f"  {record.time}  {record.input.replicas.spec} -> ",
        (f"{record.decision.desired_replicas}", "bold"),
        f"  {record.decision.reason.value}  ({record.input.parameters.mode.value})",
    )


def is_news(before: DecisionRecord, record: DecisionRecord) -> bool:
    """Whether a reader of the one learns something from the other: another pool, count, wish or reason."""
    return _essence(before) != _essence(record)


def _essence(record: DecisionRecord) -> tuple[object, ...]:
    decision = record.decision
    wish = (decision.desired_replicas, decision.reason, decision.binding)
    return (record.namespace, record.name, record.input.replicas.spec, *wish)


def _seen(record: DecisionRecord) -> RenderableType:
    metrics = record.input.metrics
    if not isinstance(metrics, MetricsObservation):
        return Text(f"metrics: {metrics.reason.value}: {metrics.message}", style="yellow")
    table = Table(title=f"seen of {metrics.ready_replicas} ready replicas", title_justify="left", box=None)
    for column in ("signal", "total", "max", "fresh", "held", "unknown", "oldest"):
        table.add_column(column, justify="left" if column == "signal" else "right")
    for name, signal in metrics.signals.items():
        _add_row(
            table,
            name.value,
            f"{signal.total:.6g}",
            f"{signal.maximum:.6g}",
            str(signal.fresh_replicas),
            str(signal.held_replicas),
            str(signal.unknown_replicas),
            f"{signal.oldest_age_seconds:.0f} s",
        )
    for query, reading in metrics.queries.items():
        if isinstance(reading, QueryValue):
            _add_row(table, query, f"{reading.value:.6g}", "", "", "", "", f"{reading.age_seconds:.0f} s")
        else:
            _add_row(table, query, f"unknown: {reading.why}")
    warnings = (Text(f"warning: {warning}", style="yellow") for warning in metrics.warnings)
    return Group(table, *warnings)


def _votes(record: DecisionRecord, again: ScalingDecision | None) -> RenderableType:
    table = Table(title="votes", title_justify="left", box=None)
    table.add_column("")
    table.add_column("vote")
    table.add_column("replicas", justify="right")
    table.add_column("why")
    sentences = {vote.recommender: vote.message for vote in again.recommendations} if again else {}
    for name, vote in (record.decision.votes or {}).items():
        mark, style = ("*", "bold") if name == record.decision.binding else ("", "")
        count = "no opinion" if vote.replicas is None else f"{vote.replicas:.2f}"
        _add_row(table, mark, name, count, _why(vote, sentences.get(name, "")), style=style)
    return table


def _why(vote: RecordedVote, sentence: str) -> str:
    terms = ", ".join(f"{name} {number(value)}" for name, value in (vote.values or {}).items())
    if_full = "" if vote.cautious_replicas is None else f"{number(vote.cautious_replicas)} if unseen replicas are full"
    return joined((vote.message or sentence or terms, if_full, "advice only" if vote.is_advice else ""))


def _steps(record: DecisionRecord, again: ScalingDecision | None) -> RenderableType:
    table = Table(title="limits, in order", title_justify="left", box=None)
    for column in ("limit", "before", "after", "reason", "why"):
        table.add_column(column, justify="right" if column in {"before", "after"} else "left")
    if again:
        for step in again.steps:
            style = "" if step.before == step.after else "bold"
            _add_row(table, step.name, str(step.before), str(step.after), step.reason.value, step.message, style=style)
        return table
    for recorded in record.decision.steps:
        after, style = (recorded.before, "") if recorded.after is None else (recorded.after, "bold")
        _add_row(table, recorded.name, str(recorded.before), str(after), recorded.reason.value, "", style=style)
    return table


def _otherwise(decision: RecordedDecision) -> RenderableType:
    without = [f"without {name}: {count}" for name, count in (decision.without or {}).items()]
    advised = [f"with {name}: {count}" for name, count in (decision.with_advice or {}).items()]
    return Text("at this moment " + (", ".join(without + advised) or "nothing asks for a count"))


def _add_row(table: Table, *cells: str, style: str = "") -> None:
    # As texts: rich would take the [5m] or [/x] of a PromQL in a message for markup of its own.
    table.add_row(*(Text(cell) for cell in cells), style=style)


def _proof(found: tuple[str, ...]) -> RenderableType:
    if not found:
        return Text("decided again from this record: the same", style="green")
    return Text("decided again from this record, it comes out otherwise:\n  " + "\n  ".join(found), style="red")
