from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autoscaler.replay.arrivals import arrivals
from autoscaler.replay.trace import (
    BinnedTrace,
    RequestTrace,
    TraceError,
    draw_requests,
    read_trace,
    scale_requests,
    shipped_trace,
)

HEADER = "timestamp_s,value,input_tokens,output_tokens\n"


def a_file(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "trace.csv"
    path.write_text(header + "".join(f"{row}\n" for row in rows))
    return path


def test_a_trace_of_requests_is_read_in_order_of_time(tmp_path: Path) -> None:
    trace = read_trace(a_file(tmp_path, "5.5,1,300,20", "1,1,100,10", "1,1,200,10"))
    assert isinstance(trace, RequestTrace)
    assert trace.arrival_seconds.tolist() == [1.0, 1.0, 5.5]
    assert trace.input_tokens.tolist() == [100, 200, 300]
    assert "sorted" in trace.assumptions[0]


def test_equal_steps_with_the_value_one_are_taken_for_requests_and_that_is_said(tmp_path: Path) -> None:
    trace = read_trace(a_file(tmp_path, "0,1,100,10", "60,1,100,10", "120,1,100,10"))
    assert isinstance(trace, RequestTrace)
    assert "not for a bin of 60 s" in trace.assumptions[0]


def test_one_request_is_a_trace(tmp_path: Path) -> None:
    trace = read_trace(a_file(tmp_path, "0,1,100,10"))
    assert isinstance(trace, RequestTrace)
    assert len(trace) == 1


def test_a_mark_of_byte_order_before_the_header_is_no_part_of_it(tmp_path: Path) -> None:
    """Spreadsheets write one, and nobody sees it."""
    assert len(read_trace(a_file(tmp_path, "0,1,100,10", header=f"\ufeff{HEADER}"))) == 1


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param(
            [*(f"{second},1,100,10" for second in range(9)), "9000,1,100,10"],
            "line 11: no request comes for 8992 s before it; that time is replayed without load",
            id="hours without a request after steady seconds",
        ),
        pytest.param(["0,1,100,10", "1,1,100,10", "2,3,100,10"], "line 4: value is 3", id="one row that is no request"),
        pytest.param(["0,2,100,10"], "one bin alone; it was taken to last 60 s", id="a bin whose length nobody tells"),
    ],
)
def test_what_a_trace_leaves_open_is_said(tmp_path: Path, rows: list[str], said: str) -> None:
    (assumption,) = read_trace(a_file(tmp_path, *rows)).assumptions
    assert said in assumption


def test_a_trace_whose_requests_are_far_apart_has_no_gap(tmp_path: Path) -> None:
    trace = read_trace(a_file(tmp_path, "0,1,100,10", "900,1,100,10", "3000,1,100,10", "3900,1,100,10"))
    assert trace.assumptions == ()


def test_a_binned_trace_has_rates_and_mean_lengths_and_names_its_gaps(tmp_path: Path) -> None:
    trace = read_trace(a_file(tmp_path, "0,2,2000,100", "60,,,", "180,4,4000,400", "240,0,0,0"))
    assert isinstance(trace, BinnedTrace)
    assert trace.bin_seconds == 60
    assert trace.end_seconds == 300
    assert trace.requests_per_second.tolist()[0] == 2
    assert np.isnan(trace.requests_per_second[1:3]).all()
    assert trace.input_tokens_per_request[0] == 1000
    assert "2 of 5 bins were not recorded" in trace.assumptions[0]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param([], "no rows", id="a trace without rows"),
        pytest.param(["0,1,100,10", "1.5,1,-5,10", "3,1,1,1"], "line 3: input_tokens is -5", id="negative tokens"),
        pytest.param(["0,1,100,10", "1.5,1,99999999999,10", "3,1,1,1"], "line 3: input_tokens", id="huge tokens"),
        pytest.param(["0,1,100,10", "1.5,1,100,0", "3,1,1,1"], "line 3: output_tokens is 0", id="no answer at all"),
        pytest.param(["0,1,100"], "line 2: 3 fields", id="a missing field"),
        pytest.param(["a,1,100,10"], "line 2: timestamp_s is 'a'", id="a stamp that is no number"),
        pytest.param(
            ["0,1,9,9", '1,1,9,"9', *["2,1,9,9"] * 20_000], "a quotation mark", id="a quote that nothing ends"
        ),
        pytest.param(["2026-11-30T10:00:00Z,1,9,9"], "not a number; give seconds", id="a date in place of seconds"),
        pytest.param(["1764547200000,1,9,9"], "divide it by 1000", id="a stamp in milliseconds"),
        pytest.param([",1,100,10"], "line 2: timestamp_s is ''", id="a stamp that is missing"),
        pytest.param(["0,nan,1,1", "inf,2,1,1"], "line 3: timestamp_s is inf", id="a stamp without end"),
        pytest.param(["0,2,9,9", "60,2,9,9", "60,3,9,9"], "line 4: repeats the stamp", id="a bin twice"),
        pytest.param(["60,2,9,9", "0,2,9,9"], "line 3: lies before the stamp", id="bins out of order"),
        pytest.param(["0,2,9,9", "60,2,9,9", "130,3,9,9"], "not on the grid of 60 s", id="bins of unequal length"),
        pytest.param(["0,2,9,9", "60,2,0,0"], "line 3: 2 requests/s without tokens", id="requests without tokens"),
    ],
)
def test_a_trace_that_cannot_be_used_says_where_and_why(tmp_path: Path, rows: list[str], said: str) -> None:
    with pytest.raises(TraceError) as error:
        read_trace(a_file(tmp_path, *rows))
    assert said in str(error.value)
    assert "trace.csv" in str(error.value)


def test_a_file_that_is_no_trace_says_which_header_is_wanted(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="must be timestamp_s,value,input_tokens,output_tokens"):
        read_trace(a_file(tmp_path, header="time,users\n"))


def test_drawn_requests_have_the_rate_and_the_mean_lengths_of_their_bins(tmp_path: Path) -> None:
    trace = read_trace(a_file(tmp_path, "0,20,20000,4000", "600,40,20000,4000"))
    assert isinstance(trace, BinnedTrace)
    drawn = draw_requests(trace, np.random.default_rng(1), 2.0, 0.0, 1200.0)
    first = drawn.part(0.0, 600.0)
    assert len(first) == pytest.approx(2 * 20 * 600, rel=0.05)
    assert len(drawn) - len(first) == pytest.approx(2 * 40 * 600, rel=0.05)
    assert first.input_tokens.mean() == pytest.approx(1000, rel=0.05)
    assert first.output_tokens.mean() == pytest.approx(200, rel=0.05)
    assert (np.diff(drawn.arrival_seconds) >= 0).all()
    again = draw_requests(trace, np.random.default_rng(1), 2.0, 0.0, 1200.0)
    assert (drawn.arrival_seconds == again.arrival_seconds).all()


def test_a_part_that_lies_outside_a_binned_trace_is_refused(tmp_path: Path) -> None:
    trace = read_trace(a_file(tmp_path, "0,2,9,9", "60,2,9,9"))
    assert isinstance(trace, BinnedTrace)
    with pytest.raises(TraceError, match="lasts from 0 to 120 s"):
        draw_requests(trace, np.random.default_rng(1), 1.0, 500.0, 900.0)


def test_a_scaled_trace_has_that_many_times_the_requests_and_keeps_its_shape() -> None:
    trace = shipped_trace("azure_conversation_2023")
    assert isinstance(trace, RequestTrace)
    scaled = scale_requests(trace, np.random.default_rng(1), 2.5)
    assert len(scaled) == pytest.approx(2.5 * len(trace), rel=0.02)
    assert (np.diff(scaled.arrival_seconds) >= 0).all()
    before = np.histogram(trace.arrival_seconds, bins=10, range=(0, 3400))[0]
    after = np.histogram(scaled.arrival_seconds, bins=10, range=(0, 3400))[0]
    assert after == pytest.approx(2.5 * before, rel=0.1)
    assert scale_requests(trace, np.random.default_rng(1), 1.0) is trace
    with pytest.raises(TraceError, match="above 0"):
        scale_requests(trace, np.random.default_rng(1), 0.0)


def test_the_shipped_traces_can_be_read_and_say_where_they_come_from() -> None:
    conversation, client = shipped_trace("azure_conversation_2023"), shipped_trace("servegen_client_10min")
    assert isinstance(conversation, RequestTrace)
    assert (len(conversation), int(conversation.input_tokens.max())) == (19_366, 14_050)
    assert isinstance(client, BinnedTrace)
    assert client.end_seconds == 48 * 3600
    import autoscaler.replay

    folder = Path(autoscaler.replay.__path__[0]) / "traces"
    attribution = (folder / "ATTRIBUTION.md").read_text()
    for path in folder.glob("*.csv"):
        assert path.name in attribution
        assert path.stat().st_size < 400_000


def test_a_trace_can_begin_in_its_middle_and_again_at_its_end(tmp_path: Path) -> None:
    trace = read_trace(a_file(tmp_path, "0,1,10,1", "4,1,20,1", "5,1,30,1"))
    assert isinstance(trace, RequestTrace)
    repeated = arrivals(trace, starts_at_seconds=1000.0, from_trace_seconds=4.0, shared_prefix_tokens=15, repeats=True)
    taken = [next(repeated) for _ in range(4)]
    assert [request.input_tokens for request in taken] == [20, 30, 10, 20]
    assert [round(request.arrived_at, 2) for request in taken] == [1000.0, 1001.0, 1001.0, 1005.0]
    assert [request.cached_tokens for request in taken] == [15, 15, 9, 15]


def test_an_empty_part_of_a_trace_is_refused(tmp_path: Path) -> None:
    trace = read_trace(a_file(tmp_path, "0,1,10,1", "4,1,20,1", "5,1,30,1"))
    assert isinstance(trace, RequestTrace)
    with pytest.raises(TraceError, match="no requests"):
        next(arrivals(trace.part(1.0, 2.0), starts_at_seconds=0.0))
