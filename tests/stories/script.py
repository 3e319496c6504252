"""What does a story look like on paper? One line for each decision at which something changed, and how it ended.

A line is for a new count (marked * where it is written), for replicas that have become Ready, stuck or gone, and for
the first time since then that something out of the ordinary is the reason.
"""

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
        Reason.STUCK_REPLICAS,
    }
)
HEAD = "minute    load  ready  starting  stuck  desired  reason"


def script(told: Told) -> str:
    """The story's text."""
    lines = [f"{told.story.name}: {told.story.says}", "", HEAD]
    before: tuple[int, ...] = ()
    told_reasons: set[Reason] = set()
    for decided in told.decisions:
        counts, reason = _counts(decided), decided.decision.reason
        if counts != before:
            told_reasons = set()
        if counts != before or (reason not in ORDINARY and reason not in told_reasons):
            lines.extend(_lines(told, decided))
        before = counts
        told_reasons.add(reason)
    return "\n".join([*lines, "", ending(told)]) + "\n"


def _counts(decided: Decided) -> tuple[int, ...]:
    replicas = decided.decision_input.replicas
    return decided.decision.desired_replicas, replicas.ready, replicas.starting, replicas.stuck


def _lines(told: Told, decided: Decided) -> Iterator[str]:
    decision, replicas = decided.decision, decided.decision_input.replicas
    minute = told.minute_of(decided)
    is_change = decision.desired_replicas != replicas.spec
    yield (
        f"{minute:6.2f} {told.story.load_at(minute):7.2f} {replicas.ready:6} {replicas.starting:9} {replicas.stuck:6} "
        f"{decision.desired_replicas:8}{'*' if is_change else ' '} {decision.reason.value}"
    )
    if is_change or decision.reason not in ORDINARY:
        yield from textwrap.wrap(decision.message, 110, initial_indent=" " * 9, subsequent_indent=" " * 9)


def ending(told: Told) -> str:
    """How it ended, in one line."""
    result = told.result
    return (
        f"{result.requests} requests, {100.0 * (result.attainment or 0.0):.1f} % within the objectives; "
        f"{result.replica_hours:.1f} replica-hours; {result.scale_ups} times up, {result.scale_downs} down, "
        f"{result.reversals} reversals; at most {result.max_replicas} replicas."
    )
