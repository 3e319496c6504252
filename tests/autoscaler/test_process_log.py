"""Process logs are JSON, one object a line, whatever is logged."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autoscaler.process_log import JsonFormatter, configure_process_log

LOGGER_NAMES = ("", "apscheduler", "urllib3", "kubernetes", "uvicorn", "asyncio")


@pytest.fixture(autouse=True)
def _restored_loggers() -> Iterator[None]:
    root = logging.getLogger()
    handlers, levels = root.handlers[:], {name: logging.getLogger(name).level for name in LOGGER_NAMES}
    yield
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def formatted(**record: Any) -> dict[str, Any]:
    line = JsonFormatter().format(logging.makeLogRecord({"name": "autoscaler.x", "levelname": "INFO", **record}))
    assert "\n" not in line
    document: dict[str, Any] = json.loads(line)
    return document


def test_a_line_has_time_level_logger_message_and_the_fields() -> None:
    line = formatted(created=1_900_000_000.25, msg="scaled", scaler="inference/llama", replicas=8)
    assert line == {
        "time": "2030-03-17T17:46:40.250+00:00",
        "level": "info",
        "logger": "autoscaler.x",
        "message": "scaled",
        "scaler": "inference/llama",
        "replicas": 8,
    }


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param("two\nlines", "two\nlines", id="a line break"),
        pytest.param(Path("/etc/x"), "/etc/x", id="a path"),
        pytest.param(ValueError("no"), "no", id="an exception"),
        pytest.param(float("nan"), None, id="not a number"),
        pytest.param(2**70, str(2**70), id="a number beyond 64 bits"),
        pytest.param("\udcff.yaml", "\udcff.yaml", id="a file name that is no UTF-8"),
        pytest.param({1: "x"}, "{1: 'x'}", id="keys that are no text"),
        pytest.param((1, 2), [1, 2], id="a tuple"),
    ],
)
def test_whatever_a_field_holds_the_line_is_json(field: object, expected: object) -> None:
    line = formatted(msg="m", field=field)
    assert line["message"] == "m"
    assert line["field"] == expected


def test_arguments_of_a_librarys_message_are_put_in() -> None:
    assert formatted(msg="%s of %s", args=(1, 2))["message"] == "1 of 2"


def test_a_field_never_hides_the_level_or_the_time() -> None:
    line = formatted(msg="m", level="loud", time="now")
    assert line["level"] == "info"
    assert line["time"] != "now"


def test_a_traceback_is_part_of_its_line() -> None:
    try:
        os.environ["NO_SUCH_VARIABLE"]
    except KeyError as error:
        line = formatted(msg="m", exc_info=(type(error), error, error.__traceback__))
    assert line["traceback"].endswith("KeyError: 'NO_SUCH_VARIABLE'\n")


def test_logs_go_to_stderr_from_the_level_on(capsys: pytest.CaptureFixture[str]) -> None:
    configure_process_log("warning")
    logging.getLogger("autoscaler.x").info("quiet")
    logging.getLogger("autoscaler.x").warning("loud", extra={"field": 1})
    output = capsys.readouterr()
    assert output.out == ""
    assert [json.loads(line)["message"] for line in output.err.splitlines()] == ["loud"]


@pytest.mark.parametrize(
    ("level", "name", "of", "expected"),
    [
        pytest.param("debug", "uvicorn", "info", False, id="a library that logs each request is quiet"),
        pytest.param("info", "uvicorn", "warning", True, id="its warnings are logged"),
        pytest.param("error", "uvicorn", "warning", False, id="unless only errors are wanted"),
        pytest.param("info", "urllib3.connectionpool", "warning", False, id="who asks speaks for its connections"),
        pytest.param("info", "apscheduler.executors.default", "error", False, id="the loop speaks for its scheduler"),
        pytest.param("debug", "autoscaler.controller.loop", "debug", True, id="debug is for our own"),
    ],
)
def test_libraries_are_kept_quiet(
    capsys: pytest.CaptureFixture[str], level: str, name: str, of: str, expected: bool
) -> None:
    configure_process_log(level)
    logging.getLogger(name).log(logging.getLevelName(of.upper()), "said")
    assert ("said" in capsys.readouterr().err) is expected
