from __future__ import annotations

import numpy as np

from autoscaler.dashboard.series import NO_SERIES


def test_a_row_is_added_and_the_series_before_it_stays_as_it_was() -> None:
    first = NO_SERIES.appended(10.0, {"ready": 3.0}, limit=5)
    second = first.appended(25.0, {"ready": 4.0}, limit=5)
    assert first.table.tolist() == [[3.0]]
    assert second.times_seconds.tolist() == [10.0, 25.0]
    assert second.table.tolist() == [[3.0], [4.0]]


def test_only_so_many_rows_are_kept() -> None:
    series = NO_SERIES
    for number in range(10):
        series = series.appended(float(number), {"ready": float(number)}, limit=3)
    assert series.times_seconds.tolist() == [7.0, 8.0, 9.0]
    assert series.table[:, 0].tolist() == [7.0, 8.0, 9.0]


def test_a_new_column_is_empty_before_and_a_missing_value_is_no_zero() -> None:
    series = NO_SERIES.appended(1.0, {"ready": 3.0}, 5).appended(2.0, {"vote/kvCache": 2.0}, 5)
    assert series.names == ("ready", "vote/kvCache")
    assert np.isnan(series.table[0, 1])
    assert np.isnan(series.table[1, 0])


def test_the_rows_after_a_time_do_not_hold_that_time() -> None:
    series = NO_SERIES.appended(1.0, {"ready": 3.0}, 5).appended(2.0, {"ready": 4.0}, 5)
    assert series.after(1.0).times_seconds.tolist() == [2.0]
    assert series.after(2.0).table.shape == (0, 1)
    assert series.after(0.0).table.tolist() == [[3.0], [4.0]]
