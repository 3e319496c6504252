import csv
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from autoscaler.commands.forecast import (
    FINE,
    NOT_RIGHT,
    WRONG_USAGE,
    BacktestRequest,
    backtest_series,
    forecast_series,
)
from autoscaler.commands.forecast_source import SeriesRequest
from tests.forecasting.loads import TRACES, diurnal

CONSOLE = Console(width=110)


@pytest.fixture
def series(tmp_path: Path) -> Path:
    path = tmp_path / "series.csv"
    write(path, diurnal(6, day_bins=48))
    return path


def write(path: Path, values: np.ndarray) -> None:
    path.write_text("timestamp_s,value\n" + "".join(f"{1800 * i},{value:.6f}\n" for i, value in enumerate(values)))


def test_predictions_have_the_promised_columns_and_use_only_the_past(series: Path, tmp_path: Path) -> None:
    out, changed_out = tmp_path / "out.csv", tmp_path / "changed.csv"
    assert backtest_series(SeriesRequest(series), BacktestRequest(2, out), True, CONSOLE) == FINE
    values = diurnal(6, day_bins=48)
    values[5 * 48 :] *= 17
    write(series, values)
    assert backtest_series(SeriesRequest(series), BacktestRequest(2, changed_out), True, CONSOLE) == FINE
    before, after = (list(csv.DictReader(path.read_text().splitlines())) for path in (out, changed_out))
    assert list(before[0]) == ["origin_s", "target_start_s", "step", "quantile", "predicted", "observed"]
    boundary = 5 * 86400
    issued = [
        [(row["origin_s"], row["step"], row["quantile"], row["predicted"]) for row in rows]
        for rows in ([r for r in each if float(r["origin_s"]) <= boundary] for each in (before, after))
    ]
    assert len(issued[0]) > 500
    assert issued[0] == issued[1]
    later = [[r["predicted"] for r in each if float(r["origin_s"]) > boundary] for each in (before, after)]
    assert later[0] != later[1]


def test_the_json_of_a_backtest(series: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert backtest_series(SeriesRequest(series), BacktestRequest(2), True, CONSOLE) == FINE
    document = json.loads(capsys.readouterr().out)
    assert (document["binSeconds"], document["testBins"], len(document["steps"])) == (1800, 96, 4)
    first = document["steps"][0]
    assert first["bins"] == 96
    assert first["ratioToLastValue"] < 1
    assert set(first["coverage"]) == {"0.5", "0.9", "0.95"}
    assert {"pinballLoss90", "ratioToSeasonalNaive", "underShare", "overShare"} <= set(first)


def test_the_table_of_a_backtest(series: Path) -> None:
    console = Console(width=110, record=True, quiet=True)
    assert backtest_series(SeriesRequest(series), BacktestRequest(2), False, console) == FINE


def test_the_picture_of_a_forecast(series: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert forecast_series(SeriesRequest(series), False, Console(width=110)) == FINE
    picture = capsys.readouterr().out
    assert "now  +120 min" in picture
    assert "step 4 (to +120 min): q0.5" in picture
    assert max(map(len, picture.splitlines())) <= 110


def test_the_json_of_a_forecast(series: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert forecast_series(SeriesRequest(series), True, CONSOLE) == FINE
    document = json.loads(capsys.readouterr().out)
    assert document["originSeconds"] == 6 * 86400
    assert [step["step"] for step in document["steps"]] == [1, 2, 3, 4]


def test_a_pool_without_a_prometheus_is_told_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert forecast_series(SeriesRequest(Path("inference/llama-8b")), True, CONSOLE) == WRONG_USAGE
    said = "cannot read inference/llama-8b: No such file or directory; for the load of a pool give --prometheus-url"
    assert capsys.readouterr().err == f"tokenscaler: {said}\n"


def test_requests_are_binned(capsys: pytest.CaptureFixture[str]) -> None:
    request = SeriesRequest(TRACES / "llm_azure2023_conv_requests.csv", "input_tokens+output_tokens", "60s")
    assert backtest_series(request, BacktestRequest(0.01), True, CONSOLE) == FINE
    document = json.loads(capsys.readouterr().out)
    assert (document["binSeconds"], document["bins"]) == (60, 58)
    assert document["steps"][0]["ratioToSeasonalNaive"] is None


@pytest.mark.parametrize(
    ("text", "request_of", "scoring", "code", "message"),
    [
        pytest.param("a,b\n", {}, {}, WRONG_USAGE, "column timestamp_s, value not found", id="another header"),
        pytest.param(None, {}, {}, WRONG_USAGE, "cannot read", id="no such file"),
        pytest.param(
            "timestamp_s,value\n0,1\n", {"bin_width": "5 min"}, {}, WRONG_USAGE, "--bin 5 min", id="a bad bin"
        ),
        pytest.param("timestamp_s,value\n0,1\n", {"bin_width": "7m"}, {}, WRONG_USAGE, "divide a day", id="an odd bin"),
        pytest.param("timestamp_s,value\n0,1\n", {}, {"model": "oracle"}, WRONG_USAGE, "one of ridge", id="no model"),
        pytest.param("timestamp_s,value\n0,1\n", {}, {"test_days": 0}, WRONG_USAGE, "more than 0", id="no test days"),
        pytest.param(
            "timestamp_s,value\n0,1\n", {}, {"predictions": "no/such/out.csv"}, WRONG_USAGE, "cannot write", id="no out"
        ),
        pytest.param("timestamp_s,value\n0,1\n", {}, {}, NOT_RIGHT, "", id="too short to score anything"),
    ],
)
def test_wrong_input_is_refused_with_a_reason(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    request_of: dict[str, str],
    scoring: dict[str, object],
    code: int,
    message: str,
) -> None:
    path = tmp_path / "series.csv"
    if text is not None:
        path.write_text(text)
    if "predictions" in scoring:
        scoring = {**scoring, "predictions": tmp_path / str(scoring["predictions"])}
    result = backtest_series(SeriesRequest(path, **request_of), BacktestRequest(**scoring), True, CONSOLE)  # type: ignore[arg-type]
    assert result == code
    assert message in capsys.readouterr().err


def test_a_series_without_any_value_has_no_forecast(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "series.csv"
    path.write_text("timestamp_s,value\n0,\n300,\n")
    assert forecast_series(SeriesRequest(path), False, CONSOLE) == NOT_RIGHT
    assert "no load has been observed" in capsys.readouterr().err


def test_a_page_of_its_own_has_the_picture_and_needs_nothing_from_elsewhere(series: Path, tmp_path: Path) -> None:
    page = tmp_path / "forecast.html"
    assert forecast_series(SeriesRequest(series), True, CONSOLE, page) == FINE
    text = page.read_text(encoding="utf-8")
    assert "<svg" in text
    assert 'class="band"' in text
    assert "The model may act." in text
    assert text.count("<tr>") == 5  # a heading and four steps
    assert "http" not in text
    assert "NaN" not in text
    assert "nan" not in text


def test_a_page_that_cannot_be_written_is_a_wrong_use(series: Path, tmp_path: Path) -> None:
    assert forecast_series(SeriesRequest(series), True, CONSOLE, tmp_path / "no" / "such.html") == WRONG_USAGE
