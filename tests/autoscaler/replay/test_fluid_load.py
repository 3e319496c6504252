from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoscaler.replay.fluid_load import fluid_load
from autoscaler.replay.trace import BinnedTrace, RequestTrace
from autoscaler.replay.trace_load import trace_load

HOUR = BinnedTrace(0.0, 300.0, np.full(12, 40.0), np.full(12, 1000.0), np.full(12, 200.0))


@pytest.mark.parametrize("bin_seconds", [1.0, 45.0, 60.0, 300.0, 700.0])
def test_the_minutes_of_a_binned_trace_hold_as_much_as_its_bins(bin_seconds: float) -> None:
    bins = round(4200 / bin_seconds)
    trace = BinnedTrace(0.0, bin_seconds, np.full(bins, 40.0), np.full(bins, 1000.0), np.full(bins, 200.0))
    load = fluid_load(trace_load(trace, 2.0, None, None, 0), seed=1)
    whole = load.requests_per_second[:-1]
    assert whole.mean() == pytest.approx(80.0, rel=0.02)
    assert 0 < whole.std() < 10  # as noisy as a minute of single requests
    assert load.input_tokens[:-1] == pytest.approx(1000.0)
    assert load.output_tokens[:-1] == pytest.approx(200.0)


def test_a_bin_that_was_not_recorded_is_like_the_one_before() -> None:
    holed = HOUR.requests_per_second.copy()
    holed[4:] = np.nan
    whole, with_holes = (
        fluid_load(trace_load(replace(HOUR, requests_per_second=rates), 1.0, None, None, 0), seed=1)
        for rates in (HOUR.requests_per_second, holed)
    )
    assert with_holes.requests_per_second == pytest.approx(whole.requests_per_second)


def test_single_requests_are_counted_by_the_minute() -> None:
    ones = np.ones(3, np.int64)
    trace = RequestTrace(np.array([0.0, 30.0, 70.0]), 100 * ones, 10 * ones, 120.0)
    load = fluid_load(trace_load(trace, 1.0, None, None, 0), seed=1)
    assert load.requests_per_second == pytest.approx([2 / 60, 1 / 60])
    assert load.input_tokens == pytest.approx([100.0, 100.0])


def test_another_seed_is_another_noise() -> None:
    load = trace_load(HOUR, 1.0, None, None, 0)
    one, again, other = (fluid_load(load, seed).requests_per_second for seed in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()
