"""Who takes part: the policy with some of its parameters changed, or a baseline with parameters of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from autoscaler.replay.baselines.baseline import BASELINES, Occasion
from autoscaler.replay.clairvoyant import find_clairvoyant
from autoscaler.replay.comparison import Stage
from autoscaler.replay.node_agreement import ReadAcceleratorPool
from autoscaler.replay.policy_files import ReplayedPolicy, reconciled_policy
from autoscaler.replay.trace import RequestTrace
from autoscaler.tuning.dimension import Values
from autoscaler.tuning.policy_variant import parse_variant


@dataclass(frozen=True, slots=True)
class Variant:
    """The policy of `content`, an InferenceScaler's document, with other values. With none it is the given one.

    `accelerator_pools` are those of its file that it refers to.
    """

    content: Mapping[str, Any]
    values: Values
    accelerator_pools: tuple[ReadAcceleratorPool, ...] = ()

    @property
    def name(self) -> str:
        """Who it is in the study."""
        return "policy"


@dataclass(frozen=True, slots=True)
class BaselineRun:
    """A baseline within bounds; without values it has what its documentation recommends."""

    name: str
    values: Mapping[str, float]
    minimum: int
    maximum: int


Contender: TypeAlias = Variant | BaselineRun


def contender_key(contender: Contender) -> str:
    """The same text for the same contender, whatever the order of its values."""
    return orjson.dumps([contender.name, dict(contender.values)], option=orjson.OPT_SORT_KEYS).decode()


def replayed(contender: Contender, stage: Stage, drawn: RequestTrace, seed: int) -> ReplayedPolicy | None:
    """The contender as a policy for one run; None where it cannot be made there. A variant must be a valid policy."""
    match contender:
        case Variant():
            scaler = parse_variant(contender.content, contender.values)
            assert not isinstance(scaler, tuple), scaler
            return reconciled_policy(scaler, contender.accelerator_pools)
        case BaselineRun():
            baseline = BASELINES[contender.name]
            clairvoyant = find_clairvoyant(stage, drawn, seed) if baseline.knows_the_future else None
            occasion = Occasion(stage, drawn, seed, clairvoyant, contender.minimum, contender.maximum)
            return baseline.make(occasion, contender.values)
