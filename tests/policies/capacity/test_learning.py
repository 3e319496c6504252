"""What ticks teach of a pool's capacity, and which of them teach nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policies.capacity.learned_capacity import SAFE_UTILIZATION_PRIOR
from policies.capacity.learning import CapacityEvidence, learn_capacity
from policies.capacity.memory import CapacityMemory
from policies.capacity.objectives import LatencyObjectives
from policies.capacity.samples import total_weight
from policies.capacity.solve import load_of, solve
from policies.observation import MetricsObservation, PoolLatency, ReplicaCounts
from policies.signals import Signal
from tests.builders import NOW, a_blackout, an_even_signal, an_observation, without
from tests.policies.capacity.laws import REQUEST, a_law, exactly

TRUTH = a_law(speed=1.3)
OBJECTIVES = LatencyObjectives()
READY = 4
AT_REST = ReplicaCounts(READY, READY, READY)


def at_load(decoding: float, measured_at: float, *, waiting: float = 0.0, outside: float = 0.0, **more: Any) -> Any:
    """What is seen of four replicas with so many sequences decoding on each."""
    seconds = exactly(TRUTH).seconds(load_of(decoding, REQUEST))
    generated = READY * decoding / seconds
    requests = generated / REQUEST.generated_tokens
    totals = {
        Signal.RUNNING_REQUESTS: READY * decoding,
        Signal.WAITING_REQUESTS: waiting,
        Signal.KV_CACHE_USED_TOKENS: READY * decoding * REQUEST.context_tokens,
        Signal.KV_CACHE_CAPACITY_TOKENS: READY * 1e6,
        Signal.PROMPT_TOKENS: requests * REQUEST.computed_prompt_tokens,
        Signal.GENERATION_TOKENS: generated,
        Signal.REQUESTS_FINISHED: requests,
        Signal.REQUESTS_ARRIVED: requests,
        Signal.REQUESTS_ARRIVED_RECENTLY: requests,
    }
    latency = PoolLatency(
        mean_time_per_output_token_seconds=seconds, outside_objectives_share=outside, measured_at_seconds=measured_at
    )
    return an_observation(
        {signal: an_even_signal(total, READY) for signal, total in totals.items()},
        ready=READY,
        latency=latency,
        prompt_tokens_per_request=REQUEST.computed_prompt_tokens,
        generation_tokens_per_request=REQUEST.generated_tokens,
        prefix_cache_hit_share=0.0,
        **more,
    )


def watched(
    minutes: float = 20.0, memory: CapacityMemory | None = None, start: float = NOW, **evidence: Any
) -> CapacityMemory:
    """The memory after ticks of 15 s under a load that wanders; `metrics` changes what is seen."""
    change = evidence.pop("metrics", lambda seen: seen)
    decoding = evidence.pop("decoding", None)
    seen = evidence.pop("seen", {})
    for tick in range(int(minutes * 4)):
        now = start + 15.0 * tick
        load = decoding or 10.0 + 3.0 * (tick // 12 % 8)
        metrics = change(at_load(load, start + 60.0 * (tick // 4), **seen))
        counts = evidence.get("replicas", AT_REST)
        tick_evidence = CapacityEvidence(
            now,
            metrics,
            counts(tick) if callable(counts) else counts,
            OBJECTIVES,
            evidence.get("template", "t1"),
            evidence.get("is_rolling_out", False),
        )
        memory = learn_capacity(memory, tick_evidence)
    assert memory is not None
    return memory


def test_the_capacity_of_a_watched_pool_is_that_of_its_replicas() -> None:
    capacity = watched(60.0).capacity
    expected = solve(exactly(TRUTH), REQUEST, OBJECTIVES, 1e6)
    assert capacity is not None
    found = 1.0 / capacity.work_seconds(REQUEST.computed_prompt_tokens, REQUEST.generated_tokens)
    assert found == pytest.approx(expected.requests_per_second, rel=0.08)
    assert capacity.tokens_in_flight == pytest.approx(expected.tokens_in_flight, rel=0.15)
    assert capacity.samples > 20


def test_it_is_known_six_minutes_after_the_first_look() -> None:
    assert watched(5.0).capacity is None
    assert watched(6.5).capacity is not None


@pytest.mark.parametrize(
    "evidence",
    [
        pytest.param({"is_rolling_out": True}, id="old and new replicas together"),
        pytest.param(
            {"replicas": lambda tick: ReplicaCounts(9, 9, 1 + tick // 12)}, id="a replica became ready 3 min ago"
        ),
        pytest.param({"seen": {"fresh": 3}}, id="a quarter of the replicas is not seen"),
        pytest.param({"seen": {"waiting": 40.0}}, id="requests queue"),
        pytest.param({"decoding": 80.0}, id="the pool as a whole breaks its objective"),
        pytest.param({"metrics": lambda seen: replace(seen, latency=PoolLatency())}, id="no latencies"),
        pytest.param({"metrics": lambda seen: without(seen, Signal.GENERATION_TOKENS)}, id="no rates"),
        pytest.param({"metrics": lambda seen: a_blackout()}, id="nothing at all is seen"),
    ],
)
def test_what_teaches_nothing(evidence: dict[str, Any]) -> None:
    memory = watched(20.0, **evidence)
    assert memory.samples == ()
    assert memory.capacity is None


def test_latencies_that_are_no_newer_are_taken_up_once() -> None:
    def never_newer(seen: MetricsObservation) -> MetricsObservation:
        measured_at = min(seen.latency.measured_at_seconds or 0.0, NOW + 300.0)
        return replace(seen, latency=replace(seen.latency, measured_at_seconds=measured_at))

    assert total_weight(watched(20.0, metrics=never_newer).samples) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize(
    ("template", "is_kept", "because"),
    [
        pytest.param("t1", True, "", id="the same replicas"),
        pytest.param(None, True, "", id="nobody says any more what they are"),
        pytest.param("t2", False, "what its pods are made of has changed", id="another image, arguments or shape"),
    ],
)
def test_what_other_replicas_could_do_says_nothing(template: str | None, is_kept: bool, because: str) -> None:
    learned = watched(20.0, seen={"outside": 0.02})
    after = learn_capacity(learned, CapacityEvidence(NOW + 1200.0, a_blackout(), AT_REST, OBJECTIVES, template))
    assert (after.capacity is not None) == is_kept
    assert (after.safe_utilization == learned.safe_utilization) == is_kept
    assert after.begun_because == because


def test_a_pool_that_could_not_tell_what_it_is_made_of_keeps_what_it_has_learned() -> None:
    learned = watched(20.0, template=None)
    after = learn_capacity(learned, CapacityEvidence(NOW + 1200.0, a_blackout(), AT_REST, OBJECTIVES, "t1"))
    assert (after.capacity, after.template) == (learned.capacity, "t1")


@pytest.mark.parametrize(
    ("evidence", "direction"),
    [
        pytest.param({"decoding": 44.0, "seen": {"outside": 0.0}}, +1, id="calm under load"),
        pytest.param({"decoding": 6.0, "seen": {"outside": 0.0}}, 0, id="calm with little to do"),
        pytest.param({"decoding": 44.0, "seen": {"outside": 0.02}}, -1, id="two percent outside"),
        pytest.param(
            {"decoding": 44.0, "seen": {"outside": 0.02}, "replicas": ReplicaCounts(5, 5, 4, starting=1)},
            0,
            id="while a replica starts it is not the utilisation's fault",
        ),
        pytest.param({"decoding": 44.0, "seen": {"outside": 0.02, "waiting": 60.0}}, 0, id="nor while requests queue"),
        pytest.param({"decoding": 44.0, "seen": {"outside": None}}, 0, id="nobody says how many were outside"),
    ],
)
def test_the_safe_utilisation_follows_what_the_requests_got(evidence: dict[str, Any], direction: int) -> None:
    learned = watched(20.0, decoding=44.0, seen={"outside": 0.005})
    assert learned.safe_utilization == pytest.approx(SAFE_UTILIZATION_PRIOR)
    after = watched(10.0, learned, start=NOW + 1200.0, **evidence)
    change = after.safe_utilization - learned.safe_utilization
    assert (change > 1e-6) - (change < -1e-6) == direction
    assert after.capacity is not None
    assert after.capacity.safe_utilization == after.safe_utilization


@pytest.mark.parametrize(
    "decoding", [pytest.param(0.1, id="a night almost without requests"), pytest.param(0.5, id="a quiet night")]
)
def test_a_night_does_not_forget_the_day(decoding: float) -> None:
    learned = watched(60.0)
    after = watched(300.0, learned, start=NOW + 3600.0, decoding=decoding)
    assert after.samples[-1].weight > 0.6 * learned.samples[-1].weight
    assert after.capacity is not None


@pytest.mark.parametrize("back_seconds", [pytest.param(3600.0, id="an hour"), pytest.param(90.0, id="a tick or two")])
def test_a_clock_that_was_set_back_does_not_stop_the_learning(back_seconds: float) -> None:
    learned = watched(20.0)
    after = watched(20.0, learned, start=NOW + 1200.0 - back_seconds)
    assert total_weight(after.samples) > total_weight(learned.samples) + 2.0
    assert after.rates is not None
    assert after.rates.at_seconds < NOW + 2400.0 - back_seconds


@pytest.mark.parametrize("hits", [pytest.param(1.0, id="all"), pytest.param(1.0 - 1e-16, id="all but a rounding")])
def test_prompts_that_are_found_in_the_prefix_cache_can_be_learned_from(hits: float) -> None:
    memory = watched(20.0, metrics=lambda seen: replace(seen, prefix_cache_hit_share=hits))
    assert memory.capacity is not None
    assert memory.capacity.prefill_tokens_per_second > 0
