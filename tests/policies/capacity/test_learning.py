"""What ticks teach of a pool's capacity, and which of them teach nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from policies.capacity.change import Suspicion, slowdown
from policies.capacity.fit import fit
from policies.capacity.learned_capacity import LearnedCapacity
from policies.capacity.learning import CapacityEvidence, learn_capacity
from policies.capacity.memory import CapacityMemory, SmoothedRates
from policies.capacity.objectives import LatencyObjectives
from policies.capacity.samples import LoadSample, total_weight, with_sample
from policies.capacity.solve import TypicalRequest, expected_capacity, load_of, solve
from policies.capacity.utilization import safe_utilization
from policies.observation import MetricsObservation, PoolLatency, ReplicaCounts
from policies.signals import Signal
from tests.builders import NOW, a_blackout, an_even_signal, an_observation, without
from tests.policies.capacity.laws import REQUEST, a_law, exactly, measured

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
    assert (after.trim == learned.trim) == is_kept
    assert after.begun_because == because


def test_a_pool_that_could_not_tell_what_it_is_made_of_keeps_what_it_has_learned() -> None:
    learned = watched(20.0, template=None)
    after = learn_capacity(learned, CapacityEvidence(NOW + 1200.0, a_blackout(), AT_REST, OBJECTIVES, "t1"))
    assert (after.capacity, after.template) == (learned.capacity, "t1")


@pytest.mark.parametrize(
    ("evidence", "direction"),
    [
        pytest.param({"decoding": 44.0, "seen": {"outside": 0.0}}, +1, id="calm under load"),
        pytest.param({"decoding": 3.0, "seen": {"outside": 0.0}}, 0, id="calm with little to do"),
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
    learned = watched(20.0, decoding=44.0, seen={"outside": 0.003})
    assert learned.trim == pytest.approx(1.0)
    after = watched(10.0, learned, start=NOW + 1200.0, **evidence)
    change = after.trim - learned.trim
    assert (change > 1e-6) - (change < -1e-6) == direction


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


# A pool that has been watched for an hour without a change, and nothing was taken up of it yet.
STEADY = CapacityMemory(NOW - 3600.0, template="t1", ready_replicas=READY, steady_since_seconds=NOW - 3600.0)
SECONDS = exactly(TRUTH).seconds(load_of(20.0, REQUEST))
GENERATED = 20.0 / SECONDS
# Twenty sequences decode on each replica: 20 / SECONDS tokens a second, of requests of 2000 and 300 tokens.
SAMPLE = LoadSample(1.0, SECONDS, GENERATED, GENERATED / 300.0, 2300.0, 2000.0, 0.0)


def one_look(
    memory: CapacityMemory = STEADY,
    change: Callable[[MetricsObservation], MetricsObservation] = lambda seen: seen,
    *,
    measured_at: float = NOW,
    **evidence: Any,
) -> CapacityMemory:
    """The memory after one look at four replicas with twenty sequences each, of which `change` changes something."""
    metrics = change(at_load(20.0, measured_at))
    return learn_capacity(memory, CapacityEvidence(NOW, metrics, AT_REST, OBJECTIVES, "t1", **evidence))


def with_totals(**totals: float) -> Callable[[MetricsObservation], MetricsObservation]:
    signals = {Signal[name.upper()]: an_even_signal(total, READY) for name, total in totals.items()}
    return lambda seen: replace(seen, signals={**seen.signals, **signals})


def with_latency(**latency: float) -> Callable[[MetricsObservation], MetricsObservation]:
    return lambda seen: replace(seen, latency=replace(seen.latency, **latency))


def absent(signal: Signal) -> Callable[[MetricsObservation], MetricsObservation]:
    return lambda seen: without(seen, signal)


RUNNING = 4 * 20.0


@pytest.mark.parametrize(
    ("change", "sample"),
    [
        pytest.param(lambda seen: seen, SAMPLE, id="tokens and requests of the mean replica"),
        pytest.param(
            with_totals(kv_cache_used_tokens=RUNNING * 1000.0),
            replace(SAMPLE, context_tokens=1000.0),
            id="a running sequence holds a thousand tokens by the KV cache",
        ),
        pytest.param(
            absent(Signal.KV_CACHE_USED_TOKENS), SAMPLE, id="no KV geometry: its whole prompt and its whole answer"
        ),
        pytest.param(with_totals(kv_cache_used_tokens=0.0), SAMPLE, id="nor a geometry that shows nothing in use"),
        pytest.param(with_totals(running_requests=0.0), SAMPLE, id="nor one of which nobody seems to run"),
        pytest.param(absent(Signal.RUNNING_REQUESTS), SAMPLE, id="nor where nobody tells how many run"),
        pytest.param(
            lambda seen: replace(seen, prefix_cache_hit_share=0.25),
            replace(SAMPLE, prompt_tokens=1500.0, cached_tokens=500.0),
            id="a quarter of the prompts is found in the prefix cache",
        ),
        pytest.param(
            lambda seen: replace(seen, prefix_cache_hit_share=None), SAMPLE, id="an unknown share is as good as none"
        ),
        pytest.param(
            lambda seen: replace(seen, prefix_cache_hit_share=1.0),
            replace(SAMPLE, prompt_tokens=1.0, cached_tokens=1999.0),
            id="at least the last token of a prompt is computed",
        ),
        pytest.param(
            lambda seen: replace(seen, prompt_tokens_per_request=1000.0, generation_tokens_per_request=600.0),
            replace(SAMPLE, prompts_per_second=GENERATED / 150.0, prompt_tokens=1000.0),
            id="the means over requests count before the rates",
        ),
        pytest.param(
            lambda seen: replace(seen, prompt_tokens_per_request=None),
            SAMPLE,
            id="before they are known, the rates of tokens over that of requests",
        ),
        pytest.param(
            lambda seen: replace(seen, prompt_tokens_per_request=1.0, generation_tokens_per_request=1.0),
            replace(SAMPLE, prompts_per_second=GENERATED / 300.0 * 2000.0, prompt_tokens=1.0),
            id="requests of a token and an answer of one",
        ),
    ],
)
def test_what_one_minute_is_remembered_as(
    change: Callable[[MetricsObservation], MetricsObservation], sample: LoadSample
) -> None:
    (found,) = one_look(change=change).samples
    for name in LoadSample.__slots__:
        assert getattr(found, name) == pytest.approx(getattr(sample, name), rel=1e-8), name


@pytest.mark.parametrize(
    ("memory", "change", "is_taken"),
    [
        pytest.param(
            STEADY, lambda seen: replace(seen, ready_replicas=10, fresh_replicas=9), True, id="nine of ten are seen"
        ),
        pytest.param(
            replace(STEADY, steady_since_seconds=NOW - 240.0),
            lambda seen: seen,
            True,
            id="the youngest replica is two minutes old at the beginning of the two minutes that latencies tell of",
        ),
        pytest.param(
            replace(STEADY, steady_since_seconds=NOW - 239.0), lambda seen: seen, False, id="and was a second younger"
        ),
        pytest.param(
            STEADY, with_totals(running_requests=90.0, waiting_requests=10.0), True, id="a tenth of the requests waits"
        ),
        pytest.param(
            STEADY, with_totals(running_requests=90.0, waiting_requests=10.1), False, id="more than a tenth waits"
        ),
        pytest.param(STEADY, absent(Signal.WAITING_REQUESTS), True, id="nobody tells how many wait"),
        pytest.param(
            STEADY, with_latency(mean_time_per_output_token_seconds=0.05), True, id="the mean is at the objective"
        ),
        pytest.param(
            STEADY, with_latency(mean_time_per_output_token_seconds=0.0501), False, id="the mean is beyond it"
        ),
        pytest.param(
            STEADY,
            lambda seen: with_totals(generation_tokens=16.0)(
                with_latency(mean_time_per_output_token_seconds=0.05)(seen)
            ),
            True,
            id="one sequence decodes for a fifth of the time",
        ),
        pytest.param(
            STEADY,
            lambda seen: with_totals(generation_tokens=15.6)(
                with_latency(mean_time_per_output_token_seconds=0.05)(seen)
            ),
            False,
            id="for less than a fifth",
        ),
        pytest.param(
            STEADY, lambda seen: replace(seen, prompt_tokens_per_request=0.5), False, id="prompts without a token"
        ),
        pytest.param(
            STEADY, lambda seen: replace(seen, generation_tokens_per_request=0.5), False, id="answers without a token"
        ),
        pytest.param(
            STEADY,
            lambda seen: with_totals(requests_finished=0.0)(replace(seen, prompt_tokens_per_request=None)),
            False,
            id="no request has finished: of what size they are is not known",
        ),
        pytest.param(replace(STEADY, measured_at_seconds=NOW - 45.0), lambda seen: seen, True, id="after 45 s"),
        pytest.param(replace(STEADY, measured_at_seconds=NOW - 44.0), lambda seen: seen, False, id="not after 44 s"),
    ],
)
def test_where_the_line_is(
    memory: CapacityMemory, change: Callable[[MetricsObservation], MetricsObservation], is_taken: bool
) -> None:
    assert len(one_look(memory, change).samples) == is_taken


RATES = SmoothedRates(NOW - 30.0, prompt_tokens=100.0, generated_tokens=10.0, requests=1.0, context_tokens=500.0)


@pytest.mark.parametrize(
    ("before", "change", "context_tokens"),
    [
        pytest.param(500.0, with_totals(kv_cache_used_tokens=RUNNING * 1000.0), 816.06, id="it moves like the rates"),
        pytest.param(None, with_totals(kv_cache_used_tokens=RUNNING * 1000.0), 1000.0, id="the first that is seen"),
        pytest.param(500.0, absent(Signal.KV_CACHE_USED_TOKENS), 500.0, id="the last that was seen"),
        pytest.param(None, absent(Signal.KV_CACHE_USED_TOKENS), None, id="never seen"),
    ],
)
def test_rates_are_smoothed_over_half_a_minute(
    before: float | None, change: Callable[[MetricsObservation], MetricsObservation], context_tokens: float | None
) -> None:
    """After 30 s they have gone 1 - 1 / e of the way."""
    totals = with_totals(prompt_tokens=4 * 200.0, generation_tokens=4 * 30.0, requests_finished=4 * 2.0)
    after = one_look(replace(STEADY, rates=replace(RATES, context_tokens=before)), lambda seen: change(totals(seen)))
    assert after.rates is not None
    assert after.rates.at_seconds == NOW
    assert after.rates.prompt_tokens == pytest.approx(163.21, abs=0.01)
    assert after.rates.generated_tokens == pytest.approx(22.642, abs=0.001)
    assert after.rates.requests == pytest.approx(1.6321, abs=0.0001)
    assert after.rates.context_tokens == (context_tokens and pytest.approx(context_tokens, abs=0.01))


@pytest.mark.parametrize(
    "signal",
    [
        pytest.param(Signal.PROMPT_TOKENS, id="prompt tokens"),
        pytest.param(Signal.GENERATION_TOKENS, id="generated tokens"),
        pytest.param(Signal.REQUESTS_FINISHED, id="requests"),
    ],
)
def test_without_one_of_the_rates_there_are_none(signal: Signal) -> None:
    assert one_look(replace(STEADY, rates=RATES), absent(signal)).rates is None


def test_a_measurement_of_the_future_is_one_of_now() -> None:
    assert one_look(measured_at=NOW + 100.0).measured_at_seconds == NOW


MEASURED = tuple(measured(TRUTH, decoding, weight=1.0) for decoding in (10.0, 20.0))
LEARNED = replace(STEADY, samples=MEASURED, laws=fit(MEASURED))


@pytest.mark.parametrize(
    ("memory", "kv_cache_tokens", "change"),
    [
        pytest.param(LEARNED, 1e6, lambda seen: seen, id="two windows are enough"),
        pytest.param(
            replace(LEARNED, samples=(replace(MEASURED[0], weight=4.0),), laws=fit(MEASURED[:1])),
            1e6,
            lambda seen: seen,
            id="doubt is taken off",
        ),
        pytest.param(LEARNED, 11_500.0, with_totals(kv_cache_capacity_tokens=4 * 11_500.0), id="a small KV cache"),
        pytest.param(LEARNED, None, absent(Signal.KV_CACHE_CAPACITY_TOKENS), id="a KV cache of unknown size"),
        pytest.param(
            LEARNED, 1e6, with_totals(kv_cache_used_tokens=4 * 60_000.0), id="a minute of long requests says little"
        ),
    ],
)
def test_the_capacity_is_what_the_laws_say_with_doubt_taken_off(
    memory: CapacityMemory, kv_cache_tokens: float | None, change: Callable[[MetricsObservation], MetricsObservation]
) -> None:
    found = expected_capacity(memory.laws, TypicalRequest(2000.0, 0.0, 300.0, 2300.0), OBJECTIVES, kv_cache_tokens)
    error = min(found.relative_error, 0.5)
    doubt = 1.0 + max(0.0, error - 0.10)
    after = one_look(
        memory, lambda seen: change(with_latency(outside_objectives_share=0.003)(seen)), is_rolling_out=True
    )
    assert after.samples == memory.samples
    assert after.capacity is not None
    assert (after.capacity.law, after.capacity.samples) == (memory.laws[0].law.name, total_weight(memory.samples))
    assert after.capacity.safe_utilization == safe_utilization(found.safe_share, memory.trim)
    assert after.capacity.uncertainty == pytest.approx(error)
    assert after.capacity.prefill_tokens_per_second == pytest.approx(found.prefill_tokens_per_second / doubt)
    assert after.capacity.decode_tokens_per_second == pytest.approx(found.decode_tokens_per_second / doubt)
    assert after.capacity.tokens_in_flight == pytest.approx(found.tokens_in_flight / doubt)


@pytest.mark.parametrize(
    "memory",
    [
        pytest.param(replace(LEARNED, samples=(replace(MEASURED[0], weight=1.9),)), id="fewer than two windows"),
        pytest.param(replace(LEARNED, laws=()), id="no law"),
    ],
)
def test_what_was_learned_stays_where_nothing_can_be_said_anew(memory: CapacityMemory) -> None:
    before = LearnedCapacity(16_000.0, 750.0, 54_000.0, safe_utilization=0.7)
    after = one_look(
        replace(memory, capacity=before), with_latency(outside_objectives_share=0.003), is_rolling_out=True
    )
    assert after.capacity == before


FASTER = with_latency(mean_time_per_output_token_seconds=0.6 * SECONDS)
DOZEN = tuple(replace(sample, weight=6.0) for sample in MEASURED)
KNOWN = replace(LEARNED, samples=DOZEN, laws=fit(DOZEN))


def test_a_window_that_was_foretold_is_taken_up() -> None:
    after = one_look(LEARNED, with_latency(mean_time_per_output_token_seconds=SECONDS))
    expected = with_sample(MEASURED, replace(SAMPLE, step_seconds=SECONDS))
    assert [sample.weight for sample in after.samples] == pytest.approx([sample.weight for sample in expected])
    assert after.laws == fit(after.samples)
    assert after.suspicion == Suspicion()


def test_a_window_that_was_foretold_otherwise_is_left_aside() -> None:
    after = one_look(KNOWN, FASTER)
    assert (after.samples, after.laws) == (KNOWN.samples, KNOWN.laws)
    assert [window.step_seconds for window in after.suspicion.windows] == [0.6 * SECONDS]


def test_of_replicas_of_which_little_is_known_every_window_is_taken_up() -> None:
    """Eleven windows and a half, and one that waits since there was more."""
    samples = tuple(replace(sample, weight=5.75) for sample in MEASURED)
    waits = replace(SAMPLE, step_seconds=0.6 * SECONDS)
    after = one_look(replace(KNOWN, samples=samples, suspicion=Suspicion(2.5, (waits,))), FASTER)
    assert after.suspicion == Suspicion()
    assert total_weight(after.samples) == pytest.approx(13.5, abs=0.2)


def test_after_a_restart_the_laws_are_fitted_to_what_was_kept_before_a_window_is_judged() -> None:
    after = one_look(replace(KNOWN, laws=()), FASTER)
    assert after.suspicion.deviations > 0.0
    assert (after.suspicion, after.laws) == (one_look(KNOWN, FASTER).suspicion, KNOWN.laws)


@pytest.mark.parametrize(
    ("pace", "deviations", "because"),
    [
        pytest.param(0.6, 4.9, "its replicas have become faster", id="faster"),
        pytest.param(1.5, -4.9, "its replicas have become slower", id="slower"),
    ],
)
def test_what_was_known_of_replicas_that_have_changed_is_brought_to_their_pace_and_counts_little(
    pace: float, deviations: float, because: str
) -> None:
    new = replace(SAMPLE, step_seconds=pace * SECONDS)
    memory = replace(KNOWN, suspicion=Suspicion(deviations, (new, new)))
    after = one_look(memory, with_latency(mean_time_per_output_token_seconds=pace * SECONDS))
    times = slowdown(KNOWN.laws, (new, new, new))
    expected = tuple(sample.slower(times, 0.02) for sample in DOZEN)
    for window in (new, new, new):
        expected = with_sample(expected, window)
    assert [sample.weight for sample in after.samples] == pytest.approx([sample.weight for sample in expected])
    assert [sample.step_seconds for sample in after.samples] == pytest.approx([each.step_seconds for each in expected])
    assert after.laws == fit(after.samples)
    assert after.suspicion == Suspicion()
    assert (after.begun_because, after.begun_at_seconds) == (because, after.measured_at_seconds)


def test_windows_that_only_show_the_laws_to_be_wrong_at_a_new_load_are_taken_up_with_the_others() -> None:
    new = measured(TRUTH, 60.0, weight=1.0)
    after = one_look(
        replace(KNOWN, suspicion=Suspicion(9.0, (new, new))),
        with_latency(mean_time_per_output_token_seconds=SECONDS),
    )
    assert after.suspicion == Suspicion()
    assert after.begun_because == ""
    assert total_weight(after.samples) == pytest.approx(15.0, abs=0.5)


def test_the_first_window_is_not_judged() -> None:
    assert one_look().suspicion == Suspicion()
    assert math.isclose(total_weight(one_look().samples), 1.0)
