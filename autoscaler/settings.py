"""Settings of the controller process: validated once at start, passed on, never global."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from autoscaler.api.pool_bounds import DOLLARS_PATTERN
from autoscaler.external_metrics.settings import MetricsApiSettings
from autoscaler.keda_external_scaler.settings import ExternalScalerSettings
from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings
from policies.history import LONGEST_GAP_SECONDS

# One missed tick must not look like a gap in a pool's history: after each gap nothing is scaled down for a window.
LONGEST_TICK_SECONDS = LONGEST_GAP_SECONDS / 2


class LeaseSettings(BaseModel):
    """Which Lease decides who of several controllers may write."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    namespace: str = "tokenscaler-system"
    name: str = "tokenscaler"
    identity: str = Field(min_length=1, description="Unique among the controllers; the pod's name in a cluster.")


class PrometheusFile(BaseModel):
    """The file given by --prometheus-config: how to log in, and how the signals are asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    client: dict[str, object] = Field(default={}, description="Fields of PrometheusSettings, except the URL.")
    queries: QuerySettings = QuerySettings()

    @field_validator("client")
    @classmethod
    def _has_no_address(cls, client: dict[str, object]) -> dict[str, object]:
        if "url" in client:
            raise ValueError("url does not belong here: the address is given by --prometheus-url")
        return client


class ControllerSettings(BaseModel):
    """What `tokenscaler run` was told. Behaviour towards a pool stands in its InferenceScaler, not here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prometheus: PrometheusSettings
    queries: QuerySettings = QuerySettings()
    lease: LeaseSettings
    kubeconfig: Path | None = None
    context: str | None = None
    namespaces: tuple[str, ...] = Field(default=(), description="Empty: the whole cluster.")
    config_directory: Path | None = None
    is_dry_run: bool = False
    tick_seconds: float = Field(default=15.0, gt=0, le=LONGEST_TICK_SECONDS)
    http_host: str = "0.0.0.0"  # probes and scrapes come from outside the pod
    http_port: int = Field(default=8080, ge=0, le=65_535)
    ceiling_dollars_per_hour: str | None = Field(
        default=None, pattern=DOLLARS_PATTERN, description="For the nodes of all AcceleratorPools together."
    )
    decision_log: Path | None = None
    writes_decisions_to_stdout: bool = False
    metrics_api: MetricsApiSettings | None = Field(default=None, description="None: no metrics API is served.")
    external_scaler: ExternalScalerSettings | None = Field(default=None, description="None: KEDA cannot ask us.")

    @model_validator(mode="after")
    def _check_dry_run(self) -> Self:
        if self.is_dry_run and self.metrics_api is not None:
            raise ValueError("--dry-run serves no metrics API: an HPA would write what it reads there")
        if self.is_dry_run and self.external_scaler is not None:
            raise ValueError("--dry-run answers no KEDA: its HPA would write what it reads there")
        return self


def read_prometheus_settings(url: str, path: Path | None) -> tuple[PrometheusSettings, QuerySettings]:
    """The settings for `url`, with the file's where one is given. Raises ValueError (naming the file) or OSError."""
    if path is None:
        return PrometheusSettings(url=url), QuerySettings()
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        file = PrometheusFile.model_validate(document)
        return PrometheusSettings.model_validate({"url": url, **file.client}), file.queries
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path}: {one_line(error)}") from error


def one_line(error: Exception) -> str:
    """What is wrong, in one line; a value is never shown, as it may be a secret in the wrong place."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: not YAML: {error.problem}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"cannot read {error.filename}: {error.strerror}"
    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    return "; ".join(
        ": ".join((*filter(None, [".".join(map(str, each["loc"]))]), each["msg"].removeprefix("Value error, ")))
        for each in error.errors(include_url=False, include_input=False)
    )
