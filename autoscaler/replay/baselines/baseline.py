"""Which baselines are there? The visible table: one line and one file each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from autoscaler.replay.baselines.static import static_mean, static_peak
from autoscaler.replay.clairvoyant import Clairvoyant, planned_policy
from autoscaler.replay.comparison import Stage
from autoscaler.replay.policy_files import ReplayedPolicy
from autoscaler.replay.trace import RequestTrace


@dataclass(frozen=True, slots=True)
class Occasion:
    """What a baseline is made for: the stage, one drawing of the load, and the bounds that the user's policy has."""

    stage: Stage
    drawn: RequestTrace
    seed: int
    clairvoyant: Clairvoyant | None
    minimum: int
    maximum: int


def _oracle(occasion: Occasion) -> ReplayedPolicy | None:
    return None if occasion.clairvoyant is None else planned_policy("oracle", occasion.clairvoyant.counts)


def _static_peak(occasion: Occasion) -> ReplayedPolicy:
    target = occasion.clairvoyant.target if occasion.clairvoyant else None
    return static_peak(occasion.stage, occasion.drawn, occasion.seed, target)


# None: it cannot be made on this occasion.
BASELINES: Mapping[str, Callable[[Occasion], ReplayedPolicy | None]] = {
    "oracle": _oracle,
    "static-peak": _static_peak,
    "static-mean": lambda occasion: static_mean(occasion.stage, occasion.drawn),
}
