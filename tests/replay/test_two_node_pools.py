"""The shipped example of a fleet with nodes, from the command to its figures: a floor on demand, spot and its troubles.

The decisions and the writes of limits, in order, are compared with a file that is read in reviews.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from autoscaler.commands.replay import replay_policies
from autoscaler.decision_log import read_log
from autoscaler.decision_record import DecisionRecord
from autoscaler.replay.replay_request import ReplayRequest
from autoscaler.replay.trace_load import TRACE_BEGINS_AT_SECONDS

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples" / "replay"
README = Path(__file__).parents[2] / "autoscaler" / "replay" / "README.md"
GOLDEN = Path(__file__).parent / "golden" / "two_node_pools.txt"
NAME = "llama-70b"
ACCELERATORS_PER_NODE, PRICES = 4, {"on-demand": 6.88, "spot": 2.75}

# Requests a second from these seconds on: a quiet start, a rise in which spot has no capacity, and a fall.
RATES = ((0, 0.3), (480, 0.8), (780, 1.6), (1200, 2.2), (2700, 0.9), (3300, 0.3), (4500, 0.0))
INPUT_TOKENS, OUTPUT_TOKENS = 12_000, 600


def a_trace(path: Path) -> Path:
    """Equal requests at even intervals, with the rates above."""
    rows, at = ["timestamp_s,value,input_tokens,output_tokens"], 0.0
    while at < RATES[-1][0]:
        rate = next(each for begins, each in reversed(RATES) if begins <= at)
        at += 1.0 / rate
        rows.append(f"{at:.3f},1,{INPUT_TOKENS},{OUTPUT_TOKENS}")
    path.write_text("\n".join(rows) + "\n")
    return path


class Replayed:
    """What the command has written and shown."""

    def __init__(self, directory: Path) -> None:
        report, decisions, screen = directory / "report.json", directory / "decisions.jsonl", StringIO()
        request = ReplayRequest(
            policies=(EXAMPLES / "two-node-pools-policy.yaml",),
            trace=str(a_trace(directory / "trace.csv")),
            fleet=str(EXAMPLES / "two-node-pools-fleet.yaml"),
            json_path=report,
            decisions_path=decisions,
        )
        self.code = replay_policies(request, Console(file=screen, width=250))
        self.screen = screen.getvalue()
        self.document: dict[str, Any] = json.loads(report.read_text())
        self.figures: Mapping[str, Any] = self.document["policies"][NAME]
        self.records = [each for each in read_log(decisions) if isinstance(each, DecisionRecord)]

    def lines(self) -> Iterator[str]:
        """Limits before counts, as they are written in a tick."""
        limits = [
            (each["at_s"], 0, f"{each['node_pool']} limited to {each['nodes']}") for each in self.figures["limits"]
        ]
        counts = []
        for record in self.records:
            before, wanted = record.input.replicas.spec, record.decision.desired_replicas
            if before != wanted:
                at = record.input.now_seconds - TRACE_BEGINS_AT_SECONDS
                counts.append((at, 1, f"replicas {before} -> {wanted} {record.decision.reason}"))
        return (f"{at:6.0f} s  {what}" for at, _, what in sorted([*limits, *counts]))


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    return Replayed(tmp_path_factory.mktemp("two_node_pools"))


def test_the_decisions_and_limits_are_those_of_the_golden_file(replayed: Replayed, pytestconfig: pytest.Config) -> None:
    assert replayed.code == 0
    told = "\n".join(replayed.lines()) + "\n"
    if pytestconfig.getoption("--golden-update"):
        GOLDEN.write_text(told)
    changes = "".join(unified_diff(GOLDEN.read_text().splitlines(True), told.splitlines(True), "written", "now"))
    assert not changes, f"\n{changes}\nIf this is meant: pytest tests/replay --golden-update"


def test_spot_reclaims_and_want_of_capacity_are_in_the_figures(replayed: Replayed) -> None:
    figures = replayed.figures
    assert figures["spot_reclaims"] >= 1
    assert figures["refused_launches"] >= 1
    assert figures["requests_lost_to_reclaims"] == figures["dropped"] == 0
    assert 0 < figures["max_nodes"] <= 10
    assert figures["attainment"] > 0.8


def test_whole_nodes_are_paid_for_at_the_price_of_their_capacity_type(replayed: Replayed) -> None:
    figures, by_type = replayed.figures, replayed.figures["by_capacity_type"]
    assert set(by_type) == set(PRICES)
    for kind, use in by_type.items():
        assert use["accelerator_hours"] == pytest.approx(ACCELERATORS_PER_NODE * use["node_hours"])
        assert use["cost_dollars"] == pytest.approx(PRICES[kind] * use["accelerator_hours"])
        assert use["node_hours"] > 0
    for name in ("node_hours", "accelerator_hours", "cost_dollars"):
        assert figures[name] == pytest.approx(sum(use[name] for use in by_type.values()))
    # A replica takes half of a node, and nodes outlast them.
    assert figures["accelerator_hours"] >= 2 * figures["replica_hours"] * 0.99
    clairvoyant = replayed.document["clairvoyant"]
    assert clairvoyant["accelerator_hours"] >= 2 * clairvoyant["replica_hours"]
    assert replayed.document["fleet"]["dollars_per_accelerator_hour"] == PRICES


def test_the_table_says_what_the_nodes_came_to(replayed: Replayed) -> None:
    assert f"{NAME}: " in replayed.screen
    assert "node-hours on-demand" in replayed.screen
    assert "node-hours spot" in replayed.screen
    assert "spot reclaims" in replayed.screen


def test_the_readme_shows_the_fleet_that_is_run_here() -> None:
    fleet = (EXAMPLES / "two-node-pools-fleet.yaml").read_text()
    assert fleet[fleet.index("profile:") :] in README.read_text()
