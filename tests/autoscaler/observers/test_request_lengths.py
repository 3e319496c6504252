from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.observers.request_lengths import MEMORY_SECONDS, SeenLengths, request_lengths, tells_lengths
from autoscaler.replay.serving_counters import REQUEST_LENGTH_EDGES
from policies.capacity.request_lengths import RequestLengths
from policies.capacity.step_time import StepLoad
from policies.capacity.tail import slow_share

EDGES = (*REQUEST_LENGTH_EDGES, math.inf)
ALIKE = {200.0: 0.0, 500.0: 1000.0, math.inf: 1000.0}


def buckets_of(lengths: np.ndarray) -> dict[float, float]:
    return {edge: float((lengths <= edge).sum()) for edge in EDGES}


@pytest.mark.parametrize(
    ("prompts", "answers", "expected"),
    [
        pytest.param(ALIKE, ALIKE, RequestLengths(0.0, ((1.0, 1.0),)), id="all in one bucket are alike"),
        pytest.param(
            {100.0: 0.0, 200.0: 500.0, 500.0: 500.0, 1000.0: 1000.0},
            ALIKE,
            RequestLengths(0.667, ((1.0, 1.0),)),
            id="half of 141 tokens and half of 707 differ from their mean of 424 by 283",
        ),
        pytest.param(
            ALIKE,
            {20.0: 0.0, 50.0: 100.0, 200.0: 100.0, 500.0: 1000.0},
            RequestLengths(0.0, ((0.11, 0.1), (1.1, 0.9))),
            id="a tenth are short answers",
        ),
        pytest.param(
            ALIKE,
            {1.0: 500.0, 200.0: 500.0, 500.0: 1000.0},
            RequestLengths(0.0, ((2.0, 0.5),)),
            id="answers of one token have no gap that could be too long",
        ),
        pytest.param(
            ALIKE,
            {100.0: 900.0, 200.0: 850.0, 500.0: 1000.0, math.inf: 1000.0},
            RequestLengths(0.0, ((0.742, 0.9), (3.32, 0.1))),
            id="a count that seems to sink is flat",
        ),
        pytest.param(
            ALIKE,
            {100.0: 900.0, math.inf: 1000.0},
            RequestLengths(0.0, ((0.845, 0.9), (2.39, 0.1))),
            id="those beyond the last edge are twice as long as it",
        ),
        pytest.param(
            ALIKE,
            {1.0: 0.0, 2.0: 1000.0, 5000.0: 1000.0, 10_000.0: 2000.0},
            RequestLengths(0.0, ((0.0004, 0.5), (2.0, 0.5))),
            id="a few tokens beside thousands are a length, too",
        ),
        pytest.param(ALIKE, {500.0: 199.0, math.inf: 199.0}, None, id="too few answers"),
        pytest.param({500.0: 199.0, math.inf: 199.0}, ALIKE, None, id="too few prompts"),
        pytest.param({}, {}, None, id="nothing at all"),
        pytest.param({math.nan: 900.0, 500.0: math.nan}, ALIKE, None, id="no numbers"),
    ],
)
def test_lengths_of_buckets(
    prompts: Mapping[float, float], answers: Mapping[float, float], expected: RequestLengths | None
) -> None:
    assert request_lengths(prompts, answers) == expected


@pytest.mark.parametrize(
    ("variation", "error"),
    [
        pytest.param(0.2, 0.25, id="nearly alike: buckets are wider than the lengths differ"),
        pytest.param(0.5, 0.12, id="half as much as their mean"),
        pytest.param(1.0, 0.12, id="as much as their mean"),
        pytest.param(1.8, 0.25, id="nearly twice as much"),
    ],
)
def test_the_buckets_of_an_engine_tell_the_variation_of_its_prompts(variation: float, error: float) -> None:
    deviation = math.sqrt(math.log(1.0 + variation**2))
    for mean in np.geomspace(50.0, 8000.0, 25):
        generator = np.random.default_rng(1)
        lengths = np.ceil(generator.lognormal(math.log(mean) - deviation**2 / 2.0, deviation, 20_000))
        found = request_lengths(buckets_of(lengths), buckets_of(lengths))
        assert found is not None
        assert found.prompt_variation == pytest.approx(lengths.std() / lengths.mean(), abs=error)
        assert sum(length * share for length, share in found.answers) == pytest.approx(1.0, abs=0.01)


@given(
    counts=st.lists(st.integers(0, 1_000_000), min_size=len(EDGES), max_size=len(EDGES)),
    of_prompts=st.lists(st.integers(0, 1_000_000), min_size=len(EDGES), max_size=len(EDGES)),
    decoding=st.floats(0.001, 1024.0),
    answer=st.floats(1.0, 100_000.0),
)
def test_whatever_the_buckets_hold_a_share_of_slow_requests_follows(
    counts: list[int], of_prompts: list[int], decoding: float, answer: float
) -> None:
    prompts, answers = (dict(zip(EDGES, map(float, accumulate(each)), strict=True)) for each in (of_prompts, counts))
    found = request_lengths(prompts, answers)
    if found is None:
        return
    load = StepLoad(decoding, 2000.0, decoding / answer, 1000.0)
    assert 0.0 <= slow_share((0.01, 0.001, 0.005), load, answer, found, 0.05) <= 1.01


@pytest.mark.parametrize(
    ("engine", "tells"),
    [
        pytest.param("vllm", True, id="vLLM has histograms"),
        pytest.param("sglang", False, id="SGLang counts tokens and requests"),
        pytest.param("tensorrt-llm", False, id="TensorRT-LLM counts tokens and requests"),
        pytest.param("triton-tensorrt-llm", False, id="Triton counts neither"),
        pytest.param("custom", False, id="an engine of one's own tells nothing"),
    ],
)
def test_which_engines_tell_lengths(engine: str, tells: bool) -> None:
    assert tells_lengths(engine) is tells


def test_what_was_seen_before_fades_within_a_quarter_of_an_hour() -> None:
    seen, short, long = SeenLengths(), {100.0: 0.0, 200.0: 10.0, 500.0: 10.0}, {100.0: 0.0, 200.0: 0.0, 500.0: 10.0}
    seen.update(short, short, 300.0, 0.0)
    shares = []
    for minute in range(1, 61):
        seen.update(long, long, 300.0, 60.0 * minute)
        assert seen.value is not None
        shares.append(seen.value.answers[0][1])
    before = 300.0 * math.exp(-60.0 / MEMORY_SECONDS)
    assert shares[0] == pytest.approx(before / (before + 60.0), abs=1e-3), "five minutes, and one of another kind"
    assert shares[14] < 0.2
    assert shares[59] < 0.01


def test_a_pool_of_few_requests_is_known_after_enough_minutes() -> None:
    seen, few = SeenLengths(), {200.0: 0.0, 500.0: 0.3}
    seen.update(few, few, 300.0, 0.0)
    assert seen.value is None
    for minute in range(1, 16):
        seen.update(few, few, 300.0, 60.0 * minute)
    assert seen.value == RequestLengths(0.0, ((1.0, 1.0),))


@pytest.mark.parametrize(
    ("prompts", "answers", "at"),
    [
        pytest.param({}, ALIKE, 60.0, id="no prompts"),
        pytest.param(ALIKE, {}, 60.0, id="no answers"),
        pytest.param({500.0: math.nan}, {500.0: math.nan}, 60.0, id="no numbers"),
        pytest.param({500.0: 0.0}, {500.0: 0.0}, 1e9, id="nothing for years"),
        pytest.param({500.0: 5.0}, {500.0: 5.0}, -1e9, id="a clock that was set back"),
    ],
)
def test_what_tells_nothing_leaves_the_lengths_as_they_are(
    prompts: Mapping[float, float], answers: Mapping[float, float], at: float
) -> None:
    seen = SeenLengths()
    seen.update(ALIKE, ALIKE, 300.0, 0.0)
    before = seen.value
    seen.update(prompts, answers, 300.0, at)
    assert seen.value == before
    seen.update(ALIKE, ALIKE, 300.0, at + 600.0)
    assert seen.value == before
