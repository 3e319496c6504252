"""Which baselines are there? The visible table: one line and one file each, with the parameters that may be tuned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from autoscaler.replay.baselines.aibrix_apa import AIBrixAPA
from autoscaler.replay.baselines.dynamo_planner import DynamoPlanner
from autoscaler.replay.baselines.hpa_queue import hpa_queue
from autoscaler.replay.baselines.keda_hpa import keda_hpa
from autoscaler.replay.baselines.knative_kpa import KnativeKPA
from autoscaler.replay.baselines.llmd_slo import LlmdSLO
from autoscaler.replay.baselines.llmd_wva import LlmdWVA
from autoscaler.replay.baselines.peer import PeerPolicy, PeerRule
from autoscaler.replay.baselines.ray_serve import RayServe
from autoscaler.replay.baselines.static import static_mean, static_peak
from autoscaler.replay.clairvoyant import Clairvoyant, planned_policy
from autoscaler.replay.comparison import Stage
from autoscaler.replay.policy_files import PoolIdentity, ReplayedPolicy
from autoscaler.replay.pool_policy import PoolPolicy
from autoscaler.replay.replica_work import requests_per_second
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

    @property
    def replica(self) -> ServedByOne:
        """What one replica serves of this load within its objectives."""
        fleet = self.stage.fleet
        inputs, outputs = float(self.drawn.input_tokens.mean()), float(self.drawn.output_tokens.mean())
        rate = requests_per_second(fleet.profile, inputs, outputs, fleet.objectives)
        gap = fleet.objectives.inter_token_latency_seconds
        return ServedByOne(rate * (inputs + outputs), rate * outputs * gap)


@dataclass(frozen=True, slots=True)
class ServedByOne:
    """At the objective: tokens a second, and requests in flight (Little's law)."""

    tokens_per_second: float
    requests_in_flight: float


@dataclass(frozen=True, slots=True)
class Tunable:
    """A parameter of a baseline, and between which values its best one is sought."""

    name: str
    low: float
    high: float


# A baseline's own parameters by name; what is not in it has the value that its documentation recommends.
Parameters: TypeAlias = Mapping[str, float]
PUBLISHED: Parameters = {}


@dataclass(frozen=True, slots=True)
class Baseline:
    """A published policy. `make` gives None where it cannot be made on an occasion."""

    make: Callable[[Occasion, Parameters], ReplayedPolicy | None]
    tunables: Callable[[Occasion], tuple[Tunable, ...]] = lambda occasion: ()
    knows_the_future: bool = False


def make_baseline(name: str, occasion: Occasion, parameters: Parameters = PUBLISHED) -> ReplayedPolicy | None:
    """A baseline with the parameters of its documentation, or with others; None where it cannot be made."""
    return BASELINES[name].make(occasion, parameters)


def _oracle(occasion: Occasion, parameters: Parameters) -> ReplayedPolicy | None:
    return None if occasion.clairvoyant is None else planned_policy("oracle", occasion.clairvoyant.counts)


def _static_peak(occasion: Occasion, parameters: Parameters) -> ReplayedPolicy:
    target = occasion.clairvoyant.target if occasion.clairvoyant else None
    return static_peak(occasion.stage, occasion.drawn, occasion.seed, target)


def _keda_hpa(occasion: Occasion, parameters: Parameters) -> ReplayedPolicy:
    return _replayed(occasion, keda_hpa(occasion.minimum, occasion.maximum, **parameters))


def _hpa_queue(occasion: Occasion, parameters: Parameters) -> ReplayedPolicy:
    return _replayed(occasion, hpa_queue(occasion.minimum, occasion.maximum, **parameters))


def _peer(
    name: str, make_rule: Callable[[Occasion, Parameters], PeerRule], occasion: Occasion, parameters: Parameters
) -> ReplayedPolicy:
    policy = PeerPolicy(name, occasion.minimum, occasion.maximum, lambda: (make_rule(occasion, parameters),))
    return _replayed(occasion, policy)


def _replayed(occasion: Occasion, policy: PoolPolicy) -> ReplayedPolicy:
    identity = PoolIdentity("replay", policy.name, policy.name, "vllm")
    return ReplayedPolicy(policy.name, identity, occasion.minimum, occasion.maximum, lambda run: policy)


def _llmd_slo(occasion: Occasion, parameters: Parameters) -> PeerRule:
    objectives = occasion.stage.fleet.objectives
    return LlmdSLO(objectives.time_to_first_token_seconds, objectives.inter_token_latency_seconds, **parameters)


def _dynamo(occasion: Occasion, parameters: Parameters) -> PeerRule:
    fleet = occasion.stage.fleet
    return DynamoPlanner(fleet.profile, fleet.objectives, **parameters)


# Shares of what a replica serves within its objectives.
LEAST_SHARE, MOST_SHARE = 0.3, 1.0


def _in_flight(name: str, occasion: Occasion) -> Tunable:
    served = occasion.replica.requests_in_flight
    return Tunable(name, LEAST_SHARE * served, MOST_SHARE * served)


def _tokens(name: str, occasion: Occasion) -> Tunable:
    served = occasion.replica.tokens_per_second
    return Tunable(name, LEAST_SHARE * served, MOST_SHARE * served)


BASELINES: Mapping[str, Baseline] = {
    "keda-hpa": Baseline(_keda_hpa, lambda o: (_tokens("threshold", o), Tunable("down_window_seconds", 60.0, 900.0))),
    "hpa-queue": Baseline(
        _hpa_queue, lambda o: (_in_flight("in_flight_per_replica", o), Tunable("down_window_seconds", 60.0, 900.0))
    ),
    "knative-kpa": Baseline(
        partial(_peer, "knative-kpa", lambda o, parameters: KnativeKPA(**parameters)),
        lambda o: (
            _in_flight("concurrency_per_replica", o),
            Tunable("stable_seconds", 30.0, 600.0),
            Tunable("down_delay_seconds", 1.0, 900.0),
        ),
    ),
    "aibrix-apa": Baseline(
        partial(_peer, "aibrix-apa", lambda o, parameters: AIBrixAPA(**parameters)),
        lambda o: (Tunable("target_kv_usage", 0.03, 0.7), Tunable("down_cooldown_seconds", 60.0, 900.0)),
    ),
    "llmd-wva": Baseline(
        partial(_peer, "llmd-wva", lambda o, parameters: LlmdWVA(**parameters)),
        lambda o: (Tunable("up_share", 0.2, 0.95), Tunable("window_seconds", 15.0, 600.0)),
    ),
    "llmd-slo": Baseline(
        partial(_peer, "llmd-slo", _llmd_slo),
        lambda o: (Tunable("up", 0.3, 0.85), Tunable("down_window_seconds", 60.0, 600.0)),
    ),
    "dynamo-planner": Baseline(
        partial(_peer, "dynamo-planner", _dynamo),
        lambda o: (Tunable("correction", 0.4, 1.0), Tunable("down_sensitivity", 0.4, 0.95)),
    ),
    "ray-serve": Baseline(
        partial(_peer, "ray-serve", lambda o, parameters: RayServe(**parameters)),
        lambda o: (_in_flight("target_ongoing_requests", o), Tunable("down_delay_seconds", 60.0, 900.0)),
    ),
    "static-peak": Baseline(_static_peak, knows_the_future=True),
    "static-mean": Baseline(lambda occasion, parameters: static_mean(occasion.stage, occasion.drawn)),
    "oracle": Baseline(_oracle, knows_the_future=True),
}
