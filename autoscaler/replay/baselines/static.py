"""A fixed count: `static-peak` is the least that meets the objectives, `static-mean` what the mean load needs.

`static-peak` is found in simulation, for 99.5 % of the requests (or what the clairvoyant plan can reach). `static-mean`
is the mean work at 70 % of what a replica serves within its objectives.
"""

from __future__ import annotations

import math

from autoscaler.replay.clairvoyant import BIN_SECONDS, TARGET, least_fixed_count, planned_policy
from autoscaler.replay.comparison import COMFORTABLE_UTILISATION, Stage
from autoscaler.replay.policy_files import ReplayedPolicy
from autoscaler.replay.replica_work import work
from autoscaler.replay.trace import RequestTrace


def static_peak(stage: Stage, drawn: RequestTrace, seed: int, target: float | None) -> ReplayedPolicy:
    """The least fixed count for the target; None is 99.5 %."""
    count = least_fixed_count(stage, drawn, seed, TARGET if target is None else target)
    return planned_policy("static-peak", (count,))


def static_mean(stage: Stage, drawn: RequestTrace) -> ReplayedPolicy:
    """The count that the mean load comfortably needs."""
    needs = work(stage.fleet.profile, stage.load.bins(drawn, BIN_SECONDS), stage.fleet.objectives)
    count = max(1, math.ceil(float(needs.mean()) / COMFORTABLE_UTILISATION))
    return planned_policy("static-mean", (count,))
