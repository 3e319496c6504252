from __future__ import annotations

from pathlib import Path

import pytest

from autoscaler.replay.fleet_description import DEFAULT_PROFILE, Fleet, FleetRefused, fleet_from
from autoscaler.replay.replica_profile import built_in_profile
from autoscaler.replay.routers import RouterName

FLEET = """\
profile: llama-3.3-70b-fp8-2xh100-vllm
coldStart:
  - {name: node, medianSeconds: 100, spread: 0.3}
  - {name: load, medianSeconds: 200}
objectives: {timeToFirstTokenSeconds: 3, interTokenLatencySeconds: 0.04}
router: round-robin
scrape: {intervalSeconds: 5, delaySeconds: 3}
dollarsPerAcceleratorHour: 2.5
"""


def test_a_file_says_everything_about_a_fleet(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    fleet = fleet_from(str(path))
    assert isinstance(fleet, Fleet)
    assert fleet.profile.accelerators_per_replica == 2
    assert [phase.name for phase in fleet.cold_start.phases] == ["node", "load"]
    assert fleet.objectives.are_met_by(2.9, 0.04)
    assert fleet.description.router is RouterName.ROUND_ROBIN
    assert (fleet.scrape.interval_seconds, fleet.scrape.delay_seconds) == (5.0, 3.0)
    assert fleet.assumptions == ()


def test_a_profile_is_enough_and_the_price_is_a_named_assumption() -> None:
    fleet = fleet_from("qwen3-14b-bf16-1xh100-vllm")
    assert isinstance(fleet, Fleet)
    assert fleet.profile == built_in_profile("qwen3-14b-bf16-1xh100-vllm")
    assert fleet.assumptions == ("an accelerator costs 3 dollars an hour",)


def test_without_a_fleet_the_default_one_is_a_named_assumption() -> None:
    fleet = fleet_from(None)
    assert isinstance(fleet, Fleet)
    assert fleet.profile.name == DEFAULT_PROFILE
    assert DEFAULT_PROFILE in fleet.assumptions[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("profile: qwen\n", "line 1: no replica profile is called 'qwen'; there", id="no such profile"),
        pytest.param(
            "profile: qwen3-14b-bf16-1xh100-vllm\nrooter: x\n",
            "line 2: rooter is not a known field; did you mean router?",
            id="a misspelt field",
        ),
        pytest.param(
            "objectives:\n  timeToFirstTokenSeconds: -1\n",
            "line 2: objectives.timeToFirstTokenSeconds is -1; it must be more than 0",
            id="a value out of its bounds",
        ),
        pytest.param(
            "coldStart:\n  - {name: node}\n", "line 2: coldStart[0].medianSeconds is missing", id="a phase without time"
        ),
        pytest.param("[1]\n", "one YAML object is wanted", id="a list"),
        pytest.param("a: [", "not YAML", id="no YAML"),
        pytest.param(
            "profile: own\nprofilesFile: own.json\n",
            "own.json, profile own: accelerators_per_replica: Field required",
            id="a profile of one's own with missing fields",
        ),
        pytest.param(
            "profile: own\nprofilesFile: other.json\n", "profilesFile other.json: cannot be read", id="no such file"
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "own.json").write_text('{"profiles": [{"name": "own"}]}')
    path = tmp_path / "fleet.yaml"
    path.write_text(text)
    refused = fleet_from(str(path))
    assert isinstance(refused, FleetRefused)
    assert any(str(path) in problem and expected in problem for problem in refused.problems), refused


def test_a_name_that_is_neither_file_nor_profile_is_told_what_there_is() -> None:
    refused = fleet_from("h100")
    assert isinstance(refused, FleetRefused)
    assert refused.problems[0].startswith("--fleet h100: no such file, and no profile is called so; there are: deep")
