"""Whatever a policy's mode says, in a simulation its counts are written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaler.api.inference_scaler import InferenceScalerSpec
from autoscaler.replay.pool_policy import ReconciledPolicy
from autoscaler.replay.replay import ReplayRun, replay
from tests.autoscaler.replay.simulated_pools import STARTED_AT, a_scaler, a_setup, steady_requests


@pytest.mark.parametrize("mode", ["DryRun", "ExternalMetric"])
def test_a_mode_in_which_others_write_is_replayed_like_scale(mode: str) -> None:
    def changes(mode: str) -> list[tuple[int, int]]:
        scaler = a_scaler()
        spec = InferenceScalerSpec.model_validate({**scaler.spec.model_dump(), "mode": mode})
        policy = ReconciledPolicy([replace(scaler, spec=spec)])
        run = ReplayRun(STARTED_AT, STARTED_AT + 600.0)
        result = replay(policy, a_setup(), steady_requests(20.0), run)
        return [(change.from_replicas, change.to_replicas) for change in result.changes]

    assert changes(mode) == changes("Scale") != []
