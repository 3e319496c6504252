"""Leaves out what this machine cannot run, in one clear line for each kind; with CI=true that is a failure."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest
from hypothesis import settings

from tests.cluster.harness.binaries import missing_programs
from tests.cluster.harness.binaries import unavailable_reason as go_unavailable_reason
from tests.servers.prometheus_server import prometheus_unavailable_reason


def _cluster_unavailable_reason() -> str | None:
    reason = go_unavailable_reason()
    if reason is None and missing_programs():
        reason = "the control plane's programs are not built yet (make programs; 18 minutes once)"
    return reason or prometheus_unavailable_reason()


def _browser_unavailable_reason() -> str | None:
    return None if shutil.which("chromium") else "chromium is not installed (Debian: apt-get install chromium)"


# The same examples at every run: a law that one machine in twenty finds broken is no use to the other nineteen. For the
# same reason no example has a time limit of its own: on a busy machine any of them may take longer than 200 ms.
settings.register_profile("same examples", derandomize=True, database=None, deadline=None)
settings.load_profile("same examples")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`pytest tests/stories --golden-update` writes what was decided anew, to be read as a diff."""
    parser.addoption("--golden-update", action="store_true", help="write the golden files of the chosen tests anew")


_REASONS: dict[str, Callable[[], str | None]] = {
    "prometheus": prometheus_unavailable_reason,
    "cluster": _cluster_unavailable_reason,
    "browser": _browser_unavailable_reason,
}
LEFT_OUT = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    reasons = {mark: reason for mark, find in _REASONS.items() if (reason := find()) is not None}
    if reasons and os.environ.get("CI") == "true":
        said = "; ".join(f"tests marked {mark} cannot run: {reason}" for mark, reason in reasons.items())
        raise pytest.UsageError(f"CI=true allows nothing to be left out: {said}")
    config.stash[LEFT_OUT] = reasons


# Real processes on a machine that others use may lose a race that says nothing about the program. A test of them has
# a second try, which the summary names (RERUN); what fails twice fails. All that has no clock but ours has one try.
REAL_PARTS_RERUNS = 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.get_closest_marker(mark) for mark in _REASONS):
            item.add_marker(pytest.mark.flaky(reruns=REAL_PARTS_RERUNS))
    reasons = config.stash[LEFT_OUT]
    left_out = [item for item in items if any(item.get_closest_marker(mark) for mark in reasons)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for mark, reason in config.stash[LEFT_OUT].items():
        terminalreporter.write_line(f"left out: the tests marked {mark}: {reason}", yellow=True)
