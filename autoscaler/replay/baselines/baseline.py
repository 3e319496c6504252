"""Which baselines are there? The visible table: one line and one file each, with the values that tuning tries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

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
class Baseline:
    """A published policy. `make` takes a tuned parameter, None for the one that its documentation recommends."""

    make: Callable[[Occasion, float | None], ReplayedPolicy | None]
    tries: Callable[[Occasion], Sequence[float]] = lambda occasion: ()


SHARES = (0.4, 0.5, 0.6, 0.7, 0.85)


def _oracle(occasion: Occasion, parameter: float | None) -> ReplayedPolicy | None:
    return None if occasion.clairvoyant is None else planned_policy("oracle", occasion.clairvoyant.counts)


def _static_peak(occasion: Occasion, parameter: float | None) -> ReplayedPolicy:
    target = occasion.clairvoyant.target if occasion.clairvoyant else None
    return static_peak(occasion.stage, occasion.drawn, occasion.seed, target)


def _keda_hpa(occasion: Occasion, threshold: float | None) -> ReplayedPolicy:
    bounds = (occasion.minimum, occasion.maximum)
    return _replayed(occasion, keda_hpa(*bounds) if threshold is None else keda_hpa(*bounds, threshold))


def _hpa_queue(occasion: Occasion, in_flight: float | None) -> ReplayedPolicy:
    return _replayed(occasion, hpa_queue(occasion.minimum, occasion.maximum, in_flight))


def _peer(
    name: str,
    make_rule: Callable[[Occasion, float | None], PeerRule],
    occasion: Occasion,
    parameter: float | None,
) -> ReplayedPolicy:
    policy = PeerPolicy(name, occasion.minimum, occasion.maximum, lambda: (make_rule(occasion, parameter),))
    return _replayed(occasion, policy)


def _replayed(occasion: Occasion, policy: PoolPolicy) -> ReplayedPolicy:
    identity = PoolIdentity("replay", policy.name, policy.name, "vllm")
    return ReplayedPolicy(policy.name, identity, occasion.minimum, occasion.maximum, lambda run: policy)


def _llmd_slo(occasion: Occasion, up: float | None) -> PeerRule:
    objectives = occasion.stage.fleet.objectives
    both = (objectives.time_to_first_token_seconds, objectives.inter_token_latency_seconds)
    return LlmdSLO(*both) if up is None else LlmdSLO(*both, up)


def _dynamo(occasion: Occasion, correction: float | None) -> PeerRule:
    fleet = occasion.stage.fleet
    return DynamoPlanner(fleet.profile, fleet.objectives, correction or 1.0)


def _in_flight(occasion: Occasion) -> Sequence[float]:
    return [share * occasion.replica.requests_in_flight for share in SHARES]


BASELINES: Mapping[str, Baseline] = {
    "keda-hpa": Baseline(_keda_hpa, lambda o: [share * o.replica.tokens_per_second for share in SHARES]),
    "hpa-queue": Baseline(_hpa_queue, _in_flight),
    "knative-kpa": Baseline(
        partial(_peer, "knative-kpa", lambda o, target: KnativeKPA() if target is None else KnativeKPA(target)),
        _in_flight,
    ),
    "aibrix-apa": Baseline(
        partial(_peer, "aibrix-apa", lambda o, target: AIBrixAPA() if target is None else AIBrixAPA(target)),
        lambda o: (0.05, 0.1, 0.2, 0.3, 0.4, 0.6),
    ),
    "llmd-wva": Baseline(
        partial(_peer, "llmd-wva", lambda o, share: LlmdWVA() if share is None else LlmdWVA(share)),
        lambda o: (0.3, 0.45, 0.6, 0.75, 0.95),
    ),
    "llmd-slo": Baseline(partial(_peer, "llmd-slo", _llmd_slo), lambda o: (0.35, 0.45, 0.65, 0.75)),
    "dynamo-planner": Baseline(partial(_peer, "dynamo-planner", _dynamo), lambda o: (0.5, 0.6, 0.7, 0.8)),
    "ray-serve": Baseline(
        partial(_peer, "ray-serve", lambda o, target: RayServe() if target is None else RayServe(target)), _in_flight
    ),
    "static-peak": Baseline(_static_peak),
    "static-mean": Baseline(lambda occasion, parameter: static_mean(occasion.stage, occasion.drawn)),
    "oracle": Baseline(_oracle),
}


def make_baseline(name: str, occasion: Occasion, is_tuned: bool = False) -> ReplayedPolicy | None:
    """A baseline with its documentation's parameters or, tuned, with the best of several for this very load.

    Best is the least of hours by the documentation's hours + 10 x share of missed requests: one in a hundred requests
    missed is worth a tenth of the fleet. None where it cannot be made on this occasion.
    """
    baseline = BASELINES[name]
    published = baseline.make(occasion, None)
    if not is_tuned or published is None:
        return published
    candidates = [published, *(baseline.make(occasion, value) for value in baseline.tries(occasion))]
    results = [
        (candidate, occasion.stage.run(candidate, occasion.drawn, occasion.seed))
        for candidate in candidates
        if candidate is not None
    ]
    work_hours = min(result.replica_hours for _, result in results if not result.was_stopped) if results else 0.0
    if not work_hours:
        return published
    best, _ = min(
        results, key=lambda pair: pair[1].replica_hours / work_hours + 10.0 * (1.0 - (pair[1].attainment or 0.0))
    )
    return replace(best, name=f"{name} (tuned)")
