"""What is searched of a policy where nobody says it."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.replay.fleet_description import Fleet, fleet_from
from autoscaler.replay.trace import shipped_trace
from autoscaler.replay.trace_load import trace_load
from autoscaler.tuning.default_search import default_search
from autoscaler.tuning.dimension import NumberRange
from autoscaler.tuning.scenes import Scene, cut_scene
from autoscaler.tuning.search_range import read_range
from tests.tuning_builders import a_scaler

SHRINKING = [
    "behavior.scaleDown.stabilizationWindowSeconds",
    "behavior.scaleUp.tolerance",
    "behavior.scaleDown.tolerance",
]
FORECAST = ["forecast.mode", "forecast.quantilePercent"]


@pytest.fixture(scope="module")
def scene() -> Scene:
    fleet = fleet_from("llama-3.1-8b-bf16-1xa100-vllm")
    assert isinstance(fleet, Fleet)
    return cut_scene("chat", fleet, trace_load(shipped_trace("azure_conversation_2023"), 4.0, 0.0, 600.0, 0), 50.0)


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        pytest.param({}, SHRINKING + FORECAST, id="a learned capacity has no share to be searched"),
        pytest.param(
            {"signals": {"tokensInFlight": {}, "waitingRequests": {"perReplica": 4}}},
            ["signals.tokensInFlight.perReplica", "signals.waitingRequests.perReplica", *SHRINKING],
            id="the shares of the votes that are named, and no forecast that nobody can weigh",
        ),
        pytest.param(
            {"signals": {"tokenRate": {"perReplicaPerSecond": 5000}}, "forecast": {"missIdleCostRatio": 9}},
            ["signals.tokenRate.perReplicaPerSecond", *SHRINKING, "forecast.mode"],
            id="a quantile that is given by costs stays",
        ),
        pytest.param(
            {
                "signals": {
                    "kvCache": {},
                    "pendingRequests": {"query": "sum(p)", "perReplica": 8},
                    "custom": [{"name": "a", "query": "sum(a)", "perReplica": 1}],
                }
            },
            [
                "signals.kvCache.headroomPercent",
                "signals.pendingRequests.perReplica",
                "signals.custom[0].perReplica",
                *SHRINKING,
            ],
            id="the user's own queries too",
        ),
    ],
)
def test_what_is_searched(scene: Scene, spec: dict[str, Any], paths: list[str]) -> None:
    dimensions = default_search(a_scaler(**spec), scene, seed=1)
    assert [dimension.path for dimension in dimensions] == paths
    for dimension in dimensions:
        assert not isinstance(read_range(dimension.shown()), str)


def test_a_share_is_searched_around_what_a_replica_of_this_fleet_serves(scene: Scene) -> None:
    scaler = a_scaler(signals={"tokenRate": {"perReplicaPerSecond": 180_000}})
    rate = default_search(scaler, scene, seed=1)[0]
    assert isinstance(rate, NumberRange)
    # An A100 with an 8B model does some 10 000 tokens a second of these prompts at 50 ms a token.
    assert 1_000 < rate.low < 10_000 < rate.high < 100_000
