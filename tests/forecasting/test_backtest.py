import numpy as np
import pytest

from forecasting.backtest import Backtest, prediction_rows, run_backtest
from forecasting.time_series import TimeSeries
from tests.forecasting.loads import diurnal, trace

LEVELS = (0.5, 0.9, 0.95)


def half_hours(days: float, seed: int = 0) -> TimeSeries:
    return TimeSeries(7200.0, 1800, diurnal(days, seed=seed, day_bins=48))


def rows_by_origin(backtest: Backtest, until: float) -> list[tuple[float, int, float, float]]:
    return [
        (row.origin_seconds, row.step, row.level, row.predicted)
        for row in prediction_rows(backtest)
        if row.origin_seconds <= until
    ]


@pytest.mark.parametrize("model", ["ridge", "last-value", "seasonal-naive", "profile"])
def test_the_future_does_not_change_a_forecast(model: str) -> None:
    series = half_hours(8)
    changed = TimeSeries(series.start_seconds, series.step_seconds, series.values.copy())
    boundary = 6 * 48
    changed.values[boundary:] = np.random.default_rng(9).uniform(0, 1e4, len(series.values) - boundary)
    closes = series.start_seconds + boundary * series.step_seconds
    before, after = (rows_by_origin(run_backtest(each, model, 4, LEVELS), closes) for each in (series, changed))
    assert len(before) > 40 * 4 * 3
    np.testing.assert_array_equal(before, after)


def test_a_shorter_record_gives_the_same_forecasts() -> None:
    series = half_hours(8)
    cut = TimeSeries(series.start_seconds, series.step_seconds, series.values[: 6 * 48])
    closes = cut.end_seconds - 4 * 1800
    whole, part = run_backtest(series, "ridge", 4, LEVELS), run_backtest(cut, "ridge", 2, LEVELS)
    np.testing.assert_array_equal(rows_by_origin(whole, closes), rows_by_origin(part, closes))


def test_rows_name_the_bin_they_are_about() -> None:
    series = half_hours(4)
    rows = list(prediction_rows(run_backtest(series, "last-value", 1, LEVELS)))
    for row in rows:
        assert row.target_start_seconds == row.origin_seconds + (row.step - 1) * 1800
        target = round((row.target_start_seconds - series.start_seconds) / 1800)
        assert target >= 3 * 48
        assert row.observed == series.values[target]
    in_full = [row for row in rows if row.origin_seconds >= series.start_seconds + 3 * 86400]
    assert {(row.step, row.level) for row in in_full} == {(step, level) for step in (1, 2, 3, 4) for level in LEVELS}


def test_the_last_value_is_as_good_as_itself() -> None:
    backtest = run_backtest(half_hours(6), "last-value", 2, LEVELS)
    assert [each.ratio_to_last_value for each in backtest.steps] == [1.0] * 4


def test_missing_bins_are_not_scored() -> None:
    series = half_hours(6)
    series.values[-10:] = np.nan
    backtest = run_backtest(series, "ridge", 2, LEVELS)
    assert backtest.steps[0].scored.bins == 2 * 48 - 10
    assert [row.observed for row in prediction_rows(backtest)][-1] is None


@pytest.mark.parametrize(
    ("days", "test_days", "test_bins"),
    [
        pytest.param(40, None, 14 * 48, id="the last fortnight by default"),
        pytest.param(4, None, 2 * 48, id="half of a short series"),
        pytest.param(4, 99, 4 * 48, id="never more than there is"),
    ],
)
def test_the_test_window(days: float, test_days: float | None, test_bins: int) -> None:
    backtest = run_backtest(half_hours(days), "last-value", test_days, LEVELS)
    assert len(backtest.series.values) - backtest.first_test_bin == test_bins


def test_a_series_without_bins_scores_nothing() -> None:
    backtest = run_backtest(TimeSeries(0.0, 300, np.empty(0)), "ridge", None, LEVELS)
    assert backtest.steps[0].scored.bins == 0


def test_bins_that_do_not_divide_a_day_are_refused() -> None:
    with pytest.raises(ValueError, match="does not divide a day"):
        run_backtest(TimeSeries(0.0, 700, np.ones(9)), "ridge", None, LEVELS)


def test_a_recorded_pool_is_forecast_better_than_by_the_last_value() -> None:
    series = trace("llm_servegen_client_s31_10min", "input_tokens+output_tokens")
    backtest = run_backtest(series, "ridge", 7, LEVELS)
    for each, most in zip(backtest.steps, (0.79, 0.65, 0.57, 0.51), strict=True):
        assert each.ratio_to_last_value is not None
        assert each.ratio_to_last_value <= most
        assert 0.88 <= each.coverage[1] <= 0.92
        assert 0.935 <= each.coverage[2] <= 0.965
