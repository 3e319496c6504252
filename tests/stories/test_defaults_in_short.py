"""What does each default protect from, where a few looks show it? `test_defaults.py` has those that need a pool.

A short story is a list of looks at a pool; `decide` is asked at each, and its count is taken over at once. It is played
as it is and with one rule taken out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from forecasting.forecast import Forecast
from policies import history as histories
from policies import sight
from policies.capacity.learned_capacity import LearnedCapacity
from policies.cold_start import ColdStart
from policies.decision import decide
from policies.history import ScalingHistory, with_rescale
from policies.load import work_rate
from policies.observation import MetricsObservation, PoolLatency
from policies.recommenders import forecast as forecasts
from policies.recommenders import inter_token_latency_divergence as divergence
from policies.recommenders import replica_signals
from policies.signals import PoolSignal, Signal
from tests.builders import NOW, a_decision_input, a_history, a_policy, a_signal, an_even_signal, an_observation
from tests.forecast_builders import OPEN

TakeOut = Callable[[pytest.MonkeyPatch], None]
FOUR_MINUTES = ColdStart(240.0, 240.0, 240.0, starts=9)
SEEN_FOR_LONG = a_history(consecutive_good_readings=3)


@dataclass(frozen=True)
class Look:
    """What is seen of a pool with so many replicas; `seconds` after the look before."""

    sees: Callable[[int], MetricsObservation]
    seconds: float = 15.0
    forecast: Forecast | None = None


@dataclass(frozen=True)
class ShortStory:
    """A pool, a policy, and what is seen of it."""

    looks: Sequence[Look]
    policy: Mapping[str, Any]
    replicas: int = 4
    history: ScalingHistory = SEEN_FOR_LONG
    capacity: LearnedCapacity | None = None


def counts(story: ShortStory, policy: Mapping[str, Any] | None = None) -> list[int]:
    """The desired count at each look."""
    parameters = a_policy(**{**story.policy, **(policy or {})})
    history, current, now_seconds, desired = story.history, story.replicas, NOW, []
    for look in story.looks:
        now_seconds += look.seconds
        decision = decide(
            replace(
                a_decision_input(
                    parameters, look.sees(current), replicas=current, history=history, now_seconds=now_seconds
                ),
                learned_cold_start=FOUR_MINUTES,
                learned_capacity=story.capacity,
                forecast=look.forecast,
            )
        )
        history = decision.next_history
        if decision.desired_replicas != current:
            history = with_rescale(history, parameters.behavior, now_seconds, current, decision.desired_replicas)
            current = decision.desired_replicas
        desired.append(current)
    return desired


# Gaps between tokens.
GAPS = {"signals": {"interTokenLatencyDivergence": {}, "kvCache": {}}, "objectives": {}, "maxReplicas": 20}


def gaps(
    *ratios: float, median: float = 0.03, usage: float = 0.65, missed: float = 0.02, tokens: float = 500.0
) -> list[Look]:
    """A look a minute at gaps of which the 99th percentile is so many times the median."""

    def look(place: int, ratio: float) -> Look:
        def sees(replicas: int) -> MetricsObservation:
            return an_observation(
                {
                    Signal.KV_CACHE_USAGE: an_even_signal(usage * replicas, replicas),
                    Signal.GENERATION_TOKENS: an_even_signal(tokens, replicas),
                },
                ready=replicas,
                latency=PoolLatency(
                    inter_token_latency_p50_seconds=median,
                    inter_token_latency_p99_seconds=median * ratio,
                    outside_objectives_share=missed,
                    measured_at_seconds=NOW + 60.0 * place,
                ),
            )

        return Look(sees, seconds=60.0)

    return [look(place, ratio) for place, ratio in enumerate(ratios, start=1)]


def constant(module: object, name: str, value: object) -> TakeOut:
    return lambda monkeypatch: monkeypatch.setattr(module, name, value)


# Work that arrives, of a pool whose replicas can be given one request a second each.
WORK = {"objectives": {}, "signals": {"kvCache": {}}, "maxReplicas": 40}
ONE_A_SECOND = LearnedCapacity(16_000, 300 / (0.7 - 0.1), 400_000, safe_utilization=0.7)


def arrivals(*minute_and_half: tuple[float, float]) -> list[Look]:
    """Requests a second over the last minute and over the last half of it, look by look."""

    def look(minute: float, half: float) -> Look:
        def sees(replicas: int) -> MetricsObservation:
            return an_observation(
                {
                    Signal.REQUESTS_ARRIVED: an_even_signal(minute, replicas),
                    Signal.REQUESTS_ARRIVED_RECENTLY: an_even_signal(half, replicas),
                },
                ready=replicas,
                prompt_tokens_per_request=2000.0,
                generation_tokens_per_request=300.0,
            )

        return Look(sees)

    return [look(minute, half) for minute, half in minute_and_half]


# Forecasts of tokens a second, of a pool whose replicas may be given 5000 each.
PENDING = {"query": "sum(pending)", "perReplica": 16}
FORESEEN: Mapping[str, Any] = {
    "signals": {"tokenRate": {"perReplicaPerSecond": 5000}},
    "forecast": {"mode": "Active", "quantilePercent": 50},
    "maxReplicas": 40,
}


def tokens_arrive(tokens_per_second: float, forecast: Forecast | None, times: int = 1) -> list[Look]:
    def sees(replicas: int) -> MetricsObservation:
        signals: dict[Signal, PoolSignal] = {
            Signal.PROMPT_TOKENS: an_even_signal(0.9 * tokens_per_second, replicas),
            Signal.GENERATION_TOKENS: an_even_signal(0.1 * tokens_per_second, replicas),
        }
        return an_observation(signals, ready=replicas)

    return [Look(sees, forecast=forecast)] * times


def foreseen(*largest: float, age_seconds: float = 0.0) -> Forecast:
    """Medians of the largest load of the first bins of a minute; the 0.9 quantile is twice as much."""
    window = tuple((each, 2 * each) for each in largest)
    skills = (OPEN,) * len(largest)
    return Forecast(NOW - age_seconds, 60, (0.5, 0.9), largest, window, window, largest[0], False, skills)


# Pools that are seen in part: the KV caches of the replicas that are seen, in shares; the rest are unseen.
KV = {"signals": {"kvCache": {}}, "maxReplicas": 40}


def caches(*seen: float, unseen: int = 0, times: int = 1, seconds: float = 15.0) -> list[Look]:
    def sees(replicas: int) -> MetricsObservation:
        usage = a_signal(*seen, *[None] * unseen)
        return an_observation({Signal.KV_CACHE_USAGE: usage}, ready=len(seen) + unseen, fresh=len(seen))

    return [Look(sees, seconds=seconds)] * times


def evenly(usage: float, times: int = 1, seconds: float = 15.0) -> list[Look]:
    """So many replicas' worth of KV cache, whatever the number of replicas."""

    def sees(replicas: int) -> MetricsObservation:
        even = an_even_signal(min(usage, float(replicas)), replicas)
        return an_observation({Signal.KV_CACHE_USAGE: even}, ready=replicas)

    return [Look(sees, seconds=seconds)] * times


LULL = ShortStory([*evenly(1.0, times=10), *evenly(6.0, times=2)], KV, replicas=8)
ASLEEP = {**FORESEEN, "minReplicas": 0, "signals": {**FORESEEN["signals"], "pendingRequests": PENDING}}


def idle(place: int) -> Look:
    """Nobody asks anything; the forecast is renewed each time, and says a little."""

    def sees(replicas: int) -> MetricsObservation:
        nothing = an_even_signal(0.0, replicas)
        signals = (Signal.RUNNING_REQUESTS, Signal.REQUESTS_FINISHED, Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS)
        queries = {"pendingRequests": 0.0}
        return an_observation(dict.fromkeys(signals, nothing), ready=replicas, queries=queries)

    return Look(sees, forecast=foreseen(*[200] * 8, age_seconds=-15.0 * place))


IDLE = [idle(place) for place in range(1, 70)]


@dataclass(frozen=True)
class Default:
    """The counts of a short story with a rule and without it."""

    story: ShortStory
    goes_wrong: Callable[[list[int], list[int]], bool]  # (with the rule, without it)
    policy: Mapping[str, Any] | None = None
    take_out: TakeOut = lambda monkeypatch: None
    without: ShortStory | None = None  # another story in place of another rule


DEFAULTS = (
    pytest.param(
        Default(
            ShortStory(gaps(*[6.0] * 6, usage=0.3, missed=0.001), GAPS),
            lambda kept, out: set(kept) == {4} and max(out) >= 10,
            take_out=constant(divergence, "_corroboration", lambda decision_input, metrics: "nothing"),
        ),
        id="gaps diverge only with load and misses: else one long prompt after the other grows the pool without end",
    ),
    pytest.param(
        Default(
            ShortStory(gaps(*[6.0] * 3, missed=0.004), GAPS),
            lambda kept, out: set(kept) == {4} and max(out) > 4,
            take_out=constant(divergence, "MISSED_SHARE", 0.0),
        ),
        id="0.5 % of the requests outside the objectives: below that nobody is the worse for uneven gaps",
    ),
    pytest.param(
        Default(
            ShortStory(gaps(*[6.0] * 3, usage=0.5), GAPS),
            lambda kept, out: set(kept) == {4} and max(out) > 4,
            take_out=constant(divergence, "FULL_KV_CACHE", 0.0),
        ),
        id="a KV cache that is 60 % full: below that it is no want of replicas",
    ),
    pytest.param(
        Default(
            ShortStory(gaps(*[6.0] * 3, median=0.010), GAPS),
            lambda kept, out: set(kept) == {4} and max(out) > 4,
            take_out=constant(divergence, "LEAST_MEDIAN_SECONDS", 0.0),
        ),
        id="a median of 25 ms: below that the ratio is one of the first buckets, and nobody waits for tokens",
    ),
    pytest.param(
        Default(
            ShortStory(gaps(*[6.0] * 3, tokens=1.0), GAPS),
            lambda kept, out: set(kept) == {4} and max(out) > 4,
            take_out=constant(divergence, "LEAST_TOKENS_PER_SECOND", 0.0),
        ),
        id="200 gaps: of fewer the 99th percentile is the worst two",
    ),
    pytest.param(
        Default(
            ShortStory(gaps(1.5, 6.0, 1.5, 6.0, 1.5), GAPS),
            lambda kept, out: set(kept) == {4} and max(out) > 4,
            take_out=constant(divergence, "MEASUREMENTS_TO_BELIEVE", 1),
        ),
        id="two measurements in a row: one alone is one long prompt",
    ),
    pytest.param(
        Default(
            ShortStory(gaps(3.2, 3.2, 2.6, 3.2, 2.6, 3.2, 2.6, 3.2), GAPS),
            lambda kept, out: max(kept) > max(out) == 5,
            take_out=constant(divergence, "CONVERGED_RATIO", 3.0),
        ),
        id="it ends below 2.2: with one threshold gaps that waver around it are believed once and then never",
    ),
    pytest.param(
        Default(
            ShortStory(gaps(*[2.8] * 4), GAPS),
            lambda kept, out: set(kept) == {4} and max(out) > 4,
            policy={"signals": {"interTokenLatencyDivergence": {"ratio": 2.5}, "kvCache": {}}},
        ),
        id="a ratio of 3: with chunked prefill gaps of 2.8 are ordinary",
    ),
    pytest.param(
        Default(
            ShortStory(gaps(*[30.0] * 3), GAPS),
            lambda kept, out: max(kept) <= 6 and max(out) >= 8,
            take_out=constant(divergence, "LARGEST_GROWTH", math.inf),
        ),
        id="a fifth more at most: the ratio does not say how much load there is, and would double the pool",
    ),
    pytest.param(
        Default(
            ShortStory(arrivals(*[(4.0, 4.0), (4.0, 4.4), (4.0, 3.6)] * 4), WORK, capacity=ONE_A_SECOND),
            lambda kept, out: set(kept) == {4} and max(out) == 5,
            take_out=constant(work_rate, "RECENT_SHARE", 1.0),
        ),
        id="half a minute counts nine tenths: in full its noise of a tenth is a replica",
    ),
    pytest.param(
        Default(
            ShortStory(arrivals((4.0, 4.0), (5.0, 6.0), (6.0, 8.0)), WORK, capacity=ONE_A_SECOND),
            lambda kept, out: kept == [4, 6, 8] and out == [4, 5, 6],
            take_out=constant(work_rate, "RECENT_SHARE", 0.0),
        ),
        id="half a minute counts at all: without it a step is seen as a half",
    ),
    pytest.param(
        Default(
            ShortStory(tokens_arrive(20_000, foreseen(*[20_000] * 8)), {**FORESEEN, "forecast": {"mode": "Active"}}),
            lambda kept, out: kept == [6] and out == [4],
            policy={"forecast": {"mode": "Active", "quantilePercent": 50}},
        ),
        id="70 % of the forecast: at the median nothing stands ready for a rise that is as likely as not",
    ),
    pytest.param(
        Default(
            ShortStory(tokens_arrive(20_000, foreseen(*[20_000] * 5, *[30_000] * 3)), FORESEEN),
            lambda kept, out: kept == [6] and out == [4],
            policy={"forecast": {"mode": "Active", "quantilePercent": 50, "bufferSeconds": 0}},
        ),
        id="60 s beside the cold start: without them what is needed in five minutes is ordered when it is too late",
    ),
    pytest.param(
        Default(
            ShortStory(IDLE, ASLEEP, replicas=1),
            lambda kept, out: kept[-1] == 0 and out[-1] == 1,
            take_out=constant(forecasts, "LEAST_SHARE_OF_A_REPLICA", 0.0),
        ),
        id="a tenth of a replica: a forecast of less would keep a pool awake that nobody asks anything",
    ),
    pytest.param(
        Default(
            ShortStory(tokens_arrive(20_000, foreseen(*[60_000] * 8, age_seconds=600.0)), FORESEEN),
            lambda kept, out: kept == [4] and out == [8],
            take_out=constant(forecasts, "STALE_AFTER_BINS", math.inf),
        ),
        id="a forecast is stale after three bins: else that of an hour ago goes on asking",
    ),
    pytest.param(
        Default(
            ShortStory(caches(*[0.1] * 8, unseen=2, times=30), KV, replicas=10),
            lambda kept, out: set(kept) == {10} and min(out) <= 4,
            take_out=constant(sight, "FULL_COVERAGE", 0.0),
        ),
        id="nine in ten replicas: with eight seen, a pool whose two others have all the load is cut to four",
    ),
    pytest.param(
        Default(
            ShortStory(
                caches(*[0.8] * 4, unseen=6, times=20),
                {**KV, "missingData": {"fallback": {"replicas": 20}}},
                replicas=10,
            ),
            lambda kept, out: max(kept) == 20 and max(out) == 10,
            take_out=constant(sight, "LEAST_COVERAGE", 0.0),
        ),
        id="half of the replicas: with fewer the rest is a guess, and the fallback is what was meant for that",
    ),
    pytest.param(
        Default(
            ShortStory(caches(*[0.9] * 6, unseen=4, times=3), KV, replicas=10),
            lambda kept, out: set(kept) == {10} and max(out) > 10,
            take_out=constant(replica_signals, "LARGEST_EXTRAPOLATION", math.inf),
        ),
        id="a quarter for unseen replicas: else six busy ones speak for four that have nothing to do",
    ),
    pytest.param(
        Default(
            ShortStory(evenly(9.0, times=8), KV),
            lambda kept, out: kept[-1] == 11 and set(out) == {4},
            policy={"signals": {"kvCache": {"headroomPercent": 0}}},
        ),
        id="15 % of the KV cache are left free: without headroom caches that are full ask for nothing more",
    ),
    pytest.param(
        Default(
            ShortStory(evenly(2.0, times=36), KV, replicas=20),
            lambda kept, out: kept[-1] == 3 and out[-1] > 10,
            policy={"behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}},
        ),
        id="no rate for shrinking but the window: at one replica a minute an idle fleet is paid for longer",
    ),
    pytest.param(
        Default(
            ShortStory(
                [*evenly(6.0), *evenly(1.0, seconds=600.0), *evenly(1.0, times=10), *evenly(6.0, times=2)],
                KV,
                replicas=8,
            ),
            lambda kept, out: min(kept) == 8 and min(out) < 4,
            take_out=constant(histories, "LONGEST_GAP_SECONDS", math.inf),
        ),
        id="120 s without a decision: else a lull at the end of ten unseen minutes is taken for all of them",
    ),
    pytest.param(
        Default(
            replace(LULL, history=a_history(complete_for_seconds=0.0, consecutive_good_readings=3)),
            lambda kept, out: min(kept) == 8 and min(out) < 4,
            without=LULL,
        ),
        id="a window is seen after a restart: a history that claims to be whole gives up what a lull does not need",
    ),
)


@pytest.mark.parametrize("default", DEFAULTS)
def test_without_it_the_story_goes_wrong(default: Default, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = counts(default.story)
    default.take_out(monkeypatch)
    out = counts(default.without or default.story, default.policy)
    assert default.goes_wrong(kept, out), f"\nwith:    {kept}\nwithout: {out}"
