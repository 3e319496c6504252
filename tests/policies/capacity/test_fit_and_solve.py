"""From measurements to a capacity: is it that of the replica they were made of?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from policies.capacity.fit import FittedLaw, fit, foretold
from policies.capacity.known_laws import KNOWN_LAWS
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


def prompt_seconds(law: StepTimeLaw, computed_tokens: float, cached_tokens: float, decoding: float) -> float:
    """What one prompt adds to the steps that compute it."""
    return law.terms(StepLoad(decoding, 0.0, 1.0, computed_tokens, cached_tokens))[2]


@pytest.mark.parametrize(
    ("computed", "cached", "seconds"),
    [
        pytest.param(1000.0, 0.0, 20e-3 + 1000 * 500e-6, id="each token looks at half of the prompt on average"),
        pytest.param(1000.0, 4000.0, 20e-3 + 1000 * 4500e-6, id="and at all that was found in the cache"),
        pytest.param(16_384.0, 0.0, 16.384 * 20e-3 + 16_384 * 8192e-6, id="in two steps"),
    ],
)
def test_what_a_prompt_adds(computed: float, cached: float, seconds: float) -> None:
    """20 us of computing a token, and 1 us for each pair of a token and what it looks at."""
    law = StepTimeLaw("round", 0.0, 0.0, 0.0, 2e-5, 0.0, 0.0, 1e-6)
    assert prompt_seconds(law, computed, cached, 50.0) == pytest.approx(seconds)


def test_what_is_more_than_a_step_holds_reads_the_weights_again() -> None:
    """3 ms of weights and 4 us a token: a step of 1000 tokens takes 5 ms, 2 ms more than without."""
    law = StepTimeLaw("round", 0.0, 0.0, 3e-3, 4e-6, 0.0, 0.0, 0.0)
    assert prompt_seconds(law, 1000.0, 0.0, 0.0) == pytest.approx(2e-3)
    step = (3e-3**2 + (8192 * 4e-6) ** 2) ** 0.5 - 3e-3
    assert prompt_seconds(law, 16_384.0, 0.0, 0.0) == pytest.approx(2 * step)


def test_a_share_of_the_experts_is_read_by_each_token() -> None:
    law = StepTimeLaw("round", 0.0, 0.0, 1e-3, 0.0, 0.0, 0.0, 0.0, experts=8e-3, active_expert_share=0.25)
    assert law.matrix_seconds(1.0, 1.0) == pytest.approx(1e-3 + 8e-3 * (1 - 0.75**2))


def test_a_long_prompt_takes_several_steps() -> None:
    law = a_law()
    alone = prompt_seconds(law, 8000.0, 0.0, 10.0)
    assert prompt_seconds(law, 32_000.0, 0.0, 10.0) > 4 * alone


def test_a_mixture_of_experts_reads_more_of_them_the_more_sequences_there_are() -> None:
    law = replace(a_law(), experts=20e-3, active_expert_share=1 / 32)
    one, many = law.matrix_seconds(0.0, 1.0), law.matrix_seconds(0.0, 200.0)
    assert one < 0.012
    assert many > 0.030


def test_the_load_of_a_sample_is_by_littles_law() -> None:
    sample = LoadSample(1.0, 0.02, 1000.0, 4.0, 2300.0, 2000.0, 100.0)
    assert sample.load == StepLoad(20.0, 2300.0, 0.08, 2000.0, 100.0)
    assert load_of(30.0, REQUEST).prompts == pytest.approx(0.1)


def by_least_squares(law: StepTimeLaw, samples: Sequence[LoadSample], error: float = 0.025) -> FittedLaw:
    """The same fit by numpy: rows of parts over the measured time, a prior of 60 % at the law's speed."""
    rows = np.array([law.terms(sample.load) for sample in samples]) / [[sample.step_seconds] for sample in samples]
    weights = np.array([sample.weight for sample in samples])
    speed = float(np.exp(-np.average(np.log(rows.sum(axis=1)), weights=weights)))
    prior = (0.6 * speed) ** -2
    matrix = rows.T @ np.diag(weights / error**2) @ rows + prior * np.eye(3)
    covariance = np.linalg.inv(matrix)
    factors = covariance @ (rows.T @ (weights / error**2) + prior * speed)
    residuals = weights / error**2 * (1.0 - rows @ factors) ** 2
    misfit = residuals.sum() + prior * ((factors - speed) ** 2).sum() + np.log(speed) ** 2
    first, second, third = factors.tolist()
    one, two, three = ((float(a), float(b), float(c)) for a, b, c in covariance)
    return FittedLaw(law, (first, second, third), (one, two, three), float(misfit), error)


UNEVEN = (
    measured(a_law(speed=1.5, prefill=1.2), 4.0, weight=2.0),
    measured(a_law(speed=1.5, prefill=1.2), 11.0, weight=5.0, error=0.01),
    measured(a_law(speed=1.5, prefill=1.2), 35.0, weight=9.0, error=-0.015),
)


def assert_the_fits_are(samples: Sequence[LoadSample], error: float) -> None:
    found = fit(samples)
    expected = sorted((by_least_squares(law, samples, error) for law in KNOWN_LAWS), key=lambda each: each.misfit)
    assert [each.law.name for each in found] == [each.law.name for each in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.factors == pytest.approx(other.factors)
        assert np.array(one.covariance) == pytest.approx(np.array(other.covariance))
        assert one.misfit == pytest.approx(other.misfit)
        assert one.window_error == pytest.approx(error)
        assert one.likelihood == pytest.approx(math.exp((expected[0].misfit - other.misfit) / 2))


def test_the_fit_is_that_of_least_squares() -> None:
    assert_the_fits_are(UNEVEN, 0.025)


def test_windows_that_contradict_each_other_leave_more_doubt() -> None:
    """Errors are taken for as much larger as the best law's misfit is than the number of samples (Birge's ratio)."""
    samples = [measured(a_law(speed=1.5), d, weight=9.0, error=e) for d, e in ((5.0, 0.1), (10.0, -0.1), (30.0, 0.1))]
    least = min(by_least_squares(law, samples).misfit for law in KNOWN_LAWS)
    error = 0.025 * math.sqrt(least / 3)
    assert error > 2 * 0.025
    assert_the_fits_are(samples, error)


def test_a_step_is_foretold_by_all_laws_and_their_difference_is_doubt() -> None:
    load = load_of(20.0, REQUEST)
    one = replace(in_doubt(a_law()), likelihood=1.0, window_error=0.03)
    other = replace(exactly(a_law(speed=2.0)), likelihood=0.25, window_error=0.03)
    seconds, error = foretold((one, other), load)
    assert seconds == pytest.approx(0.8 * one.seconds(load) + 0.2 * other.seconds(load))
    away = [each.seconds(load) / seconds - 1.0 for each in (one, other)]
    variance = 0.8 * (one.relative_error(load) ** 2 + away[0] ** 2) + 0.2 * away[1] ** 2
    assert error == pytest.approx(math.sqrt(variance + 0.03**2))


def test_no_part_becomes_less_than_a_twentieth_of_its_speed() -> None:
    """Steps that take as long however many sequences there are leave nothing for the sequences."""
    law = a_law()
    flat = [replace(measured(law, decoding, weight=12.0), step_seconds=0.02) for decoding in (5.0, 20.0, 60.0, 120.0)]
    (found,) = fit(flat, (law,))
    expected = by_least_squares(law, flat)
    assert min(expected.factors) < 0
    speed = math.exp(-sum(math.log(sum(law.terms(each.load)) / each.step_seconds) for each in flat) / 4)
    assert min(found.factors) == pytest.approx(0.05 * speed)


def test_the_error_of_a_time_is_that_of_its_parts() -> None:
    """Parts of 6, 11 and about 9 ms, known to 10 %, 20 % and not at all: errors that go together add up."""
    law = StepTimeLaw("round", 1e-3, 1e-4, 3e-3, 2e-5, 4e-5, 1e-8, 0.0)
    load = StepLoad(100.0, 1000.0, 0.5, 1000.0)
    first, second, third = law.terms(load)
    covariance = ((0.01, 0.005, 0.0), (0.005, 0.04, 0.0), (0.0, 0.0, 0.0))
    fitted = FittedLaw(law, (1.0, 2.0, 3.0), covariance, 0.0)
    seconds = first + 2 * second + 3 * third
    assert fitted.seconds(load) == pytest.approx(seconds)
    variance = 0.01 * first**2 + 2 * 0.005 * first * second + 0.04 * second**2
    assert fitted.relative_error(load) == pytest.approx(variance**0.5 / seconds)


def test_laws_count_by_their_likelihood_and_their_difference_is_doubt() -> None:
    one = replace(exactly(a_law()), likelihood=1.0)
    other = replace(exactly(a_law(speed=2.0)), likelihood=0.25)
    fast, slow = (solve(law, REQUEST, OBJECTIVES, None) for law in (one, other))
    found = expected_capacity((one, other), REQUEST, OBJECTIVES, None)
    work = 0.8 / fast.requests_per_second + 0.2 / slow.requests_per_second
    assert 1 / found.requests_per_second == pytest.approx(work)
    assert found.prompt_share == pytest.approx(0.8 * fast.prompt_share + 0.2 * slow.prompt_share)
    assert found.tokens_in_flight == pytest.approx(0.8 * fast.tokens_in_flight + 0.2 * slow.tokens_in_flight)
    away = [found.requests_per_second / each.requests_per_second - 1.0 for each in (fast, slow)]
    assert found.relative_error == pytest.approx((0.8 * away[0] ** 2 + 0.2 * away[1] ** 2) ** 0.5)


def test_what_a_law_leaves_open_is_of_the_share_that_it_says() -> None:
    """Of one law alone its own error; of two a law's error counts by how much of a replica it takes for a request."""
    one, other = in_doubt(a_law()), exactly(a_law(speed=2.0))
    fast, slow = (solve(law, REQUEST, OBJECTIVES, None) for law in (one, other))
    assert expected_capacity((one,), REQUEST, OBJECTIVES, None).relative_error == pytest.approx(fast.relative_error)
    found = expected_capacity((one, other), REQUEST, OBJECTIVES, None)
    shares = [found.requests_per_second / each.requests_per_second for each in (fast, slow)]
    variance = ((shares[0] - 1.0) ** 2 + (shares[1] - 1.0) ** 2 + (shares[0] * fast.relative_error) ** 2) / 2
    assert found.relative_error == pytest.approx(math.sqrt(variance))


def test_laws_that_agree_to_the_bit_leave_no_doubt() -> None:
    """Sums of equal shares, which rounding must not make less than nothing."""
    for speed in (0.7, 1.0, 1.1, 1.3, 1.7, 1.9):
        laws = [replace(exactly(a_law(speed=speed)), likelihood=likelihood) for likelihood in (1.0, 0.3, 0.1)]
        assert expected_capacity(laws, REQUEST, OBJECTIVES, None).relative_error == pytest.approx(0.0, abs=1e-7)


def in_doubt(law: StepTimeLaw) -> FittedLaw:
    return replace(exactly(law), covariance=((0.01, 0.0, 0.0), (0.0, 0.01, 0.0), (0.0, 0.0, 0.01)))


@pytest.mark.parametrize(
    ("kv_cache_tokens", "is_full"),
    [
        pytest.param(None, False, id="a longer step leaves less load: the doubt grows by what does not grow with it"),
        pytest.param(46_000.0, True, id="where the KV cache is the limit the load stays as it is"),
    ],
)
def test_what_doubt_of_the_step_does_to_the_capacity(kv_cache_tokens: float | None, is_full: bool) -> None:
    fitted = in_doubt(a_law())
    found = solve(fitted, REQUEST, OBJECTIVES, kv_cache_tokens)
    load = load_of(found.tokens_in_flight / REQUEST.context_tokens, REQUEST)
    seconds = fitted.seconds(load)
    fixed, _, prompts = fitted.law.terms(load)
    assert found.prompt_share == pytest.approx(prompts / seconds)
    assert found.requests_per_second == pytest.approx(load.decoding / (REQUEST.generated_tokens * seconds))
    grows = 1.0 if is_full else 1.0 - fixed / seconds
    assert found.relative_error == pytest.approx(fitted.relative_error(load) / grows)


def test_doubt_grows_to_ten_times_at_most() -> None:
    """A step that takes 49.9 ms whatever the load says next to nothing of where 50 ms are."""
    law = StepTimeLaw("fixed", 49.99e-3, 1e-7, 0.0, 1e-9, 0.0, 0.0, 0.0)
    found = solve(in_doubt(law), REQUEST, OBJECTIVES, None)
    load = load_of(found.tokens_in_flight / REQUEST.context_tokens, REQUEST)
    assert found.relative_error == pytest.approx(10.0 * in_doubt(law).relative_error(load))


@pytest.mark.parametrize(
    ("objectives", "decoding"),
    [
        pytest.param({"inter_token_latency_p99_milliseconds": 50}, 100.0, id="50 ms a token"),
        pytest.param({"inter_token_latency_p99_milliseconds": 1000}, 1024.0, id="the largest batch of the engines"),
    ],
)
def test_where_the_time_of_a_token_ends(objectives: dict[str, int], decoding: float) -> None:
    """A step of 10 ms and 0.4 ms a sequence, and prompts that cost nothing."""
    law = StepTimeLaw("round", 10e-3, 0.4e-3, 0.0, 0.0, 0.0, 0.0, 0.0)
    found = solve(exactly(law), REQUEST, LatencyObjectives(**objectives), None)
    assert found.tokens_in_flight == pytest.approx(2300.0 * decoding, rel=1e-3)


@pytest.mark.parametrize(
    ("milliseconds", "computed", "decoding"),
    [
        # A prompt takes 200 ms, a step without one 20 ms. With D sequences D / 300 prompts begin a step, which then
        # takes 20 + D 200 / 300 ms, of which rho is for prompts: 30 sequences are 40 ms, rho 1 / 2, and twice 220 ms.
        pytest.param(440, 2000.0, 30.0, id="a prompt waits for those before it"),
        pytest.param(220 * 4, 2000.0, 90.0, id="four times its service at a rho of three quarters"),
        # 16 384 tokens are two steps, and 1638.4 ms by themselves: at rho 1 / 2 twice 1678.4 ms.
        pytest.param(3357, 16_384.0, 3.662, id="a long prompt waits for the rest of two steps"),
    ],
)
def test_where_the_time_to_the_first_token_ends(milliseconds: int, computed: float, decoding: float) -> None:
    law = StepTimeLaw("round", 20e-3, 0.0, 0.0, 1e-4, 0.0, 0.0, 0.0)
    objectives = LatencyObjectives(
        time_to_first_token_p99_milliseconds=milliseconds, inter_token_latency_p99_milliseconds=60_000
    )
    request = replace(REQUEST, computed_prompt_tokens=computed)
    found = solve(exactly(law), request, objectives, None)
    assert found.tokens_in_flight / request.context_tokens == pytest.approx(decoding, rel=2e-3)


def test_an_objective_that_is_met_to_the_bit_is_met() -> None:
    """A step of 50 ms whatever it holds, and 50 ms for a token as for the first one."""
    law = StepTimeLaw("flat", 50e-3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    objectives = LatencyObjectives(time_to_first_token_p99_milliseconds=50, inter_token_latency_p99_milliseconds=50)
    assert solve(exactly(law), REQUEST, objectives, None).tokens_in_flight == 1024 * 2300.0


def test_what_cannot_be_kept_even_alone_is_a_capacity_of_next_to_nothing() -> None:
    found = solve(exactly(a_law()), REQUEST, LatencyObjectives(inter_token_latency_p99_milliseconds=5), None)
    assert found.tokens_in_flight == pytest.approx(2300.0 * 1e-3)
