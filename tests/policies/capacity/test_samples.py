from __future__ import annotations

from dataclasses import replace

import pytest

from policies.capacity.samples import (
    LARGEST_WEIGHT,
    MAXIMUM_CLASSES,
    LoadSample,
    context_share,
    total_weight,
    with_sample,
)

SAMPLE = LoadSample(1.0, 0.02, 1000.0, 4.0, 2300.0, 2000.0, 0.0)


def after(*samples: LoadSample) -> tuple[LoadSample, ...]:
    kept: tuple[LoadSample, ...] = ()
    for sample in samples:
        kept = with_sample(kept, sample)
    return kept


def test_windows_of_about_the_same_load_are_one_mean() -> None:
    (found,) = after(SAMPLE, replace(SAMPLE, generated_tokens_per_second=980.0, step_seconds=0.03))
    assert found.weight == pytest.approx(2.0, abs=0.02)
    assert found.generated_tokens_per_second == pytest.approx(990.0, abs=0.5)
    assert found.step_seconds == pytest.approx(0.025, abs=1e-4)


def test_other_loads_are_kept_apart_and_in_order() -> None:
    found = after(SAMPLE, replace(SAMPLE, generated_tokens_per_second=300.0))
    assert [round(sample.generated_tokens_per_second) for sample in found] == [300, 1000]


def test_a_class_tells_of_its_last_dozen_windows() -> None:
    slower = replace(SAMPLE, step_seconds=0.04)
    found = after(*([SAMPLE] * 200), *([slower] * 25))
    assert found[0].weight == pytest.approx(LARGEST_WEIGHT)
    assert found[0].step_seconds == pytest.approx(0.04, rel=0.08)


def test_a_load_that_is_visited_no_more_fades() -> None:
    old = replace(SAMPLE, generated_tokens_per_second=300.0)
    before, later = after(*([old] * 12)), after(*([old] * 12), *([SAMPLE] * 90))
    assert later[0].weight == pytest.approx(before[0].weight / 2)


def test_quiet_windows_make_a_busy_load_fade_a_tenth_as_much() -> None:
    quiet = replace(SAMPLE, generated_tokens_per_second=300.0)
    before, later = after(*([SAMPLE] * 12)), after(*([SAMPLE] * 12), *([quiet] * 90))
    assert later[-1].weight == pytest.approx(before[0].weight * 0.5**0.1)


def test_a_load_that_doubles_is_seen_in_several_means() -> None:
    """Of two, any law could be right: what more load adds to a step is the distance between them."""
    found = after(*(replace(SAMPLE, generated_tokens_per_second=1000.0 * 2 ** (step / 40)) for step in range(41)))
    assert len(found) in (5, 6)


def test_a_sample_of_a_slower_replica_is_of_the_same_steps() -> None:
    slower = replace(SAMPLE, weight=5.0).slower(1.5, 0.1)
    assert (slower.weight, slower.step_seconds) == (0.1, pytest.approx(0.03))
    assert slower.load.decoding == pytest.approx(SAMPLE.load.decoding)
    assert slower.load.prompts == pytest.approx(SAMPLE.load.prompts)
    assert replace(SAMPLE, weight=0.05).slower(1.5, 0.1).weight == 0.05


def test_a_window_of_seven_tenths_of_the_load_is_not_quiet() -> None:
    enough = replace(SAMPLE, generated_tokens_per_second=700.0)
    less = replace(SAMPLE, generated_tokens_per_second=699.0)
    weights = [with_sample((SAMPLE,), new)[-1].weight for new in (enough, less)]
    assert weights == [pytest.approx(0.5 ** (1 / 90)), pytest.approx(0.5 ** (0.1 / 90))]


def test_no_more_is_kept_than_a_status_holds() -> None:
    found = after(*(replace(SAMPLE, generated_tokens_per_second=10.0 * 1.15**place) for place in range(40)))
    assert len(found) == MAXIMUM_CLASSES
    assert found[-1].generated_tokens_per_second == pytest.approx(10.0 * 1.15**39)
    assert total_weight(found) < MAXIMUM_CLASSES


@pytest.mark.parametrize(
    ("samples", "share"),
    [
        pytest.param([SAMPLE], 2300 / 2250, id="2300 tokens held, of prompts of 2000 and answers of 250"),
        pytest.param([replace(SAMPLE, prompt_tokens=500.0, cached_tokens=1500.0)], 2300 / 2250, id="cached ones count"),
        pytest.param(
            [SAMPLE, replace(SAMPLE, weight=3.0, context_tokens=1900.0)], 2000 / 2250, id="a mean over all windows"
        ),
        pytest.param(
            [
                SAMPLE,
                replace(SAMPLE, prompts_per_second=12.0, generated_tokens_per_second=3000.0, context_tokens=1900.0),
            ],
            2000 / 2250,
            id="by the requests that began in them",
        ),
        pytest.param([replace(SAMPLE, prompts_per_second=0.0)], 1.0, id="no request began"),
        pytest.param([], 1.0, id="nothing was measured"),
    ],
)
def test_what_running_sequences_hold_of_their_requests(samples: list[LoadSample], share: float) -> None:
    assert context_share(tuple(samples)) == pytest.approx(share)
