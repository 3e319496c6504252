"""What does a story look like on paper? One line for each decision at which something changed, and how it ended."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from autoscaler.controller.pool_report import Decided
from policies.reasons import Reason
from tests.stories.staging import Told

# Which vote binds, and whether a window or the tolerance holds it, changes from tick to tick and decides nothing.
ORDINARY = frozenset(
    {
        Reason.TOKEN_RATE,
        Reason.TOKENS_IN_FLIGHT,
        Reason.KV_CACHE,
        Reason.WORK_RATE,
        Reason.WITHIN_TOLERANCE,
        Reason.SCALE_DOWN_STABILIZED,
        Reason.TOO_FEW_REPLICAS,
    }
)
HEAD = "minute    load  ready starting  desired  reason"


def script(told: Told) -> str:
    """The story's text."""
    lines = [f"{told.story.name}: {told.story.says}", "", HEAD]
    before: tuple[object, ...] = ()
    for decided in told.decisions:
        facts = _facts(decided)
        if facts != before:
            lines.extend(_lines(told, decided))
        before = facts
    return "\n".join([*lines, "", *_ending(told)]) + "\n"


def _facts(decided: Decided) -> tuple[object, ...]:
    decision, replicas = decided.decision, decided.decision_input.replicas
    reason = None if decision.reason in ORDINARY else decision.reason
    return decision.desired_replicas, replicas.ready, replicas.starting, replicas.stuck, reason


def _lines(told: Told, decided: Decided) -> Iterator[str]:
    decision, replicas = decided.decision, decided.decision_input.replicas
    minute = told.minute_of(decided)
    stuck = f"+{replicas.stuck} stuck" if replicas.stuck else ""
    is_change = decision.desired_replicas != replicas.spec
    yield (
        f"{minute:6.2f} {told.story.load_at(minute):7.2f} {replicas.ready:6} {replicas.starting:8}{stuck} "
        f"{decision.desired_replicas:8}{'*' if is_change else ' '} {decision.reason.value}"
    )
    if is_change or decision.reason not in ORDINARY:
        yield from textwrap.wrap(decision.message, 110, initial_indent=" " * 9, subsequent_indent=" " * 9)


def _ending(told: Told) -> Iterator[str]:
    result = told.result
    yield (
        f"{result.requests} requests, {100.0 * (result.attainment or 0.0):.1f} % within the objectives; "
        f"{result.replica_hours:.1f} replica-hours; {result.scale_ups} times up, {result.scale_downs} down, "
        f"{result.reversals} reversals; at most {result.max_replicas} replicas."
    )
