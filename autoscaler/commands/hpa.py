"""`tokenscaler hpa NS/NAME`: the HorizontalPodAutoscaler that follows an InferenceScaler in mode ExternalMetric."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer
import yaml

from autoscaler.api.inference_scaler import KIND, InferenceScaler, InvalidInferenceScaler, parse_inference_scaler
from autoscaler.exit_codes import FINE, NOT_RIGHT, WRONG_USAGE
from autoscaler.external_metrics.hpa_manifest import MetricSourceType, hpa_manifest
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.connection import connect
from autoscaler.kubernetes_gateway.credentials import CredentialsError
from policies.parameters import Mode


@dataclass(frozen=True, slots=True)
class _Missing:
    problem: str
    code: int


def print_hpa(
    target: str, file: Path | None, kubeconfig: Path | None, context: str | None, as_object_metric: bool = False
) -> int:
    """Prints the manifest of one InferenceScaler, read from the cluster or from a file of manifests."""
    namespace, _, name = target.partition("/")
    if not namespace or not name or "/" in name:
        return _refuse(f"{target}: NAMESPACE/NAME is wanted", WRONG_USAGE)
    found = _of_file(file, namespace, name) if file else _of_cluster(kubeconfig, context, namespace, name)
    if isinstance(found, _Missing):
        return _refuse(found.problem, found.code)
    if isinstance(found, InvalidInferenceScaler):
        return _refuse(f"InferenceScaler {target} is not valid: {'; '.join(found.problems)}", NOT_RIGHT)
    manifest = hpa_manifest(found, MetricSourceType.OBJECT if as_object_metric else MetricSourceType.EXTERNAL)
    if manifest is None:
        return _refuse(f"{name}: an HPA selects by labels, whose values have at most 63 characters", NOT_RIGHT)
    typer.echo(manifest, nl=False)
    if found.spec.mode is not Mode.EXTERNAL_METRIC:
        _refuse(
            f"{target} is in mode {found.spec.mode.value}, in which it serves no metric: set `mode: ExternalMetric`",
            FINE,
        )
    return FINE


def _refuse(problem: str, code: int) -> int:
    typer.echo(f"tokenscaler: {problem}", err=True)
    return code


def _of_cluster(
    kubeconfig: Path | None, context: str | None, namespace: str, name: str
) -> InferenceScaler | InvalidInferenceScaler | _Missing:
    try:
        connection = connect(str(kubeconfig) if kubeconfig else None, context)
    except CredentialsError as error:
        return _Missing(str(error), WRONG_USAGE)
    document = connection.get(f"/apis/tokenscaler.io/v1alpha1/namespaces/{namespace}/inferencescalers/{name}")
    if isinstance(document, ApiFailure):
        return _Missing(document.message, NOT_RIGHT)
    return parse_inference_scaler(document)


def _of_file(file: Path, namespace: str, name: str) -> InferenceScaler | InvalidInferenceScaler | _Missing:
    try:
        documents = [each for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if isinstance(each, dict)]
    except OSError as error:
        return _Missing(f"cannot read {file}: {error.strerror}", WRONG_USAGE)
    except (yaml.YAMLError, ValueError) as error:
        return _Missing(f"{file}: not YAML: {' '.join(str(error).split())}", WRONG_USAGE)
    scalers = [parse_inference_scaler(each) for each in documents if each.get("kind") == KIND]
    found = next((each for each in scalers if each.key == (namespace, name)), None)
    if found is None:
        there = ", ".join("/".join(each.key) for each in scalers) or "none"
        return _Missing(f"{file} has no InferenceScaler {namespace}/{name}; there is {there}", WRONG_USAGE)
    return found
