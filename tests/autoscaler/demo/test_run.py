from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from rich.console import Console

from autoscaler.demo import run_demo
from autoscaler.demo.screen import render
from autoscaler.demo.world import read_policies
from tests.fakes.demo_fleet import DemoFleet

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/")


@contextmanager
def a_running_demo(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and the address that it printed."""
    command = [sys.executable, "-m", "autoscaler", "demo", "--port", "0", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TERM": "dumb"}
    )
    try:
        assert process.stdout is not None
        first_line = process.stdout.readline()
        found = ADDRESS.search(first_line)
        assert found, first_line + (process.stderr.read() if process.stderr else "")
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


def fetch(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return str(answer.read().decode())


def test_without_a_terminal_there_is_one_line_for_each_change_of_a_count() -> None:
    output = io.StringIO()
    exit_code = run_demo(port=0, speed=600.0, duration_seconds=2.0, console=Console(file=output, width=80))
    lines = output.getvalue().splitlines()
    assert exit_code == 0
    assert "in simulation" in lines[0]
    assert ADDRESS.search(lines[0])
    changes = [line for line in lines if re.match(r"\d\d:\d\d:\d\d demo/\S+ \d+ -> \d+ \w+: \d+: ", line)]
    assert changes
    assert lines[-1].startswith("assistant-70b: ")
    assert "within the objectives" in lines[-1]


def test_on_a_terminal_there_is_a_table_with_the_decisions_in_words() -> None:
    fleet = DemoFleet()
    fleet.run(40)
    output = Console(file=io.StringIO(), width=220, record=True)
    output.print(render(fleet.recorder.snapshot, "http://127.0.0.1:8080/"))
    text = output.export_text()
    assert "http://127.0.0.1:8080/" in text
    assert "in simulation" in text
    view = fleet.recorder.snapshot.pools["demo", "chat-8b"]
    assert view.decision is not None
    assert view.decision.message[:40] in text
    assert "tokenRate" in text


def test_a_port_that_is_taken_is_replaced_by_a_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        output = io.StringIO()
        assert run_demo(port=port, duration_seconds=0.3, console=Console(file=output, width=200)) == 0
    found = ADDRESS.search(output.getvalue())
    assert found
    assert f":{port}/" not in found[0]


def test_it_serves_page_and_metrics_and_ends_cleanly_on_ctrl_c() -> None:
    with a_running_demo() as (process, address):
        assert "<title>Tokenscaler</title>" in fetch(address)
        deadline = time.monotonic() + 20
        while not json.loads(fetch(f"{address}api/fleet"))["pools"]:
            assert time.monotonic() < deadline
        assert 'tokenscaler_ready_replicas{name="chat-8b",namespace="demo"}' in fetch(f"{address}metrics")
        assert json.loads(fetch(f"{address}decisions/demo/chat-8b"))["name"] == "chat-8b"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 0
        assert errors == ""


def test_it_ends_by_itself_after_its_duration() -> None:
    with a_running_demo("--duration", "1") as (process, _):
        output, errors = process.communicate(timeout=20)
        assert process.returncode == 0, errors
        assert "accelerator-hours" in output


def test_the_page_is_to_be_reached_from_this_machine_only() -> None:
    with a_running_demo() as (_, address):
        port = int(address.rsplit(":", 1)[1].strip("/"))
        with pytest.raises(OSError, match=r"."), socket.create_connection(("127.0.0.2", port), timeout=2):
            pass


def test_the_policies_are_such_as_a_user_would_apply() -> None:
    chat, assistant = read_policies()
    assert (chat.name, assistant.name) == ("chat-8b", "assistant-70b")
    assert assistant.spec.schedules[0].min_replicas == 10
