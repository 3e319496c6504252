"""What is searched where nobody says it? The shares of a policy's votes, how it shrinks, what it foresees."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.replay.baselines.baseline import Occasion
from autoscaler.tuning.dimension import Choice, Dimension, NumberRange
from autoscaler.tuning.scenes import Part, Scene
from policies.parameters import ScalingParameters

# From a third of what a replica serves within its objectives to a little more than that.
LEAST_SHARE, MOST_SHARE = 0.3, 1.2
# How far around what a policy says about queues and about the user's own queries.
AROUND = 4.0


def default_search(scaler: InferenceScaler, scene: Scene, seed: int) -> tuple[Dimension, ...]:
    """The dimensions for a policy on a load. Where its capacity is learned, nothing states a share to be searched."""
    return (*_shares(scaler.spec, scene, seed), *_shrinking(), *_foresight(scaler.spec.parameters))


def _shares(spec: ScalingParameters, scene: Scene, seed: int) -> Iterator[Dimension]:
    signals = spec.signals
    drawn = scene.drawn(Part.SEARCH, seed)
    replica = Occasion(scene.stage(Part.SEARCH), drawn, seed, None, 1, 1).replica
    if signals.tokens_in_flight is not None:
        # A request holds its prompt and, on average, half of its answer.
        held = float(drawn.input_tokens.mean() + drawn.output_tokens.mean() / 2.0)
        yield _around_share("signals.tokensInFlight.perReplica", replica.requests_in_flight * held)
    if signals.token_rate is not None:
        yield _around_share("signals.tokenRate.perReplicaPerSecond", replica.tokens_per_second)
    if signals.kv_cache is not None:
        yield NumberRange("signals.kvCache.headroomPercent", 5, 80)
    if signals.waiting_requests is not None:
        yield _around("signals.waitingRequests.perReplica", signals.waiting_requests.per_replica)
    if signals.pending_requests is not None:
        yield _around("signals.pendingRequests.perReplica", signals.pending_requests.per_replica)
    for place, custom in enumerate(signals.custom):
        if custom.per_replica is not None:
            yield _around(f"signals.custom[{place}].perReplica", custom.per_replica)


def _shrinking() -> Iterator[Dimension]:
    yield NumberRange("behavior.scaleDown.stabilizationWindowSeconds", 60, 1800, is_whole=True, is_log=True)
    yield NumberRange("behavior.scaleUp.tolerance", 0.0, 0.2)
    yield NumberRange("behavior.scaleDown.tolerance", 0.0, 0.3)


def _foresight(parameters: ScalingParameters) -> Iterator[Dimension]:
    """Where it is known what a replica can do: else no forecast has a vote."""
    if parameters.signals.token_rate is None and parameters.objectives is None:
        return
    yield Choice("forecast.mode", ("Off", "Active"))
    if parameters.forecast is None or parameters.forecast.miss_idle_cost_ratio is None:
        yield NumberRange("forecast.quantilePercent", 50, 95)


def _around_share(path: str, served: float) -> NumberRange:
    return _rounded(path, LEAST_SHARE * served, MOST_SHARE * served)


def _around(path: str, value: float) -> NumberRange:
    return _rounded(path, max(value / AROUND, 0.001), value * AROUND)


def _rounded(path: str, low: float, high: float) -> NumberRange:
    return NumberRange(path, float(f"{low:.2g}"), float(f"{high:.2g}"), is_log=True)
