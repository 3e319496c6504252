"""What `tokenscaler explain` prints, and with which exit code it ends."""

from __future__ import annotations

import http.server
import io
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from autoscaler.commands.explain import SAID_AT_MOST, explain_log, explain_target
from autoscaler.commands.record_window import WHOLE, RecordWindow
from autoscaler.controller.latest_records import LatestRecords
from autoscaler.decision_record import DecisionRecord
from autoscaler.explain import render_record
from autoscaler.http_server import HttpServer, create_app
from autoscaler.telemetry import Telemetry
from policies.cold_start import ColdStart
from policies.observation import QueryUnknown, ReplicaCounts
from tests.builders import NOW, a_blackout, a_history, an_observation
from tests.pool_builders import a_decision_report, a_record, a_scaler, some_waiting
from tests.servers.ports import free_port

CUSTOM = {"custom": [{"name": "sessions", "query": "sum(rate(x[5m]))", "perReplica": 20}]}


def a_console() -> Console:
    return Console(file=io.StringIO(), width=200)


def printed(record: DecisionRecord) -> str:
    console = a_console()
    console.print(render_record(record), highlight=False)
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


def tampered(record: DecisionRecord) -> DecisionRecord:
    return record.model_copy(update={"decision": replace(record.decision, desired_replicas=80)})


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param(a_record(), "inference/llama 2030-03-17T17:46:40.000Z 4 -> 8 WaitingRequests (Scale)", id="head"),
        pytest.param(a_record(), "8: waiting requests (80 at 10 a replica) need 8", id="the sentence"),
        pytest.param(
            a_record(), "replicas: 4 asked for, 4 ready, 0 starting, 0 stuck, 0 terminating", id="the replicas"
        ),
        pytest.param(
            a_record(), "a start takes 60 s, nine in ten up to 60 s (the policy's prior)", id="how long a start takes"
        ),
        pytest.param(
            a_record(
                a_decision_report(
                    replicas=ReplicaCounts(4, 4, 4).without_wedged(1),
                    metrics=some_waiting(30.0, ready=3, wedged_replicas=("llama-2",)),
                    cold_start=ColdStart(50.0, 80.0, 90.0, starts=7),
                )
            ),
            "a start takes 50 s, nine in ten up to 80 s (7 starts seen); wedged: llama-2",
            id="who stands still",
        ),
        pytest.param(a_record(), "waitingRequests 80 20 4 0 0 5 s", id="a signal"),
        pytest.param(a_record(), "* waitingRequests 8.00", id="the binding vote is marked"),
        pytest.param(a_record(), "tolerance 8 8 NotLimited", id="each limit"),
        pytest.param(a_record(), "at this moment without waitingRequests: 4", id="what would be without it"),
        pytest.param(
            a_record(), "write: SucceededRescale: Deployment inference/llama: 4 -> 8", id="what came of the write"
        ),
        pytest.param(a_record(), "decided again from this record: the same", id="the proof"),
        pytest.param(
            tampered(a_record()), "decision.desiredReplicas: recorded 80, decided again 8", id="a proof that fails"
        ),
        pytest.param(
            a_record(a_decision_report(metrics=a_blackout("no [route] to [/host]"))),
            "metrics: PrometheusUnreachable: no [route] to [/host]",
            id="a blackout",
        ),
        pytest.param(
            a_record(
                a_decision_report(
                    scaler=a_scaler(signals=CUSTOM),
                    metrics=an_observation(queries={"custom/sessions": QueryUnknown("bad [/x] in [foo] x[5m] :key:")}),
                )
            ),
            "bad [/x] in [foo] x[5m] :key:",
            id="brackets of PromQL are no markup",
        ),
        pytest.param(
            a_record(a_decision_report(metrics=an_observation(warnings=("kv_cache was renamed",)))),
            "warning: kv_cache was renamed",
            id="warnings of the metrics",
        ),
    ],
)
def test_a_record_is_printed_in_words(record: DecisionRecord, expected: str) -> None:
    assert expected in printed(record)


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "decisions.jsonl"


def a_line(*, name: str = "llama", is_tampered: bool = False) -> str:
    record = a_record(a_decision_report(scaler=a_scaler(name), waiting=80.0))
    return (tampered(record) if is_tampered else record).to_json_line() + "\n"


@pytest.mark.parametrize(
    ("lines", "target", "code", "said"),
    [
        pytest.param(
            [a_line(), a_line()],
            None,
            0,
            "2 decisions decided again, 0 came out otherwise, 0 lines unreadable",
            id="a log that is right",
        ),
        pytest.param(
            [a_line(is_tampered=True), a_line()],
            None,
            1,
            "inference/llama at 2030-03-17T17:46:40.000Z: decision.desiredReplicas: recorded 80, decided again 8",
            id="a record that was tampered with",
        ),
        pytest.param(
            [a_line(name="other", is_tampered=True), a_line()],
            "inference/llama",
            0,
            "1 decisions decided again, 0 came out otherwise",
            id="only the pool that was asked for is decided again",
        ),
        pytest.param(
            [a_line(), "nonsense\n", a_line()],
            None,
            1,
            ":2: no decision record: Invalid JSON",
            id="a line that is no record",
        ),
        pytest.param(
            [a_line(), a_line()[:200]],
            None,
            0,
            ":2: the last line is cut short and left out",
            id="a last line that was cut short is named and forgiven",
        ),
        pytest.param(
            [a_line(), a_line()[:200] + "\n", a_line()],
            None,
            1,
            ":2: no decision record: Invalid JSON",
            id="a line that was cut short in the middle is not forgiven",
        ),
        pytest.param(
            [a_line(), '{"schemaVersion": 7}\n'],
            None,
            1,
            ":2: no decision record: schemaVersion 7 is newer than this program's 3",
            id="a record of a newer program",
        ),
        pytest.param([], None, 2, "no decision record in ", id="an empty log"),
        pytest.param([a_line()], "inference/other", 2, "no decision record of inference/other in ", id="no such pool"),
    ],
)
def test_a_log_is_decided_again(
    log_path: Path,
    capsys: pytest.CaptureFixture[str],
    lines: list[str],
    target: str | None,
    code: int,
    said: str,
) -> None:
    log_path.write_text("".join(lines))
    assert explain_log(log_path, target, WHOLE, False, a_console()) == code
    output = capsys.readouterr()
    assert said in output.out + output.err


def test_a_log_that_is_not_there_is_wrong_usage(log_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain_log(log_path, None, WHOLE, False, a_console()) == 2
    assert capsys.readouterr().err == f"tokenscaler: cannot read the log {log_path}: No such file or directory\n"


def test_as_json_the_newest_record_is_all_that_stands_on_stdout(
    log_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_path.write_text(a_line(name="one") + a_line(name="two"))
    assert explain_log(log_path, None, WHOLE, True, a_console()) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "two"


def test_of_many_bad_lines_the_first_are_said_and_the_rest_counted(
    log_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_path.write_text(a_line() + "nonsense\n" * 5000 + a_line(is_tampered=True) * 3)
    assert explain_log(log_path, None, WHOLE, False, a_console()) == 1
    output = capsys.readouterr()
    assert output.err.count("\n") == SAID_AT_MOST + 1
    assert output.err.endswith("and more of this kind: the rest is only counted\n")
    assert "4 decisions decided again, 3 came out otherwise, 5000 lines unreadable" in output.out


def test_a_file_that_is_no_log_at_all_is_told_from_one_that_is_empty(
    log_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_path.write_text("nonsense\n" * 3)
    assert explain_log(log_path, None, WHOLE, False, a_console()) == 1
    assert "0 decisions decided again, 0 came out otherwise, 3 lines unreadable" in capsys.readouterr().out


def a_course(*, name: str = "llama", is_tampered: bool = False) -> str:
    """Ten minutes of a pool: 4 replicas are enough until the fifth, then 6 are wanted, and from the eighth 4 again."""
    wanted = [4, 4, 4, 4, 4, 6, 6, 6, 4, 4]
    lines = []
    for minute, replicas in enumerate(wanted):
        report = a_decision_report(
            scaler=a_scaler(name), waiting=10.0 * replicas, now_seconds=NOW + 60.0 * minute, history=a_history()
        )
        record = a_record(report)
        lines.append((tampered(record) if is_tampered and minute == 6 else record).to_json_line() + "\n")
    return "".join(lines)


@pytest.mark.parametrize(
    ("window", "shown", "decided"),
    [
        pytest.param(
            RecordWindow(back_seconds=1e6),
            ["17:46:40.000Z 4 -> 4", "17:51:40.000Z 4 -> 6", "17:54:40.000Z 4 -> 4"],
            10,
            id="a line for each change",
        ),
        pytest.param(
            RecordWindow(back_seconds=240.0),
            ["17:51:40.000Z 4 -> 6", "17:54:40.000Z 4 -> 4"],
            5,
            id="so long back from the newest record",
        ),
        pytest.param(RecordWindow(back_seconds=0.0), ["17:55:40.000Z 4 -> 4"], 1, id="the newest alone"),
        pytest.param(RecordWindow(at_seconds=NOW + 299.9), ["17:50:40.000Z 4 -> 4"], 1, id="in force just before"),
        pytest.param(RecordWindow(at_seconds=NOW + 300.0), ["17:51:40.000Z 4 -> 6"], 1, id="in force from then on"),
        pytest.param(RecordWindow(at_seconds=NOW + 1e6), ["17:55:40.000Z 4 -> 4"], 1, id="in force after the last"),
    ],
)
def test_of_a_log_a_moment_or_the_last_while_is_shown(
    log_path: Path, capsys: pytest.CaptureFixture[str], window: RecordWindow, shown: list[str], decided: int
) -> None:
    log_path.write_text(a_course(name="other") + a_course())
    console = a_console()
    assert explain_log(log_path, "inference/llama", window, False, console) == 0
    assert isinstance(console.file, io.StringIO)
    headlines = [line for line in console.file.getvalue().splitlines() if line.startswith("inference/llama")]
    assert [" ".join(line.split()[1:5]).removeprefix("2030-03-17T") for line in headlines] == shown
    assert f"{decided} decisions decided again, 0 came out otherwise" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("window", "code"),
    [
        pytest.param(RecordWindow(back_seconds=600.0), 1, id="within the window"),
        pytest.param(RecordWindow(back_seconds=120.0), 0, id="before the window"),
        pytest.param(RecordWindow(at_seconds=NOW + 360.0), 1, id="the one of that moment"),
        pytest.param(RecordWindow(at_seconds=NOW + 420.0), 0, id="not the one of that moment"),
    ],
)
def test_only_what_was_asked_for_is_judged(log_path: Path, window: RecordWindow, code: int) -> None:
    log_path.write_text(a_course(is_tampered=True))
    assert explain_log(log_path, "inference/llama", window, False, a_console()) == code


@pytest.mark.parametrize(
    ("target", "said"),
    [
        pytest.param("inference/llama", "no decision record of inference/llama at that time in ", id="before the log"),
        pytest.param(None, "--at: of which pool? Give NAMESPACE/NAME too", id="of no pool"),
    ],
)
def test_a_moment_of_which_nothing_is_known_is_refused(
    log_path: Path, capsys: pytest.CaptureFixture[str], target: str | None, said: str
) -> None:
    log_path.write_text(a_course())
    assert explain_log(log_path, target, RecordWindow(at_seconds=NOW - 1.0), False, a_console()) == 2
    assert said in capsys.readouterr().err


def test_the_course_as_json_is_one_record_a_line(log_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log_path.write_text(a_course())
    assert explain_log(log_path, None, RecordWindow(back_seconds=120.0), True, a_console()) == 0
    output = capsys.readouterr()
    assert [json.loads(line)["decision"]["desiredReplicas"] for line in output.out.splitlines()] == [6, 4, 4]
    assert output.err == "3 decisions decided again, 0 came out otherwise, 0 lines unreadable\n"


@pytest.fixture(scope="module")
def controller() -> Iterator[str]:
    records = LatestRecords(None)
    records.report([a_decision_report(waiting=80.0)])
    server = HttpServer(create_app(Telemetry(), records, lambda: True, lambda: None), "127.0.0.1", 0)
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.stop()


def test_a_running_controller_explains_its_newest_decision(controller: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain_target("inference/llama", controller + "/", None, None, WHOLE, True, a_console()) == 0
    assert json.loads(capsys.readouterr().out)["decision"]["desiredReplicas"] == 8


def test_a_running_controller_tells_the_course_and_a_moment_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    records = LatestRecords(None)
    for age, waiting in ((3000.0, 80.0), (2000.0, 80.0), (1000.0, 60.0), (500.0, 40.0), (0.0, 40.0)):
        records.report([a_decision_report(waiting=waiting, now_seconds=NOW - age, history=a_history())])
    server = HttpServer(create_app(Telemetry(), records, lambda: True, lambda: None), "127.0.0.1", 0)
    server.start()
    url = f"http://127.0.0.1:{server.port}"

    def asked(window: RecordWindow) -> tuple[int, list[int]]:
        code = explain_target("inference/llama", url, None, None, window, True, a_console())
        lines = capsys.readouterr().out.splitlines()
        return code, [json.loads(line)["decision"]["desiredReplicas"] for line in lines]

    try:
        assert asked(WHOLE) == (0, [4])
        assert asked(RecordWindow(back_seconds=2500.0)) == (0, [8, 8, 6, 4, 4])
        assert asked(RecordWindow(back_seconds=600.0)) == (0, [6, 4, 4])
        assert asked(RecordWindow(at_seconds=NOW - 700.0)) == (0, [6])
        assert asked(RecordWindow(at_seconds=NOW - 1e6)) == (2, [])
    finally:
        server.stop()


def test_a_moment_needs_a_log_or_a_controller(capsys: pytest.CaptureFixture[str]) -> None:
    window = RecordWindow(back_seconds=60.0)
    assert explain_target("inference/llama", None, None, None, window, True, a_console()) == 2
    assert "the object's status has the newest record only" in capsys.readouterr().err


def _no_controller(_: str) -> str:
    return f"http://127.0.0.1:{free_port()}"


@pytest.mark.parametrize(
    ("target", "url", "code", "said"),
    [
        pytest.param("llama", str, 2, "llama: NAMESPACE/NAME is wanted", id="no namespace"),
        pytest.param("a/b/c", str, 2, "a/b/c: NAMESPACE/NAME is wanted", id="too much of a name"),
        pytest.param("/llama", str, 2, "/llama: NAMESPACE/NAME is wanted", id="an empty namespace"),
        pytest.param(
            "inference/llama",
            lambda url: url.removeprefix("http://"),
            2,
            "an http:// or https:// address is wanted",
            id="an address without http",
        ),
        pytest.param(
            "inference/other", str, 2, '404 {"problem":"no decision for inference/other yet', id="an unknown pool"
        ),
        pytest.param("inference/a b?c", str, 2, "/decisions/inference/a%20b%3Fc: 404", id="a name that needs quoting"),
        pytest.param(
            "inference/llama", _no_controller, 2, "is the controller there, or is a port-forward missing?", id="nobody"
        ),
    ],
)
def test_what_cannot_be_explained_is_said_in_one_line(
    controller: str,
    capsys: pytest.CaptureFixture[str],
    target: str,
    url: Callable[[str], str],
    code: int,
    said: str,
) -> None:
    assert explain_target(target, url(controller), None, None, WHOLE, False, a_console()) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.startswith("tokenscaler: ")
    assert error.count("\n") == 1


class _Elsewhere(http.server.BaseHTTPRequestHandler):
    """Some other program on the port: one that speaks no HTTP, or a page that is no record."""

    def do_GET(self) -> None:
        if self.path.endswith("ssh"):
            self.wfile.write(b"SSH-2.0-server\r\n")
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        pytest.param("ssh", 2, "SSH-2.0-server", id="a program that speaks no HTTP"),
        pytest.param(
            "page", 1, "the record of inference/page cannot be read: Invalid JSON", id="a page of something else"
        ),
    ],
)
def test_an_answer_of_another_program_is_said_to_be_none(
    capsys: pytest.CaptureFixture[str], name: str, code: int, said: str
) -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), _Elsewhere)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        assert explain_target(f"inference/{name}", url, None, None, WHOLE, False, a_console()) == code
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert said in capsys.readouterr().err
