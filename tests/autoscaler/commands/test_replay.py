"""`tokenscaler replay` from its arguments to its files."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from autoscaler.commands.replay import compare_log, replay_policies
from autoscaler.decision_log import read_log
from autoscaler.decision_record import DecisionRecord
from autoscaler.replay.replay_request import ReplayRequest

POLICY = """\
apiVersion: tokenscaler.io/v1alpha1
kind: InferenceScaler
metadata: {name: chat, namespace: inference}
spec:
  mode: Scale
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm-chat}
  engine: vllm
  minReplicas: 1
  maxReplicas: 8
  signals:
    tokensInFlight: {}
"""
HEADER = "timestamp_s,value,input_tokens,output_tokens"
KEYS = {
    *("requests", "dropped", "attainment", "ttft_p50_s", "ttft_p99_s", "itl_p50_s", "itl_p99_s", "accelerator_hours"),
    *("cost_dollars", "replica_hours", "scale_ups", "scale_downs", "max_replicas", "preemptions"),
    *("tokens_per_accelerator_second", "dollars_per_million_tokens"),
}


class Written:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.json, self.decisions = directory / "report.json", directory / "decisions.jsonl"
        self.policy = directory / "policy.yaml"
        self.policy.write_text(POLICY)
        self.trace = directory / "trace.csv"
        self.trace.write_text("\n".join([HEADER, *(f"{at},1,800,120" for at in range(1, 400))]))

    def request(self, **more: Any) -> ReplayRequest:
        given: dict[str, Any] = {
            "policies": (self.policy,),
            "trace": str(self.trace),
            "json_path": self.json,
            "decisions_path": self.decisions,
        }
        return ReplayRequest(**(given | more))

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.json.read_text())
        return document


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def ran(request: ReplayRequest) -> tuple[int, str]:
    screen = StringIO()
    return replay_policies(request, Console(file=screen, width=250)), screen.getvalue()


def test_the_report_has_the_figures_of_every_policy_and_of_the_clairvoyant_plan(written: Written) -> None:
    code, screen = ran(written.request(baselines=("static-peak", "static-mean", "oracle"), trace_scale=4.0))
    assert code == 0
    document = written.document()
    assert list(document["policies"]) == ["chat", "static-peak", "static-mean", "oracle"]
    for figures in document["policies"].values():
        assert set(figures) >= KEYS
        assert figures["requests"] == pytest.approx(4 * 399, rel=0.02)
        assert 0.9 <= figures["attainment"] <= 1.0
    chat = document["policies"]["chat"]
    assert chat["cost_dollars"] == pytest.approx(3.0 * chat["accelerator_hours"])
    assert chat["dollars_per_million_tokens"] > 0
    assert 0 < document["clairvoyant"]["accelerator_hours"] <= chat["accelerator_hours"]
    assert document["clairvoyant"]["how"]
    assert document["in_simulation"] is True
    assert "assumed: an accelerator costs 3 dollars an hour" in screen
    assert "static-peak" in screen


def test_a_tuned_baseline_is_named_so_where_it_has_something_to_be_tuned(written: Written) -> None:
    request = written.request(baselines=("keda-hpa", "static-mean"), tunes_baselines=True, end_seconds=60.0)
    code, _ = ran(request)
    assert code == 0
    assert list(written.document()["policies"]) == ["chat", "keda-hpa (tuned)", "static-mean"]


def test_every_decision_can_be_explained_afterwards(written: Written) -> None:
    code, _ = ran(written.request())
    assert code == 0
    records = list(read_log(written.decisions))
    assert len(records) == 27  # one a tick of 15 s in 399 s
    assert all(isinstance(record, DecisionRecord) for record in records)


@pytest.mark.parametrize(("sampled", "is_said"), [(1, False), (2, True)])
def test_a_fleet_too_small_to_be_sampled_is_said(written: Written, sampled: int, is_said: bool) -> None:
    fleet = written.directory / "fleet.yaml"
    fleet.write_text(f"sampledOneIn: {sampled}\n")
    code, screen = ran(written.request(fleet=str(fleet)))
    assert code == 0
    assert ("which is too few for one of 2: every request and replica is simulated" in screen) is is_said
    document = json.loads(written.json.read_text())
    assert document["fleet"]["sampled_one_in"] == 1


def test_a_decision_log_is_held_against_what_happened(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(written.request())[0] == 0
    with written.decisions.open("a", encoding="utf-8") as lines:
        lines.write("no record\n")
    screen = StringIO()
    assert compare_log(written.decisions, Console(file=screen, width=250)) == 0
    assert screen.getvalue().startswith("inference/chat, 0.1 h: it would have used")
    assert "1 lines are no decision records" in screen.getvalue()
    written.decisions.write_text("")
    assert compare_log(written.decisions, Console(file=screen)) == 1
    assert compare_log(written.directory / "none", Console(file=screen)) == 2
    assert "none: cannot be read: No such file" in capsys.readouterr().err


def test_the_objectives_are_the_policys_unless_the_fleet_has_its_own(written: Written) -> None:
    objectives = "  objectives: {timeToFirstTokenP99Milliseconds: 500, interTokenLatencyP99Milliseconds: 25}\n"
    written.policy.write_text(POLICY + objectives)
    code, screen = ran(written.request())
    assert code == 0
    assert "assumed: the objectives are those of chat" in screen
    assert written.document()["fleet"]["time_to_first_token_objective_s"] == 0.5
    fleet = written.directory / "fleet.yaml"
    fleet.write_text("objectives: {timeToFirstTokenSeconds: 3}\n")
    assert ran(written.request(fleet=str(fleet)))[0] == 0
    assert written.document()["fleet"]["time_to_first_token_objective_s"] == 3.0


def test_stamps_of_unix_time_begin_with_the_first_request(written: Written) -> None:
    rows = [HEADER, *(f"{1_790_000_000 + at},1,800,120" for at in range(60))]
    written.trace.write_text("\n".join(rows))
    assert ran(written.request())[0] == 0
    document = written.document()
    assert document["hours"] == pytest.approx(60 / 3600, rel=0.05)
    assert document["policies"]["chat"]["requests"] == 60


def test_bins_with_a_gap_are_taken_with_a_named_assumption(written: Written) -> None:
    rows = [HEADER, "0,2,1600,200", "60,3,2400,300", "120,,,", "180,2,1600,200"]
    written.trace.write_text("\n".join(rows))
    code, screen = ran(written.request())
    assert code == 0
    assert "1 of 4 bins were not recorded" in screen
    assert any("not recorded" in assumption for assumption in written.document()["assumptions"])


def test_only_the_asked_part_is_run_and_several_seeds_are_averaged(written: Written) -> None:
    code, _ = ran(written.request(start_seconds=100.0, end_seconds=250.0, seeds=2))
    assert code == 0
    document = written.document()
    assert document["hours"] == pytest.approx(150 / 3600)
    assert document["seeds"] == [1, 2]
    chat = document["policies"]["chat"]
    assert chat["requests"] == 150
    assert [each["seed"] for each in chat["by_seed"]] == [1, 2]


def test_a_maximum_below_what_the_load_needs_is_said(written: Written) -> None:
    written.policy.write_text(POLICY.replace("maxReplicas: 8", "maxReplicas: 1"))
    written.trace.write_text("\n".join([HEADER, *(f"{at},1,8000,300" for at in range(1, 400))]))
    code, screen = ran(written.request(trace_scale=8.0))
    assert code == 0
    assert "chat: its maximum of 1 replicas is less than the" in screen


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([], "no rows; a trace needs at least one request or bin", id="zero requests"),
        pytest.param(
            ["0,2,1600,200", "0,3,1600,200"], "line 3: repeats the stamp of the line before", id="a stamp twice"
        ),
        pytest.param(["60,2,1600,200", "0,3,1600,200"], "line 3: lies before the stamp", id="bins out of order"),
        pytest.param(["0,1,-5,200"], "line 2: input_tokens is -5; it must be a finite number", id="negative tokens"),
        pytest.param(["0,1,99999999,2"], "line 2: input_tokens is 1e+08; a request has between", id="huge tokens"),
        pytest.param(["0,1,five,2"], "line 2: input_tokens is 'five', not a number", id="no number"),
        pytest.param(["0,1,5"], "line 2: 3 fields instead of 4", id="a field too few"),
    ],
)
def test_a_bad_trace_is_refused_with_file_line_and_what_to_do(
    written: Written, capsys: pytest.CaptureFixture[str], rows: list[str], expected: str
) -> None:
    written.trace.write_text("\n".join([HEADER, *rows]))
    assert ran(written.request())[0] == 2
    said = capsys.readouterr().err
    assert said.startswith(f"tokenscaler: {written.trace}")
    assert expected in said


def test_one_request_is_enough(written: Written) -> None:
    written.trace.write_text(f"{HEADER}\n5,1,800,120\n")
    assert ran(written.request())[0] == 0
    assert written.document()["policies"]["chat"]["requests"] == 1


def test_everything_that_is_wrong_is_said_at_once(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    written.policy.write_text(POLICY.replace("maxReplicas", "maxReplica"))
    request = written.request(trace=str(written.directory / "none.csv"), fleet="h100", baselines=("none",))
    assert ran(request)[0] == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 5  # two for the misspelt field: it is unknown, and the right one is missing
    assert "none.csv: cannot be read: No such file" in said[-1]
    assert "--baseline none: no baseline is called so; there are: keda-hpa" in said[-2]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        pytest.param(
            {"json_path": "none/out"}, "--json {}: cannot be written: its folder does not exist", id="no folder"
        ),
        pytest.param(
            {"html_path": "none/out"}, "--html {}: cannot be written: its folder does not exist", id="for a page"
        ),
        pytest.param({"decisions_path": "."}, "--decisions {}: cannot be written: it is a folder", id="a folder"),
        pytest.param({"json_path": "policy.yaml"}, "--json {}: this is POLICY.yaml already", id="the policy itself"),
        pytest.param({"decisions_path": "trace.csv"}, "--decisions {}: this is --trace already", id="the trace itself"),
        pytest.param({"html_path": "report.json"}, "--html {}: this is --json already", id="one file for two"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_run(
    written: Written, capsys: pytest.CaptureFixture[str], asked: dict[str, str], said: str
) -> None:
    before = {path: path.read_bytes() for path in written.directory.iterdir()}
    paths = {option: written.directory / name for option, name in asked.items()}
    code, screen = ran(written.request(**paths))
    assert code == 2
    assert said.format(*paths.values()) in capsys.readouterr().err
    assert "clairvoyant" not in screen
    assert {path: path.read_bytes() for path in written.directory.iterdir()} == before


@pytest.mark.parametrize("option", ["json_path", "html_path", "decisions_path"])
def test_a_full_disk_is_said_with_the_file(
    written: Written, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, option: str
) -> None:
    code, screen = ran(written.request(**{option: Path("/dev/full")}))
    assert code == 2
    assert "clairvoyant" in screen
    assert not caplog.records
    assert capsys.readouterr().err == "tokenscaler: cannot write /dev/full: No space left on device\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("", "missing", id="an empty file"),
        pytest.param("timestamp_s,value\n", "timestamp_s,value", id="other"),
    ],
)
def test_another_header_is_refused(written: Written, capsys: pytest.CaptureFixture[str], text: str, found: str) -> None:
    written.trace.write_text(text)
    assert ran(written.request())[0] == 2
    wanted = f"tokenscaler: {written.trace}, line 1: the header is {found}; it must be {HEADER}\n"
    assert capsys.readouterr().err == wanted


def test_a_part_without_requests_is_refused(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(written.request(start_seconds=900.0, end_seconds=950.0))[0] == 2
    assert "the trace lasts from 0 to 399.001 s; nothing of it lies from 900 to 950" in capsys.readouterr().err


def test_ctrl_c_reports_what_there_is_so_far(written: Written) -> None:
    written.trace.write_text("\n".join([HEADER, *(f"{at / 10},1,800,120" for at in range(1, 40_000))]))
    real = signal.getsignal(signal.SIGINT)

    def interrupt_as_soon_as_it_is_listened_to() -> None:
        while signal.getsignal(signal.SIGINT) is real:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = threading.Thread(target=interrupt_as_soon_as_it_is_listened_to, daemon=True)
    interrupter.start()
    code, screen = ran(written.request(seeds=50))
    interrupter.join(timeout=60.0)
    assert code == 0
    assert "Stopped before the end" in screen
    document = written.document()
    assert document["was_stopped"] is True
    assert document["clairvoyant"] is None
    assert signal.getsignal(signal.SIGINT) is real


def test_a_policy_only_run_has_costs_and_shortages_and_says_nothing_of_latencies(written: Written) -> None:
    html = written.directory / "report.html"
    code, screen = ran(written.request(is_policy_only=True, baselines=("keda-hpa", "knative-kpa"), html_path=html))
    assert code == 0
    document = written.document()
    assert list(document["policies"]) == ["chat", "keda-hpa", "knative-kpa"]
    assert document["clairvoyant"] is None
    for figures in document["policies"].values():
        assert set(figures) >= KEYS | {"short_seconds", "short_share"}
        unknown = {name for name, value in figures.items() if value is None}
        latencies = {"ttft_p50_s", "ttft_p99_s", "itl_p50_s", "itl_p99_s"}
        assert unknown == latencies | {
            *("attainment", "dropped", "rejected", "preemptions", "ratio_to_clairvoyant"),
        }
        assert figures["accelerator_hours"] > 0
    assert any("decided every 15 s" in each for each in document["assumptions"])
    assert "short" in screen
    assert "Requests that wait for replicas" in html.read_text()
    assert len(list(read_log(written.decisions))) == 27


HPA = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: chat-hpa, namespace: inference}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm-chat}
  maxReplicas: 8
  metrics:
    - type: Pods
      pods:
        metric: {name: vllm_num_requests_running}
        target: {type: AverageValue, averageValue: "1"}
"""
SCALED_OBJECT = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: chat-keda, namespace: inference}
spec:
  scaleTargetRef: {name: vllm-chat}
  minReplicaCount: 1
  maxReplicaCount: 8
  triggers:
    - type: prometheus
      metadata: {query: "QUERY", threshold: "1"}
"""
RUNNING = "sum(vllm:num_requests_running)"
FIRST_TOKEN = "histogram_quantile(0.9, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[2m])))"


@pytest.mark.parametrize(
    ("name", "manifest"),
    [
        pytest.param("chat-hpa", HPA, id="an HPA"),
        pytest.param("chat-keda", SCALED_OBJECT.replace("QUERY", RUNNING), id="a ScaledObject"),
    ],
)
def test_a_policy_only_run_of_a_manifest_follows_the_load(written: Written, name: str, manifest: str) -> None:
    written.policy.write_text(manifest)
    rows = (
        f"{60 * at},{20 if at > 10 else 2},{16_000 if at > 10 else 1600},{4000 if at > 10 else 400}" for at in range(40)
    )
    written.trace.write_text("\n".join([HEADER, *rows]))
    assert ran(written.request(is_policy_only=True))[0] == 0
    figures = written.document()["policies"][name]
    assert figures["scale_ups"] > 0
    assert figures["max_replicas"] == 8


def test_a_manifest_that_reads_latencies_is_refused_where_none_are_known(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    written.policy.write_text(SCALED_OBJECT.replace("QUERY", FIRST_TOKEN))
    assert ran(written.request(is_policy_only=True))[0] == 2
    said = "chat-keda: reads vllm:time_to_first_token_seconds_bucket, and --policy-only knows no latencies"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("accelerators", "is_said"),
    [
        pytest.param(2, False, id="as many as the profile has"),
        pytest.param(8, True, id="more than the profile has"),
    ],
)
def test_which_accelerators_are_counted_without_nodes_is_said(
    written: Written, accelerators: int, is_said: bool
) -> None:
    written.policy.write_text(POLICY + f"  acceleratorsPerReplica: {accelerators}\n")
    code, screen = ran(written.request(is_policy_only=True, fleet="llama-3.3-70b-fp8-2xh100-vllm"))
    assert code == 0
    assert ("chat: its acceleratorsPerReplica is 8; accelerator-hours are of the 2" in screen) is is_said


def test_a_chosen_step_of_a_policy_only_run_is_said(written: Written) -> None:
    code, screen = ran(written.request(is_policy_only=True, policy_step_seconds=60.0))
    assert code == 0
    assert "decided every 60 s; windows, rates and delays of a policy that are shorter act as if" in screen
    assert len(list(read_log(written.decisions))) == 7


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param({"policy_step_seconds": 60.0}, "goes with --policy-only alone", id="a step of an exact run"),
        pytest.param(
            {"is_policy_only": True, "policy_step_seconds": 5.0}, "give 15 to 120 seconds", id="a step below a tick"
        ),
        pytest.param(
            {"is_policy_only": True, "policy_step_seconds": 300.0}, "give 15 to 120 seconds", id="a step too long"
        ),
        pytest.param(
            {"is_policy_only": True, "baselines": ("static-peak",)},
            "--baseline static-peak: needs single requests; with --policy-only there are: keda-hpa,",
            id="a baseline that reads requests",
        ),
        pytest.param(
            {"is_policy_only": True, "baselines": ("keda-hpa",), "tunes_baselines": True},
            "--tune-baselines: judges by missed requests",
            id="baselines that are tuned by misses",
        ),
        pytest.param(
            {"is_policy_only": True, "fleet": "deploy/examples/replay/two-node-pools-fleet.yaml"},
            "nodes are not simulated with --policy-only",
            id="a fleet with nodes",
        ),
        pytest.param(
            {"is_policy_only": True, "start_seconds": 390.0, "trace_scale": 1e-9},
            "no request arrives from 390 to",
            id="a load without requests",
        ),
    ],
)
def test_what_a_policy_only_run_cannot_do_is_said_before_it(
    written: Written, options: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = ran(written.request(**options))
    assert code == 2
    assert said in capsys.readouterr().err
    assert not written.json.exists()
