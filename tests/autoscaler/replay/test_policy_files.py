from __future__ import annotations

from pathlib import Path

import pytest

from autoscaler.replay.policy_files import PoliciesRefused, read_policies

SCALER = """\
apiVersion: tokenscaler.io/v1alpha1
kind: InferenceScaler
metadata: {name: chat, namespace: inference}
spec:
  mode: Scale
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm-chat}
  engine: vllm
  minReplicas: 2
  maxReplicas: 8
  signals:
    tokensInFlight: {}
"""


def a_file(directory: Path, text: str, name: str = "policy.yaml") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def test_an_inference_scaler_is_read_as_it_stands_in_the_cluster(tmp_path: Path) -> None:
    policies = read_policies([a_file(tmp_path, SCALER)])
    assert not isinstance(policies, PoliciesRefused)
    (policy,) = policies
    assert (policy.name, policy.minimum, policy.maximum) == ("chat", 2, 8)
    assert (policy.identity.namespace, policy.identity.target_name) == ("inference", "vllm-chat")
    assert policy.assumptions == ()


def test_a_dry_run_is_replayed_as_if_it_wrote_and_that_is_said(tmp_path: Path) -> None:
    policies = read_policies([a_file(tmp_path, SCALER.replace("mode: Scale", "mode: DryRun"))])
    assert not isinstance(policies, PoliciesRefused)
    assert policies[0].assumptions == ("chat: its mode is DryRun; replayed as if it were Scale",)


def test_policies_of_one_name_are_told_apart(tmp_path: Path) -> None:
    one, other = a_file(tmp_path, SCALER), a_file(tmp_path, f"{SCALER}---\n{SCALER}", "other.yaml")
    policies = read_policies([one, other])
    assert not isinstance(policies, PoliciesRefused)
    assert [policy.name for policy in policies] == ["chat", "chat-2", "chat-3"]


def test_other_objects_in_the_file_are_left_alone(tmp_path: Path) -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: chat}\n"
    policies = read_policies([a_file(tmp_path, f"{service}---\n{SCALER}---\n")])
    assert not isinstance(policies, PoliciesRefused)
    assert [policy.name for policy in policies] == ["chat"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            SCALER.replace("maxReplicas: 8", "maxReplicas: 1"),
            "line 4: spec: minReplicas 2 is above maxReplicas 1",
            id="a maximum below the minimum",
        ),
        pytest.param(
            SCALER.replace("maxReplicas", "maxReplica"),
            "line 9: spec.maxReplica is not a known field; did you mean maxReplicas?",
            id="a misspelt field with its line and the right name",
        ),
        pytest.param("a: [1", "line 1: not YAML", id="no YAML"),
        pytest.param("- 1\n", "line 1: a Kubernetes object is wanted", id="no object"),
        pytest.param("kind: Service\n", "no policy stands in it; one of these kinds is wanted", id="no policy"),
        pytest.param("", "no policy stands in it", id="an empty file"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, text: str, expected: str) -> None:
    path = a_file(tmp_path, text)
    refused = read_policies([path])
    assert isinstance(refused, PoliciesRefused)
    assert any(problem.startswith(str(path)) and expected in problem for problem in refused.problems), refused


def test_all_bad_files_are_named_at_once(tmp_path: Path) -> None:
    refused = read_policies([a_file(tmp_path, "a: [", "a.yaml"), tmp_path / "missing.yaml"])
    assert isinstance(refused, PoliciesRefused)
    assert len(refused.problems) == 2
    assert "cannot be read: No such file" in refused.problems[1]
