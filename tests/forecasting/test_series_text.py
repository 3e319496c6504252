import numpy as np
import pytest

from forecasting.series_text import SeriesUnreadable, read_series
from forecasting.time_series import TimeSeries


@pytest.mark.parametrize(
    ("text", "column", "bin_seconds", "step", "expected"),
    [
        pytest.param("timestamp_s,value\n0,1\n300,3\n", "value", None, 300, [1, 3], id="rows 5 minutes apart are bins"),
        pytest.param("timestamp_s,value\n0,1\n600,3\n", "value", 300, 600, [1, 3], id="wider rows keep their width"),
        pytest.param(
            "timestamp_s,value\n0,1\n300,\n600,3\n", "value", None, 300, [1, np.nan, 3], id="an empty cell is missing"
        ),
        pytest.param(
            "timestamp_s,value\n0,1\n300,2\n900,3\n", "value", None, 300, [1, 2, np.nan, 3], id="a left-out row too"
        ),
        pytest.param(
            "timestamp_s,value,input_tokens,output_tokens\n0,1,10,5\n300,1,20,\n",
            "input_tokens+output_tokens",
            None,
            300,
            [15, np.nan],
            id="columns are added, and missing if one part is",
        ),
        pytest.param(
            "timestamp_s,value,input_tokens\n0.5,1,60\n0.5,1,30\n70.25,1,9\n",
            "input_tokens",
            60,
            60,
            [1.5],
            id="uneven and repeated times are requests, as a rate per second",
        ),
        pytest.param(
            "\ufefftimestamp_s,value\r\n0,1\r\n300,2\r\n", "value", None, 300, [1, 2], id="as Excel writes it"
        ),
    ],
)
def test_a_text_becomes_a_series(
    text: str, column: str, bin_seconds: int | None, step: int, expected: list[float]
) -> None:
    series = read_series(text, column, bin_seconds)
    assert isinstance(series, TimeSeries)
    assert series.step_seconds == step
    np.testing.assert_allclose(series.values, expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "column timestamp_s, value not found; the header has: nothing", id="an empty text"),
        pytest.param(
            "time,value\n0,1\n", "column timestamp_s not found; the header has: time, value", id="other names"
        ),
        pytest.param("timestamp_s,value\n", "no rows below the header", id="a header alone"),
        pytest.param("timestamp_s,value\n0,many\n", "line 2 is not a number per column", id="a word"),
        pytest.param("timestamp_s,value\n0,1\nnan,1\n", "line 3 has no finite timestamp_s", id="a time that is none"),
        pytest.param("timestamp_s,value\n0,1\n7\n", None, id="a short row is a missing value"),
    ],
)
def test_a_text_without_a_series_is_refused_with_a_reason(text: str, message: str | None) -> None:
    read = read_series(text)
    if message is None:
        assert isinstance(read, TimeSeries)
    else:
        assert isinstance(read, SeriesUnreadable)
        assert message in read.message
