"""Each scenario is decided today as its file tells. After a change on purpose: `pytest tests/replay --golden-update`.

A file holds what each of the 160 ticks decided, a line for each change and for every tenth minute. It is meant to be
read as a diff: the last line says what the change has cost, and what it was worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

import pytest

from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.replay.comparison import Stage
from autoscaler.replay.fleet_description import Fleet, fleet_from
from autoscaler.replay.policy_files import RunContext, reconciled_policy
from autoscaler.replay.replay import ReplayRun, replay
from autoscaler.replay.result import PoolResult
from autoscaler.replay.trace_load import trace_load
from tests.autoscaler.replay.simulated_pools import a_scaler
from tests.replay.scenarios import COLD_START, SCENARIOS, Scenario

GOLDEN = Path(__file__).with_name("golden") / "one_pool"
HEADING = "minute  ready  starting  stuck  in flight  wanted  reason"


class _Decisions:
    def __init__(self) -> None:
        self.made: list[Decided] = []

    def report(self, reports: Sequence[PoolReport]) -> None:
        self.made += [report for report in reports if isinstance(report, Decided)]


@pytest.mark.parametrize("scenario", [pytest.param(each, id=each.name) for each in SCENARIOS])
def test_the_scenario_is_decided_as_written(scenario: Scenario, pytestconfig: pytest.Config) -> None:
    told = "\n".join(_told(scenario)) + "\n"
    file = GOLDEN / f"{scenario.name}.txt"
    if pytestconfig.getoption("--golden-update"):
        file.write_text(told, encoding="utf-8")
    written = file.read_text(encoding="utf-8") if file.exists() else ""
    changes = "".join(unified_diff(written.splitlines(True), told.splitlines(True), f"{file.name}, written", "now"))
    assert not changes, f"\n{changes}\nIf this is meant: pytest tests/replay --golden-update"


def test_every_file_has_its_scenario() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {scenario.name for scenario in SCENARIOS}


def _told(scenario: Scenario) -> Iterator[str]:
    fleet = fleet_from("llama-3.1-8b-bf16-1xa100-vllm")
    assert isinstance(fleet, Fleet)
    load = trace_load(scenario.trace(), 1.0, None, None, 0)
    stage, drawn = Stage(replace(fleet, cold_start=COLD_START), load), load.draw(1)
    decisions, policy = _Decisions(), reconciled_policy(a_scaler())
    result = replay(
        policy.make(RunContext(load, 1, (decisions,))),
        stage.setup(policy.identity, stage.first_replicas(drawn)),
        load.requests(drawn),
        ReplayRun(load.starts_at_seconds, load.ends_at_seconds, seed=1, faults=scenario.faults),
    )
    yield f"{scenario.name}: {scenario.tells}"
    yield ""
    yield HEADING
    yield from _lines(decisions.made, result)
    yield ""
    yield (
        f"{result.requests} requests, {100 * (result.attainment or 0.0):.1f} % within the objectives, "
        f"{result.replica_hours:.2f} replica-hours, {result.scale_ups} up, {result.scale_downs} down"
    )


def _lines(made: Sequence[Decided], result: PoolResult) -> Iterator[str]:
    in_flight = {point.at_seconds: point.requests_in_flight for point in result.points}
    last: tuple[int, str] | None = None
    for each in made:
        minute = (each.now_seconds - result.started_at_seconds) / 60.0
        replicas, wanted, reason = each.workload.replicas, each.decision.desired_replicas, each.decision.reason.value
        if (wanted, reason) == last and minute % 10:
            continue
        is_changed = "*" if wanted != replicas.spec else " "
        yield (
            f"{minute:6.2f}  {replicas.ready:5}  {replicas.starting:8}  {replicas.stuck:5}  "
            f"{in_flight[each.now_seconds]:9}  {wanted:6}{is_changed} {reason}"
        )
        last = (wanted, reason)
