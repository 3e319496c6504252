"""What is to be replayed: which policies under which load, on which fleet, and what is wanted of it?"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What was asked for on the command line."""

    policies: tuple[Path, ...]
    trace: str | None = None  # a file or agents:...; None: what `prometheus` has recorded
    prometheus: PrometheusSettings | None = None
    queries: QuerySettings = field(default_factory=QuerySettings)
    trace_scale: float = 1.0
    fleet: str | None = None
    baselines: tuple[str, ...] = ()
    tunes_baselines: bool = False
    seed: int = 1
    seeds: int = 1
    start_seconds: float | None = None
    end_seconds: float | None = None
    json_path: Path | None = None
    html_path: Path | None = None
    decisions_path: Path | None = None
    is_policy_only: bool = False
    policy_step_seconds: float | None = None  # of a policy-only run; None: what its length allows

    @property
    def trace_name(self) -> str:
        """What the load is called in the report."""
        return "Prometheus" if self.trace is None else self.trace
