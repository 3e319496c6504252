"""The command line: help with an example, exit codes, and one clear line for wrong input."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner, Result

from autoscaler.cli import app
from tests.fakes.api_server import FakeApiServer, Resource
from tests.pool_builders import a_record

URL = "http://127.0.0.1:9"
PAGES = Path(__file__).parent / "engines" / "pages"


def tokenscaler(*arguments: str, stdin: str | None = None) -> Result:
    # Wide, so that a line of help is a line.
    return CliRunner(env={"COLUMNS": "300", "TERMINAL_WIDTH": "300"}).invoke(app, arguments, input=stdin)


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("apscheduler").setLevel(logging.NOTSET)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[str]:
    with FakeApiServer() as server:
        yield str(server.write_kubeconfig(tmp_path))


def _commands(group: TyperGroup, *path: str) -> Iterator[tuple[str, ...]]:
    yield path
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, *path, name)
        else:
            yield (*path, name)


def _all_commands() -> list[tuple[str, ...]]:
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    return list(_commands(root))


@pytest.mark.parametrize("path", [pytest.param(path, id=" ".join(("tokenscaler", *path))) for path in _all_commands()])
def test_every_commands_help_has_an_example(path: tuple[str, ...]) -> None:
    result = tokenscaler(*path, "--help")
    assert result.exit_code == 0
    assert "Example" in result.output
    assert f"tokenscaler {' '.join(path)}".strip() in result.output.partition("Example")[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("nonsense",), "No such command 'nonsense'", id="an unknown command"),
        pytest.param(("run",), "Missing option '--prometheus-url'", id="run without a Prometheus"),
        pytest.param(("run", "--prometheus-url", "prometheus:9090"), "is no http:// or https:// address", id="no URL"),
        pytest.param(
            ("run", "--prometheus-url", "http://me:secret@prometheus"),
            "a name and password in the address would be logged",
            id="a password in the address",
        ),
        pytest.param(
            ("run", "--prometheus-url", URL, "--log-level", "loud"),
            "--log-level loud: debug, info, warning or error is wanted",
            id="an unknown log level",
        ),
        pytest.param(
            ("run", "--prometheus-url", URL, "--tick-seconds", "0"),
            "Input should be greater than or equal to 0.1",
            id="no interval",
        ),
        pytest.param(
            ("run", "--prometheus-url", URL, "--tick-seconds", "soon"), "Input should be a valid number", id="no number"
        ),
        pytest.param(
            ("run", "--prometheus-url", URL, "--http-port", "70000"),
            "Input should be less than or equal to 65535",
            id="no port",
        ),
        pytest.param(
            ("run", "--prometheus-url", URL, "--prometheus-config", "/nowhere/p.yaml"),
            "cannot read /nowhere/p.yaml: No such file",
            id="no such file",
        ),
        pytest.param(
            ("run", "--prometheus-url", URL, "--kubeconfig", "/nowhere/kubeconfig"),
            "reading kubeconfig /nowhere/kubeconfig failed",
            id="no such kubeconfig",
        ),
        pytest.param(
            ("run", "--prometheus-url", URL, "--forward-to", "https://keda"),
            "--forward-to goes with --metrics-api-port",
            id="a provider behind nothing",
        ),
        pytest.param(
            ("run", "--prometheus-url", URL, "--metrics-api-port", "0", "--forward-to", "http://keda"),
            "url: http://keda: an https:// address is wanted",
            id="a provider in the clear",
        ),
        pytest.param(
            ("run", "--prometheus-url", URL, "--keda-port", "0"),
            "--keda-port and --keda-certificate go together",
            id="KEDA in the clear",
        ),
        pytest.param(
            ("run", "--prometheus-url", URL, "--dry-run", "--keda-port", "0", "--keda-certificate", "/keda"),
            "--dry-run answers no KEDA: its HPA would write what it reads there",
            id="a dry run that KEDA acts on",
        ),
        pytest.param(("explain",), "explain: give NAMESPACE/NAME or --log FILE (or both)", id="explain of nothing"),
        pytest.param(("explain", "llama", "--url", URL), "llama: NAMESPACE/NAME is wanted", id="a name alone"),
        pytest.param(("explain", "a/b", "--url", "x:1"), "an http:// or https:// address is wanted", id="no address"),
        pytest.param(
            ("explain", "a/b", "--kubeconfig", "/nowhere/kubeconfig"),
            "reading kubeconfig /nowhere/kubeconfig failed",
            id="explain without a cluster",
        ),
        pytest.param(
            ("explain", "--log", "/nowhere/log"), "cannot read the log /nowhere/log: No such file", id="no such log"
        ),
        pytest.param(("explain", "a/b", "--output", "xml"), "'xml' is not one of 'text', 'json'", id="no such output"),
        pytest.param(("doctor", "metrics"), "Missing option '--page'", id="doctor without a page"),
        pytest.param(
            ("doctor", "metrics", "--page", "/nowhere/page"),
            "cannot read /nowhere/page: No such file",
            id="no such page",
        ),
        pytest.param(
            ("doctor", "metrics", "--page", "ftp://host/page"),
            "cannot read 'ftp://host/page': a file, an http:// or https:// address, or - is wanted",
            id="a page by another protocol",
        ),
        pytest.param(
            ("doctor", "metrics", "--page", "-", "--engine", "llm"), "--engine llm: one of vllm, ", id="no such engine"
        ),
        pytest.param(
            ("demo", "--speed", "0"), "Input should be greater than or equal to 1", id="a demo that stands still"
        ),
    ],
)
def test_wrong_usage_ends_with_2_and_one_clear_line(arguments: tuple[str, ...], said: str) -> None:
    result = tokenscaler(*arguments)
    assert result.exit_code == 2
    (line,) = [line for line in result.stderr.splitlines() if said in line]
    assert "Traceback" not in result.output
    assert line.startswith(("tokenscaler: ", "Error", "│", "Invalid")) or "Error" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(
            ("--config", "/nowhere"), "/nowhere is not a folder with InferenceScaler YAML", id="no such folder"
        ),
        pytest.param(
            ("--decisions", "/nowhere/log"), "cannot write decisions to /nowhere/log: No such", id="no such log"
        ),
        pytest.param(("--context", "other"), "(context other) failed", id="no such context"),
        pytest.param(
            ("--keda-port", "0", "--keda-certificate", "/nowhere"),
            "KEDA's external scaler: [Errno 2] No such file or directory: '/nowhere/tls.crt'",
            id="no certificates for KEDA",
        ),
    ],
)
def test_a_controller_that_cannot_begin_says_why(kubeconfig: str, arguments: tuple[str, ...], said: str) -> None:
    result = tokenscaler("run", "--prometheus-url", URL, "--kubeconfig", kubeconfig, "--http-port", "0", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert [line[:13] for line in result.stderr.splitlines()] == ["tokenscaler: "]


def test_a_port_that_is_taken_is_said_at_once(kubeconfig: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = tokenscaler(
            "run",
            "--prometheus-url",
            URL,
            "--kubeconfig",
            kubeconfig,
            "--http-host",
            "127.0.0.1",
            f"--http-port={port}",
        )
    assert result.exit_code == 2
    assert result.stderr.startswith(f"tokenscaler: cannot listen on 127.0.0.1:{port}: Address already in use")
    assert result.stderr.count("\n") == 1


def test_explain_of_a_log_that_is_right_ends_with_0(tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    log.write_text(a_record().to_json_line() + "\n")
    result = tokenscaler("explain", "--log", str(log))
    assert result.exit_code == 0
    assert "decided again from this record: the same" in result.stdout
    assert "1 decisions decided again, 0 came out otherwise, 0 lines unreadable" in result.stdout


def test_explain_of_a_changed_log_ends_with_1(tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    log.write_text(a_record().to_json_line().replace('"desiredReplicas":8', '"desiredReplicas":9') + "\n")
    result = tokenscaler("explain", "inference/llama", "--log", str(log))
    assert result.exit_code == 1
    assert "decision.desiredReplicas: recorded 9, decided again 8" in result.stderr


def test_explain_of_the_last_while_is_a_line_a_change(tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    log.write_text(f"{a_record().to_json_line()}\n" * 3)
    result = tokenscaler("explain", "inference/llama", "--log", str(log), "--since", "1h30m")
    assert result.exit_code == 0
    assert result.stdout == (
        "inference/llama  2030-03-17T17:46:40.000Z  4 -> 8  WaitingRequests  (Scale) "
        "8: waiting requests (80 at 10 a replica) need 8\n"
        "3 decisions decided again, 0 came out otherwise, 0 lines unreadable\n"
    )
    wrong = tokenscaler("explain", "inference/llama", "--log", str(log), "--at", "noon")
    assert (wrong.exit_code, wrong.stderr) == (
        2,
        "tokenscaler: --at noon: a time such as 2026-11-30T09:30:00Z is wanted\n",
    )


def test_explain_as_json_is_json(tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    log.write_text(a_record().to_json_line() + "\n")
    result = tokenscaler("explain", "--log", str(log), "--output", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["decision"]["desiredReplicas"] == 8


def test_explain_of_nobody_ends_with_2_for_nothing_was_checked() -> None:
    result = tokenscaler("explain", "inference/llama", "--url", URL)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"tokenscaler: GET {URL}/decisions/inference/llama: ")
    assert result.stderr.count("\n") == 1


def test_explain_reads_the_record_in_an_objects_status(tmp_path: Path) -> None:
    with FakeApiServer() as server:
        kubeconfig = str(server.write_kubeconfig(tmp_path))
        server.add_resource(Resource("tokenscaler.io/v1alpha1", "inferencescalers", "InferenceScaler"))
        statuses: dict[str, dict[str, str]] = {
            "llama": {"lastRecord": a_record().to_json_line()},
            "new": {},
            "lost": {"bindingReason": "TargetNotFound", "message": "Deployment inference/lost does not exist"},
        }
        for name, status in statuses.items():
            server.put("inferencescalers", {"metadata": {"namespace": "inference", "name": name}, "status": status})
        found = tokenscaler("explain", "inference/llama", "--kubeconfig", kubeconfig)
        new = tokenscaler("explain", "inference/new", "--kubeconfig", kubeconfig)
        lost = tokenscaler("explain", "inference/lost", "--kubeconfig", kubeconfig)
        missing = tokenscaler("explain", "inference/missing", "--kubeconfig", kubeconfig)
    assert found.exit_code == 0, found.stderr
    assert "4 -> 8" in found.stdout
    assert (new.exit_code, new.stderr) == (
        2,
        "tokenscaler: inference/new has no decision in its status yet; does a controller run? "
        "(a dry run writes no status: --url asks it)\n",
    )
    assert "in its status: TargetNotFound: Deployment inference/lost does not exist" in lost.stderr
    assert missing.exit_code == 2
    assert missing.stderr.startswith("tokenscaler: get /apis/tokenscaler.io/v1alpha1/namespaces/inference/")


def test_crd_prints_both_definitions() -> None:
    result = tokenscaler("crd")
    assert result.exit_code == 0
    kinds = [document["spec"]["names"]["kind"] for document in yaml.safe_load_all(result.stdout)]
    assert sorted(kinds) == ["AcceleratorPool", "InferenceScaler"]


def test_doctor_of_a_page_with_enough_on_it_ends_with_0() -> None:
    page = next(path for path in sorted(PAGES.iterdir()) if "vllm" in path.name)
    result = tokenscaler("doctor", "metrics", "--page", str(page), "--output", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["engine"] == "vllm"
    assert tokenscaler("doctor", "metrics", "--page", "-", stdin=page.read_text()).exit_code == 0


def test_doctor_of_a_page_with_too_little_on_it_ends_with_1() -> None:
    result = tokenscaler("doctor", "metrics", "--page", "-", stdin="# HELP up Whether [it] is up.\nup 1\n")
    assert result.exit_code == 1
    assert "engine: not recognized" in result.stdout


def test_the_module_is_the_same_program() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "autoscaler", "explain"], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 2
    assert result.stderr == "tokenscaler: explain: give NAMESPACE/NAME or --log FILE (or both)\n"
