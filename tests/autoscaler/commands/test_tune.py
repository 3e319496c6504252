"""`tokenscaler tune` from its arguments to its files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from autoscaler.cli import app

POLICY = """\
apiVersion: tokenscaler.io/v1alpha1
kind: InferenceScaler
metadata: {name: chat, namespace: inference}
spec:
  mode: Scale
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm-chat}
  engine: vllm
  minReplicas: 4 # for launches
  maxReplicas: 8
  signals:
    tokensInFlight: {}
"""
HEADER = "timestamp_s,value,input_tokens,output_tokens"
FEWER_REPLICAS = "minReplicas=1..4"


class Folder:
    """A policy with more replicas than the calm trace needs, and a trace that is busy only in its last part."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.policy = path / "policy.yaml"
        self.policy.write_text(POLICY)
        self.calm, self.busy = path / "calm.csv", path / "busy.csv"
        calm = [f"{at},1,800,120" for at in range(1, 300)]
        self.calm.write_text("\n".join([HEADER, *calm]))
        rush = [f"{210 + number / 10},1,2500,200" for number in range(10 * 90)]
        self.busy.write_text("\n".join([HEADER, *calm[:210], *rush]))
        self.fleet = path / "fleet.yaml"
        self.fleet.write_text("profile: llama-3.1-8b-bf16-1xa100-vllm\ninitialReplicas: 1\n")
        self.out, self.page = path / "policy.tuned.yaml", path / "policy.tuned.html"
        self.study, self.json = path / "policy.tuned.study", path / "all.json"

    def arguments(self, *more: str, trace: Path | None = None) -> list[str]:
        given = [str(self.policy), "--trace", str(trace or self.calm), "--seeds", "1", "--json", str(self.json)]
        return [*given, "--fleet", str(self.fleet), *more]

    def tune(self, *more: str, trace: Path | None = None) -> Result:
        runner = CliRunner(env={"COLUMNS": "250", "TERMINAL_WIDTH": "250"})
        return runner.invoke(app, ["tune", *self.arguments("--jobs", "1", *more, trace=trace)])

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.json.read_text())
        return document


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_better_policy_is_written_with_what_is_expected_of_it(folder: Folder) -> None:
    result = folder.tune("--search", FEWER_REPLICAS, "--budget", "6", "--baseline", "static-mean")
    assert result.exit_code == 0, result.output
    text = folder.out.read_text()
    assert yaml.safe_load(text)["spec"]["minReplicas"] == 1
    assert "  minReplicas: 1 # for launches; tuned: minReplicas 4 -> 1\n" in text
    assert text.startswith("# Tuned by tokenscaler tune, in simulation.\n")
    assert "# Expected of it: 100.00 % within the objectives at 0.0" in text
    assert "# The policy before: 100.00 % within the objectives at 0.1" in text
    for said in (
        "Pareto front on",
        "given policy",
        "static-mean",
        "on the held-out part it is better",
        "In simulation",
    ):
        assert said in result.output
    document = folder.document()
    assert document["in_simulation"] is True
    assert document["verdict"]["keeps_given"] is False
    assert document["changes"] == {"minReplicas": 1}
    assert document["seeds"] == [1]
    assert document["held_out_seeds"] == [2]
    assert document["given"]["held_out"]["accelerator_hours"] > document["found"]["held_out"]["accelerator_hours"]
    assert list(document["baselines"]) == ["static-mean"]
    page = folder.page.read_text()
    for nothing_fetched in ("http:", "https:", "<script", "src="):
        assert nothing_fetched not in page
    assert page.count("<svg") == 2
    assert "minReplicas: 4 &rarr; 1" in page


def test_what_does_worse_where_it_was_not_searched_is_not_written(folder: Folder) -> None:
    result = folder.tune("--search", FEWER_REPLICAS, "--budget", "6", trace=folder.busy)
    assert result.exit_code == 0, result.output
    assert "on the held-out part what was found is no better" in result.output
    assert "The given policy is kept." in result.output
    text = folder.out.read_text()
    assert text.endswith(POLICY)
    assert "# Kept as it was: on the held-out part what was found is no better" in text
    document = folder.document()
    assert document["verdict"]["keeps_given"] is True
    assert document["found"]["search"]["accelerator_hours"] < document["given"]["search"]["accelerator_hours"]
    assert document["found"]["held_out"]["attainment"] < document["given"]["held_out"]["attainment"]


def test_so_many_times_a_trace_s_users_is_said_with_the_trace(folder: Folder) -> None:
    result = folder.tune("--search", FEWER_REPLICAS, "--budget", "1", "--trace-scale", "1.5")
    assert result.exit_code == 0, result.output
    assert f"tuned on {folder.calm} x 1.5;" in result.output
    assert f"# Traces {folder.calm} x 1.5, fleet" in folder.out.read_text()
    assert f"# {folder.calm}: tuned on its seconds 0 to " in folder.out.read_text()


def test_where_nothing_is_better_the_policy_is_kept(folder: Folder) -> None:
    result = folder.tune("--search", "maxReplicas=8..9", "--budget", "2")
    assert result.exit_code == 0, result.output
    assert "nothing that was tried is better than the given policy" in result.output
    assert folder.out.read_text().endswith(POLICY)


def test_the_same_search_again_runs_nothing_anew_and_writes_the_same(folder: Folder) -> None:
    assert folder.tune("--search", FEWER_REPLICAS, "--budget", "4").exit_code == 0
    study, text, page = folder.study.read_bytes(), folder.out.read_text(), folder.page.read_text()
    again = folder.tune("--search", FEWER_REPLICAS, "--budget", "4")
    assert again.exit_code == 0
    assert "runs are done already" in again.output
    assert (folder.study.read_bytes(), folder.out.read_text(), folder.page.read_text()) == (study, text, page)


def test_without_a_search_the_policy_s_own_votes_are_searched_and_said(folder: Folder) -> None:
    result = folder.tune("--budget", "1", "--objective", "cost:miss=10,hour=1")
    assert result.exit_code == 0, result.output
    assert "searched, as no --search is given: signals.tokensInFlight.perReplica=" in result.output


def test_several_traces_are_one_load_after_another(folder: Folder) -> None:
    result = folder.tune("--trace", str(folder.busy), "--search", FEWER_REPLICAS, "--budget", "1")
    assert result.exit_code == 0, result.output
    traces = folder.document()["given"]["held_out"]["traces"]
    assert list(traces) == [str(folder.calm), str(folder.busy)]
    hours = sum(each["accelerator_hours"] for each in traces.values())
    assert folder.document()["given"]["held_out"]["accelerator_hours"] == pytest.approx(hours)


def test_a_policy_is_tuned_on_rates_alone_and_all_that_is_written_says_what_they_cannot_tell(folder: Folder) -> None:
    result = folder.tune("--policy-only", "--search", FEWER_REPLICAS, "--budget", "6", "--baseline", "keda-hpa")
    assert result.exit_code == 0, result.output
    note = (
        "policy only: within the objectives stands for the share of the requests that arrived while the replicas were"
    )
    assert result.output.count(note) == 2  # as an assumption before, and with what was found
    assert "assumed: policy only: decided every 15 s" in result.output
    text, page, document = folder.out.read_text(), folder.page.read_text(), folder.document()
    assert f"# Note: {note}" in text
    assert yaml.safe_load(text)["spec"]["minReplicas"] == 1
    assert f"<b>Note</b>: {note}" in page
    assert document["is_policy_only"] is True
    assert document["found"]["held_out"]["attainment"] == 1.0
    assert list(document["baselines"]) == ["keda-hpa"]


def test_rates_tell_a_fleet_that_is_too_small(folder: Folder) -> None:
    folder.policy.write_text(POLICY.replace("minReplicas: 4 # for launches", "minReplicas: 1").replace("8", "1"))
    result = folder.tune("--policy-only", "--search", "maxReplicas=1..2", "--budget", "1", trace=folder.busy)
    assert result.exit_code == 0, result.output
    given = folder.document()["given"]
    assert given["search"]["attainment"] == 1.0
    assert given["held_out"]["attainment"] < 0.5


def test_a_baseline_is_tuned_on_rates_too(folder: Folder) -> None:
    more = ("--baseline", "keda-hpa", "--tune-baselines")
    result = folder.tune("--policy-only", "--search", FEWER_REPLICAS, "--budget", "2", *more, trace=folder.busy)
    assert result.exit_code == 0, result.output
    (baseline,) = folder.document()["baselines"]
    assert baseline in ("keda-hpa", "keda-hpa (tuned)")


def test_a_study_of_requests_is_not_gone_on_with_on_rates(folder: Folder) -> None:
    assert folder.tune("--search", FEWER_REPLICAS, "--budget", "1").exit_code == 0
    result = folder.tune("--policy-only", "--search", FEWER_REPLICAS, "--budget", "1")
    assert result.exit_code == 2
    assert "this is a study of another way of running it" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(
            ["--policy-only", "--baseline", "static-peak"], "needs single requests", id="a baseline of requests"
        ),
        pytest.param(["--policy-only", "--policy-step", "600"], "give 15 to 120 seconds", id="a step too long"),
        pytest.param(["--policy-step", "30"], "goes with --policy-only alone", id="a step for requests"),
        pytest.param(["--policy-only", "--start", "298.9"], "no request arrives in its search part", id="no rate"),
        pytest.param(["--search", "minReplicas=1..12"], "with 12 the policy is refused", id="a range too wide"),
        pytest.param(["--search", "minReplica=1..2"], "did you mean minReplicas", id="no such parameter"),
        pytest.param(["--objective", "cheap"], "--objective cheap: attainment>=PERCENT", id="no such objective"),
        pytest.param(["--trace", "{folder}/calm.csv"], "it is given more than once", id="a trace twice"),
        pytest.param(["--trace", "{folder}/none.csv"], "none.csv: cannot be read", id="a trace that is not there"),
        pytest.param(["--baseline", "keda"], "no baseline is called so; there are: keda-hpa", id="no such baseline"),
        pytest.param(["--tune-baselines"], "--tune-baselines: say which", id="no baseline to be tuned"),
        pytest.param(["--fleet", "none"], "no profile is called so", id="no such fleet"),
        pytest.param(["--start", "298.9"], "no request arrives in its search part", id="a part without a request"),
        pytest.param(["--out", "{folder}/no/p.yaml"], "its folder does not exist", id="a folder that is not there"),
        pytest.param(["--out", "{folder}"], "it is a folder", id="a folder for a file"),
        pytest.param(["--out", "{folder}/policy.yaml"], "this is POLICY.yaml already", id="the policy itself"),
        pytest.param(["--out", "{folder}/calm.csv"], "this is --trace already", id="the trace itself"),
        pytest.param(["--study", "{folder}/busy.csv"], "busy.csv, line 1: this is no study", id="no study"),
        pytest.param(["--html", "{folder}/policy.tuned.yaml"], "this is --out already", id="one file for two"),
    ],
)
def test_wrong_input_is_said_before_anything_is_run_or_written(
    folder: Folder, arguments: list[str], problem: str
) -> None:
    before = {path: path.read_bytes() for path in folder.path.iterdir()}
    result = folder.tune("--search", "maxReplicas=8..9", *(each.format(folder=folder.path) for each in arguments))
    assert result.exit_code == 2, result.output
    assert problem in result.stderr
    assert all(line.startswith("tokenscaler: ") for line in result.stderr.splitlines())
    assert {path: path.read_bytes() for path in folder.path.iterdir()} == before


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("kind: [", "not YAML", id="no YAML"),
        pytest.param(f"{POLICY}---\n{POLICY}", "2 InferenceScalers stand in it", id="two policies"),
        pytest.param("apiVersion: v1\nkind: Secret\n", "no policy stands in it", id="none"),
        pytest.param(POLICY.replace("engine: vllm", "engine: vlm"), "line 7: spec.engine", id="a mistake in it"),
    ],
)
def test_a_file_without_exactly_one_policy_is_refused(folder: Folder, text: str, problem: str) -> None:
    folder.policy.write_text(text)
    result = folder.tune("--search", FEWER_REPLICAS)
    assert result.exit_code == 2
    assert problem in result.stderr


def test_a_study_of_another_policy_is_not_mixed_in(folder: Folder) -> None:
    assert folder.tune("--search", FEWER_REPLICAS, "--budget", "1").exit_code == 0
    folder.policy.write_text(POLICY.replace("maxReplicas: 8", "maxReplicas: 9"))
    study = folder.study.read_bytes()
    result = folder.tune("--search", FEWER_REPLICAS, "--budget", "1")
    assert result.exit_code == 2
    assert "this is a study of another policy; give another --study, or remove it" in result.stderr
    assert folder.study.read_bytes() == study


def test_either_traces_or_prometheus(folder: Folder) -> None:
    result = folder.tune("--prometheus", "http://127.0.0.1:9")
    assert result.exit_code == 2
    assert "give either --trace or --prometheus" in result.stderr


def test_ctrl_c_shows_the_front_so_far_and_the_same_command_goes_on(folder: Folder) -> None:
    real = signal.getsignal(signal.SIGINT)

    def interrupt_after_a_few_runs() -> None:
        while not folder.study.exists() or folder.study.read_bytes().count(b"\n") < 4:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = threading.Thread(target=interrupt_after_a_few_runs, daemon=True)
    interrupter.start()
    stopped = folder.tune("--search", FEWER_REPLICAS, "--search", "behavior.scaleUp.tolerance=0..1", "--budget", "5000")
    interrupter.join(timeout=60.0)
    assert stopped.exit_code == 1
    assert "Pareto front on" in stopped.output
    assert "Stopped before the end" in stopped.output
    assert not folder.out.exists()
    assert signal.getsignal(signal.SIGINT) is real
    assert folder.study.read_bytes().endswith(b"\n")
    done = folder.study.read_bytes().count(b"\n") - 1
    gone_on = folder.tune("--search", FEWER_REPLICAS, "--search", "behavior.scaleUp.tolerance=0..1", "--budget", "3")
    assert gone_on.exit_code == 0, gone_on.output
    assert f"{done} runs are done already" in gone_on.output


def test_ctrl_c_with_worker_processes_leaves_a_study_and_no_process(folder: Folder) -> None:
    command = [sys.executable, "-m", "autoscaler", "tune", *folder.arguments("--jobs", "2", "--budget", "5000")]
    with subprocess.Popen(
        [*command, "--search", "behavior.scaleUp.tolerance=0..1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + 150.0
        while not folder.study.exists() or folder.study.read_bytes().count(b"\n") < 4:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        # Workers hold these pipes too, so this returns only after all of them have ended.
        screen, errors = process.communicate(timeout=120.0)
    assert process.returncode == 1, errors
    assert errors == ""
    assert "Stopped before the end" in screen
    assert folder.study.read_bytes().endswith(b"\n")
