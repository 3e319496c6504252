"""What `tokenscaler explain` does with the records it finds: decides each again, and shows what was asked for.

Exit codes: 1 where a record comes out otherwise or is no record; 2 where there was nothing to check, be it wrong usage,
a controller that does not answer, or a pool or a moment of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import typer
from rich.console import Console

from autoscaler.commands.record_sources import RecordsNotFound, from_controller, from_status
from autoscaler.commands.record_window import RecordWindow
from autoscaler.decision_log import UnreadableRecord, read_log
from autoscaler.decision_record import DecisionRecord, differences, read_record
from autoscaler.exit_codes import FINE, NOT_RIGHT, WRONG_USAGE
from autoscaler.explain import headline, is_news, render_record

Entry = DecisionRecord | UnreadableRecord

# A file that is no log has as many bad lines as it has lines; the count at the end tells the rest.
SAID_AT_MOST = 10


def explain_log(path: Path, target: str | None, window: RecordWindow, as_json: bool, console: Console) -> int:
    """Decides every record of the log again (of one pool where `target` is given, and within the window).

    Prints the newest record, with `--at` the one in force then, with `--since` a line for each that was another one
    than before; and a count. A line that is no record counts as a difference, except a last line that is cut short: a
    crash leaves that behind, and a running controller may be just writing it.
    """
    if window.at_seconds is not None and target is None:
        return _refuse("--at: of which pool? Give NAMESPACE/NAME too")
    check = _Check(f"{path}")
    try:
        newest = _show_all(_selected(path, target, window), check, window, as_json, console)
    except OSError as error:
        return _refuse(f"cannot read the log {path}: {error.strerror}")
    if newest is None and not check.unreadable:
        when = " at that time" if window.at_seconds is not None else ""
        return _refuse(f"no decision record{f' of {target}' if target else ''}{when} in {path}")
    check.say_the_count(is_for_a_machine=as_json)
    return check.exit_code()


def explain_target(
    target: str,
    url: str | None,
    kubeconfig: Path | None,
    context: str | None,
    window: RecordWindow,
    as_json: bool,
    console: Console,
) -> int:
    """Explains one pool from what a controller keeps, or from the newest record, which is in the object's status."""
    namespace, _, name = target.partition("/")
    if not namespace or not name or "/" in name:
        return _refuse(f"{target}: NAMESPACE/NAME is wanted")
    if url is not None and not url.startswith(("http://", "https://")):
        return _refuse(f"--url {url}: an http:// or https:// address is wanted")
    if url is None and window != RecordWindow():
        return _refuse("--at and --since: give --log FILE or --url too; the object's status has the newest record only")
    if url is None:
        found: str | list[str] | RecordsNotFound = from_status(kubeconfig, context, namespace, name)
    else:
        found = from_controller(url, namespace, name, window)
    if isinstance(found, RecordsNotFound):
        return _refuse(found.problem)
    records = [read_record(line) for line in ([found] if isinstance(found, str) else found)]
    for record in records:
        if isinstance(record, str):
            typer.echo(f"tokenscaler: the record of {target} cannot be read: {record}", err=True)
            return NOT_RIGHT
    check = _Check(target)
    _show_all((each for each in records if not isinstance(each, str)), check, window, as_json, console)
    if window.back_seconds is not None:
        check.say_the_count(is_for_a_machine=as_json)
    return check.exit_code()


def _refuse(problem: str) -> int:
    typer.echo(f"tokenscaler: {problem}", err=True)
    return WRONG_USAGE


class _Check:
    """What came of deciding again, and of reading; the first problems are said at once, on stderr."""

    def __init__(self, place: str) -> None:
        self.decided = self.different = self.unreadable = self._said = 0
        self._place = place

    def decide_again(self, record: DecisionRecord) -> None:
        self.decided += 1
        if found := differences(record):
            self.different += 1
            self._say(f"{self._place}: {record.namespace}/{record.name} at {record.time}: {'; '.join(found)}")

    def count_unreadable(self, entry: UnreadableRecord) -> None:
        self.unreadable += not entry.is_cut_short
        problem = f"no decision record: {entry.problem}"
        if entry.is_cut_short:
            problem = "the last line is cut short and left out: a crash, or it is being written just now"
        self._say(f"{self._place}:{entry.line_number}: {problem}")

    def _say(self, problem: str) -> None:
        self._said += 1
        if self._said <= SAID_AT_MOST:
            typer.echo(problem, err=True)
        elif self._said == SAID_AT_MOST + 1:
            typer.echo("and more of this kind: the rest is only counted", err=True)

    def say_the_count(self, *, is_for_a_machine: bool) -> None:
        typer.echo(
            f"{self.decided} decisions decided again, {self.different} came out otherwise, "
            f"{self.unreadable} lines unreadable",
            err=is_for_a_machine,
        )

    def exit_code(self) -> int:
        return NOT_RIGHT if self.different or self.unreadable else FINE


def _show_all(
    entries: Iterable[Entry], check: _Check, window: RecordWindow, as_json: bool, console: Console
) -> DecisionRecord | None:
    """Checks each, and shows the newest one or the course of them; the newest, None where there is none."""
    newest: DecisionRecord | None = None
    for entry in entries:
        if isinstance(entry, UnreadableRecord):
            check.count_unreadable(entry)
            continue
        check.decide_again(entry)
        if window.back_seconds is not None:
            _show_in_course(entry, newest, as_json, console)
        newest = entry
    if newest is not None and window.back_seconds is None:
        if as_json:
            typer.echo(newest.to_json_line())
        else:
            console.print(render_record(newest), highlight=False)
    return newest


def _show_in_course(record: DecisionRecord, before: DecisionRecord | None, as_json: bool, console: Console) -> None:
    if as_json:
        typer.echo(record.to_json_line())
    elif before is None or is_news(before, record):
        console.print(headline(record), record.decision.message, highlight=False, soft_wrap=True)


def _selected(path: Path, target: str | None, window: RecordWindow) -> Iterator[Entry]:
    entries = _of_pool(path, target)
    if window.at_seconds is not None:
        in_force = None
        for entry in entries:
            if isinstance(entry, DecisionRecord) and entry.input.now_seconds <= window.at_seconds:
                in_force = entry
        if in_force is not None:
            yield in_force
    elif window.back_seconds is not None:
        times = (entry.input.now_seconds for entry in _of_pool(path, target) if isinstance(entry, DecisionRecord))
        since_seconds = max(times, default=0.0) - window.back_seconds
        for entry in entries:
            if isinstance(entry, UnreadableRecord) or entry.input.now_seconds >= since_seconds:
                yield entry
    else:
        yield from entries


def _of_pool(path: Path, target: str | None) -> Iterator[Entry]:
    for entry in read_log(path):
        if isinstance(entry, UnreadableRecord) or target is None or f"{entry.namespace}/{entry.name}" == target:
            yield entry
