"""The HPA that `tokenscaler hpa` prints."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from autoscaler.api.quantity import milli_of, milli_of_quantity, quantity
from autoscaler.cli import app
from autoscaler.external_metrics.hpa_manifest import MetricSourceType, hpa_document, hpa_manifest
from policies.hpa.metric_proposal import Tolerance, propose_average_value
from tests.pool_builders import a_scaler, a_scaler_document

EXPECTED = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: llama
  namespace: inference
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: llama
  minReplicas: 1
  maxReplicas: 100
  metrics:
  - type: External
    external:
      metric:
        name: tokenscaler-desired-replicas
        selector:
          matchLabels:
            scaler: llama
      target:
        type: AverageValue
        averageValue: '1'
  behavior:
    scaleUp:
      stabilizationWindowSeconds: 0
      tolerance: '0'
      policies:
      - type: Pods
        value: 100
        periodSeconds: 1
    scaleDown:
      stabilizationWindowSeconds: 0
      tolerance: '0'
      policies:
      - type: Percent
        value: 100
        periodSeconds: 1
"""


def tokenscaler(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout, result.stderr


def a_file(directory: Path, *names: str, **spec: object) -> str:
    path = directory / "policies.yaml"
    path.write_text(yaml.safe_dump_all([a_scaler_document(name, **spec) for name in names]))
    return str(path)


def test_the_manifest_takes_target_and_bounds_from_the_policy() -> None:
    manifest = hpa_manifest(a_scaler(mode="ExternalMetric"))
    assert manifest is not None
    head, body = manifest.split("apiVersion", 1)
    assert f"apiVersion{body}" == EXPECTED
    assert "adds no delay of its own" in head
    assert all(line.startswith("# ") for line in head.splitlines())


def test_a_policy_that_sleeps_needs_a_newer_cluster() -> None:
    manifest = hpa_manifest(a_scaler(minReplicas=0, signals={"pendingRequests": {"query": "q", "perReplica": 1}}))
    assert manifest is not None
    assert "minReplicas 0 needs Kubernetes 1.37" in manifest
    assert yaml.safe_load(manifest)["spec"]["minReplicas"] == 0


@pytest.mark.parametrize(
    ("present", "decided"), [(1, 1), (20, 21), (21, 20), (100, 99), (3, 7), (7, 0), (0, 7), (0, 0), (4000, 4001)]
)
def test_its_arithmetic_gives_exactly_our_count(present: int, decided: int) -> None:
    document = hpa_document(a_scaler(mode="ExternalMetric"))
    behavior = document["spec"]["behavior"]  # type: ignore[index]
    tolerance = Tolerance(float(behavior["scaleUp"]["tolerance"]), float(behavior["scaleDown"]["tolerance"]))
    assert propose_average_value(decided * 1000, 1000, present, tolerance) == decided


def test_every_count_survives_the_wire_and_the_arithmetic() -> None:
    for decided in range(1, 1001):
        served = milli_of_quantity(quantity(milli_of(float(decided))))
        for present in (1, decided - 1, decided, decided + 1):
            assert served is not None
            assert propose_average_value(served, 1000, present, Tolerance(0.0, 0.0)) == decided


def test_it_is_printed_for_a_policy_in_a_file(tmp_path: Path) -> None:
    path = a_file(tmp_path, "mistral", "llama", mode="ExternalMetric")
    code, printed, said = tokenscaler("hpa", "inference/llama", "--file", path)
    assert (code, said) == (0, "")
    assert printed.endswith(EXPECTED)


def test_an_object_metric_is_of_the_policy_itself_and_all_else_is_the_same(tmp_path: Path) -> None:
    path = a_file(tmp_path, "llama", mode="ExternalMetric")
    code, printed, said = tokenscaler("hpa", "inference/llama", "--file", path, "--object-metric")
    assert (code, said) == (0, "")
    document, usual = yaml.safe_load(printed), yaml.safe_load(EXPECTED)
    assert document["spec"].pop("metrics") == [
        {
            "type": "Object",
            "object": {
                "describedObject": {
                    "apiVersion": "tokenscaler.io/v1alpha1",
                    "kind": "InferenceScaler",
                    "name": "llama",
                },
                "metric": {"name": "tokenscaler-desired-replicas"},
                "target": {"type": "AverageValue", "averageValue": "1"},
            },
        }
    ]
    usual["spec"].pop("metrics")
    assert document == usual


def test_an_object_is_named_however_long_its_name_is() -> None:
    assert hpa_manifest(a_scaler("l" * 64, mode="ExternalMetric"), MetricSourceType.OBJECT) is not None


def test_it_says_so_where_the_policy_serves_no_metric(tmp_path: Path) -> None:
    code, printed, said = tokenscaler("hpa", "inference/llama", "--file", a_file(tmp_path, "llama"))
    assert (code, printed.endswith(EXPECTED)) == (0, True)
    assert "inference/llama is in mode Scale, in which it serves no metric" in said


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(("llama",), 2, "llama: NAMESPACE/NAME is wanted", id="a name alone"),
        pytest.param(("inference/lama",), 2, "there is inference/llama", id="a name that the file does not have"),
        pytest.param(("inference/llama", "--file", "/nowhere"), 2, "cannot read /nowhere: No such file", id="no file"),
        pytest.param(("inference/llama", "--kubeconfig", "/nowhere"), 2, "/nowhere", id="no cluster"),
    ],
)
def test_it_says_what_is_missing(tmp_path: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    path = () if len(arguments) > 1 else ("--file", a_file(tmp_path, "llama"))
    result = tokenscaler("hpa", *arguments, *path)
    assert result[0] == code
    assert said in result[2]
    assert result[1] == ""


@pytest.mark.parametrize(
    ("spec", "name", "said"),
    [
        pytest.param({"maxReplica": 3}, "llama", "did you mean maxReplicas?", id="a policy that is not valid"),
        pytest.param({}, "l" * 64, "at most 63 characters", id="a name that no label can have"),
    ],
)
def test_it_says_what_is_wrong(tmp_path: Path, spec: dict[str, object], name: str, said: str) -> None:
    result = tokenscaler("hpa", f"inference/{name}", "--file", a_file(tmp_path, name, **spec))
    assert result[0] == 1
    assert said in result[2]
