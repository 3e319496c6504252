"""From measurements to a capacity: is it that of the replica they were made of?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.capacity.fit import fit
from policies.capacity.objectives import LatencyObjectives
from policies.capacity.samples import LoadSample
from policies.capacity.solve import expected_capacity, load_of, solve
from policies.capacity.step_time import StepLoad, StepTimeLaw
from tests.policies.capacity.laws import REQUEST, a_law, exactly, measured

OBJECTIVES = LatencyObjectives()


@pytest.mark.parametrize(
    "truth",
    [
        pytest.param(a_law(), id="a known replica"),
        pytest.param(a_law(speed=1.6), id="a slower accelerator"),
        pytest.param(a_law(speed=0.6), id="a faster one"),
        pytest.param(a_law(prefill=1.4), id="prompts take more than of the known ones"),
        pytest.param(a_law(prefill=0.7), id="prompts take less"),
        pytest.param(a_law(context=2.0), id="contexts take twice as long"),
    ],
)
@pytest.mark.parametrize(
    ("loads", "within"),
    [
        pytest.param((5.0, 10.0, 20.0, 40.0), 0.06, id="load that varied up to half of what it can do"),
        pytest.param((12.0, 15.0), 0.25, id="load that hardly varied, at a sixth of it"),
    ],
)
def test_the_capacity_is_that_of_the_replica(truth: StepTimeLaw, loads: tuple[float, ...], within: float) -> None:
    samples = [measured(truth, decoding) for decoding in loads]
    found = expected_capacity(fit(samples), REQUEST, OBJECTIVES, None)
    expected = solve(exactly(truth), REQUEST, OBJECTIVES, None)
    assert found.requests_per_second == pytest.approx(expected.requests_per_second, rel=1.2 * within)
    assert found.tokens_in_flight == pytest.approx(expected.tokens_in_flight, rel=2 * within)
    # What is taken off for the doubt makes up for what is missing.
    cautious = found.requests_per_second / (1.0 + found.relative_error)
    assert cautious < expected.requests_per_second * 1.10


def test_one_window_that_is_off_does_not_matter_much() -> None:
    truth = a_law(speed=1.3)
    samples = [measured(truth, decoding) for decoding in (5.0, 10.0, 20.0, 30.0)]
    samples[1] = measured(truth, 10.0, weight=1.0, error=0.3)
    found = expected_capacity(fit(samples), REQUEST, OBJECTIVES, None)
    expected = solve(exactly(truth), REQUEST, OBJECTIVES, None)
    assert found.requests_per_second == pytest.approx(expected.requests_per_second, rel=0.10)


def test_more_windows_leave_less_doubt() -> None:
    truth = a_law(speed=1.3)
    few = [measured(truth, 8.0, weight=1.0)]
    many = [measured(truth, decoding, weight=10.0) for decoding in (5.0, 10.0, 20.0, 40.0)]
    errors = [expected_capacity(fit(samples), REQUEST, OBJECTIVES, None).relative_error for samples in (few, many)]
    assert errors[0] > 0.08
    assert errors[1] < 0.05


@pytest.mark.parametrize(
    ("objectives", "kv_cache_tokens", "decoding"),
    [
        pytest.param({}, None, 81.9, id="50 ms a token"),
        pytest.param({"inter_token_latency_p99_milliseconds": 30}, None, 39.7, id="30 ms a token"),
        pytest.param({}, 46_000.0, 20.0, id="a KV cache of twenty requests"),
        pytest.param({"time_to_first_token_p99_milliseconds": 150}, None, 29.9, id="prompts that must not wait"),
        pytest.param({"inter_token_latency_p99_milliseconds": 5}, None, 0.001, id="what it cannot do even alone"),
    ],
)
def test_what_limits_a_replica(objectives: dict[str, int], kv_cache_tokens: float | None, decoding: float) -> None:
    found = solve(exactly(a_law()), REQUEST, LatencyObjectives(**objectives), kv_cache_tokens)
    assert found.tokens_in_flight / REQUEST.context_tokens == pytest.approx(decoding, rel=0.05)


def test_at_its_capacity_a_replica_has_work_for_one_second_a_second() -> None:
    found = solve(exactly(a_law()), REQUEST, OBJECTIVES, None)
    prompt, answer = REQUEST.computed_prompt_tokens, REQUEST.generated_tokens
    work = prompt / found.prefill_tokens_per_second + answer / found.decode_tokens_per_second
    assert found.requests_per_second * work == pytest.approx(1.0)


def test_a_step_takes_what_the_law_says() -> None:
    law = StepTimeLaw("round", 1e-3, 1e-4, 3e-3, 2e-5, 4e-5, 1e-8, 0.0)
    # 100 sequences: 1 ms and sqrt(3^2 + 4^2) ms; 10 ms for them and 1 ms for their contexts; half a prompt of
    # sqrt(3^2 + (4 + 20)^2) - 5 ms.
    terms = law.terms(StepLoad(100.0, 1000.0, 0.5, 1000.0))
    assert terms == pytest.approx((6e-3, 11e-3, 0.5 * ((9 + 576) ** 0.5 - 5) * 1e-3))


def test_a_long_prompt_takes_several_steps() -> None:
    law = a_law()
    alone = law.prompt_seconds(8000.0, 0.0, 10.0)
    assert law.prompt_seconds(32_000.0, 0.0, 10.0) > 4 * alone


def test_a_mixture_of_experts_reads_more_of_them_the_more_sequences_there_are() -> None:
    law = replace(a_law(), experts=20e-3, active_expert_share=1 / 32)
    one, many = law.matrix_seconds(0.0, 1.0), law.matrix_seconds(0.0, 200.0)
    assert one < 0.012
    assert many > 0.030


def test_the_load_of_a_sample_is_by_littles_law() -> None:
    sample = LoadSample(1.0, 0.02, 1000.0, 4.0, 2300.0, 2000.0, 100.0)
    assert sample.load == StepLoad(20.0, 2300.0, 0.08, 2000.0, 100.0)
    assert load_of(30.0, REQUEST).prompts == pytest.approx(0.1)
