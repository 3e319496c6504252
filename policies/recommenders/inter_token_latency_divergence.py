"""Do some gaps between tokens last much longer than most, while replicas are full and objectives are missed?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from policies.observation import MetricsObservation, PoolLatency
from policies.parameter_model import ParameterModel
from policies.reasons import Reason
from policies.recommendation import NoOpinion, ScalingRecommendation, abstention, vote
from policies.recommenders.replica_signals import known_signal
from policies.signals import PoolSignal, Signal
from policies.wording import number

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput  # it holds the parameters below, so it cannot be imported here
    from policies.history import ScalingHistory


class InterTokenLatencyDivergenceParameters(ParameterModel):
    """The 99th percentile of the gaps between tokens over their median."""

    ratio: float = Field(
        default=3.0,
        ge=2.5,
        le=1000,
        description=(
            "Ratio from which the gaps diverge; it ends below 2.2. Default 3: with chunked prefill a long prompt alone "
            "makes gaps uneven. It votes only where replicas are full, or requests wait or are preempted, and "
            "more than 0.5 percent of the requests miss their objectives; without objectives it is advice."
        ),
    )


NAME = "interTokenLatencyDivergence"

_USAGE, _WAITING, _PREEMPTIONS = Signal.KV_CACHE_USAGE, Signal.WAITING_REQUESTS, Signal.PREEMPTIONS

# Once it has diverged it has not converged until it is clearly below: else the vote would come and go.
CONVERGED_RATIO = 2.2
# Latencies are measured over two minutes and anew each minute; one of them may be one long prompt.
MEASUREMENTS_TO_BELIEVE = 2
# Below this median the percentiles are read off the first one or two buckets of an engine's histogram (vLLM: 10 and
# 25 ms), and at this median nobody waits for tokens.
LEAST_MEDIAN_SECONDS = 0.025
# 200 gaps in two minutes: below, the 99th percentile is the worst two.
LEAST_TOKENS_PER_SECOND = 200.0 / 120.0
# What must go with it: the KV cache is filling up, or requests wait or are preempted, and requests miss an objective.
FULL_KV_CACHE = 0.60
MISSED_SHARE = 0.005
# A tenth more at the ratio of 3, and a fifth at most: uneven gaps say that there is too much load, not how much.
GROWTH_AT_DEFAULT_RATIO = 0.10
DEFAULT_RATIO = 3.0
LARGEST_GROWTH = 0.20


@dataclass(frozen=True, slots=True)
class Divergence:
    """How uneven the gaps are: `ratio` is p99 / p50 (None: not measured, or too little to tell), and in how many
    measurements in a row they have diverged.
    """

    ratio: float | None
    measured_at_seconds: float | None
    measurements: int

    @property
    def is_believed(self) -> bool:
        """Whether it has lasted for two measurements."""
        return self.measurements >= MEASUREMENTS_TO_BELIEVE


def divergence_of(decision_input: DecisionInput, history: ScalingHistory) -> Divergence:
    """The divergence now; what the next decision must know of it is `measurements` and `measured_at_seconds`."""
    parameters = decision_input.parameters.signals.inter_token_latency_divergence
    metrics, before = decision_input.metrics, history.uneven_measurements
    if parameters is None or not isinstance(metrics, MetricsObservation):
        return Divergence(None, history.latency_measured_at_seconds, before if parameters is not None else 0)
    ratio, measured_at = gap_ratio(metrics.latency), metrics.latency.measured_at_seconds
    if ratio is None or measured_at is None or measured_at == history.latency_measured_at_seconds:
        return Divergence(ratio, history.latency_measured_at_seconds, before)
    if not _can_be_told(metrics, ratio):
        return Divergence(None, measured_at, 0)
    if ratio > parameters.ratio:
        return Divergence(ratio, measured_at, min(before + 1, MEASUREMENTS_TO_BELIEVE))
    is_between = before >= MEASUREMENTS_TO_BELIEVE and ratio >= CONVERGED_RATIO
    return Divergence(ratio, measured_at, before if is_between else 0)


def gap_ratio(latency: PoolLatency) -> float | None:
    """p99 / p50 of the gaps between tokens; None where not measured."""
    median, tail = latency.inter_token_latency_p50_seconds, latency.inter_token_latency_p99_seconds
    return tail / median if median is not None and tail is not None and median > 0 else None


def recommend_inter_token_latency_divergence(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """Replicas = ready x (1 + min(0.20, 0.10 d / 3)), where d is p99 / p50 of the gaps: 4 x 1.1 = 4.4 at d = 3.

    It stands on the ready replicas, so it holds up what is there and asks for a little more. A divergence that nothing
    else goes with is recorded as advice: under chunked prefill it may be the most ordinary thing.
    """
    if decision_input.parameters.signals.inter_token_latency_divergence is None:
        return ()
    metrics = decision_input.metrics
    if not isinstance(metrics, MetricsObservation):
        return (abstention(NAME, NoOpinion(Reason.SIGNAL_UNKNOWN, metrics.message)),)
    divergence = divergence_of(decision_input, decision_input.history)
    if not divergence.is_believed:
        return (abstention(NAME, NoOpinion(Reason.NO_DIVERGENCE, _in_words(divergence))),)
    if divergence.ratio is None:
        return (abstention(NAME, NoOpinion(Reason.SIGNAL_UNKNOWN, "the gaps between tokens are no longer known")),)
    corroboration = _corroboration(decision_input, metrics)
    if isinstance(corroboration, NoOpinion):
        return (abstention(NAME, corroboration),)
    growth = min(LARGEST_GROWTH, GROWTH_AT_DEFAULT_RATIO * divergence.ratio / DEFAULT_RATIO)
    ready = decision_input.replicas.serving
    return (
        vote(
            NAME,
            Reason.INTER_TOKEN_LATENCY_DIVERGENCE,
            ready * (1.0 + growth),
            1.0,
            "gaps between tokens (p99 is {} times the median; {}) need",
            {"gapRatio": divergence.ratio, "readyReplicas": float(ready), "growth": growth},
            terms=(divergence.ratio, corroboration or "nothing else goes with it"),
            is_advice=not corroboration,
        ),
    )


def _can_be_told(metrics: MetricsObservation, ratio: float) -> bool:
    latency, tokens = metrics.latency, metrics.signals.get(Signal.GENERATION_TOKENS)
    median, floor = latency.inter_token_latency_p50_seconds, latency.inter_token_latency_evenness_floor
    return (
        (median is not None and median >= LEAST_MEDIAN_SECONDS)
        and (tokens is None or tokens.total >= LEAST_TOKENS_PER_SECOND)
        and (floor is None or ratio > floor)
    )


def _corroboration(decision_input: DecisionInput, metrics: MetricsObservation) -> str | NoOpinion:
    """What goes with a divergence, in words; "" for not enough, NoOpinion where more might be that is not known."""
    missed = metrics.latency.outside_objectives_share
    if decision_input.parameters.objectives is None or (missed is not None and missed <= MISSED_SHARE):
        return ""
    loads = {signal: known_signal(metrics, signal) for signal in (_USAGE, _WAITING, _PREEMPTIONS)}
    usage, waiting, preempted = loads.values()
    found = []
    if isinstance(usage, PoolSignal) and usage.mean >= FULL_KV_CACHE:
        found.append(f"KV cache {number(100 * usage.mean)} % full")
    if isinstance(waiting, PoolSignal) and waiting.total > 0:
        found.append(f"{number(waiting.total)} waiting")
    if isinstance(preempted, PoolSignal) and preempted.total > 0:
        found.append(f"{number(preempted.total)} preempted a second")
    if not found:
        unknown = (load for load in loads.values() if isinstance(load, NoOpinion))
        return next((load for load in unknown if load.reason is Reason.SIGNAL_UNKNOWN), "")
    if missed is None:
        return NoOpinion(Reason.SIGNAL_UNKNOWN, "how many requests miss their objectives is not known")
    return ", ".join((*found, f"{number(100 * missed)} % outside the objectives"))


def _in_words(divergence: Divergence) -> str:
    if divergence.ratio is None:
        return "the gaps between tokens are not measured, or too short or few to tell"
    return f"gaps between tokens are even enough: p99 is {number(divergence.ratio)} times the median"
