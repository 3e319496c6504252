"""Which replicas load a model and are to be left alone meanwhile? Asked once a tick, of all pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from autoscaler.controller.pool_report import Decided, PoolReport, says_something
from policies.parameters import Mode


class PodProtection(Protocol):
    """Protects pods, and nobody else."""

    def bring_to(self, limits_seconds: Mapping[tuple[str, str], float]) -> None:
        """Protects these pods, by (namespace, name), while they load, for so long at most; takes it back elsewhere."""
        ...


class LoadingKeeper:
    """A Keeper that has the loading replicas of the pools protected whose policies say so.

    It remembers nothing: what stands on a pod is what was written, whoever did it.
    """

    def __init__(self, protection: PodProtection) -> None:
        self._protection = protection

    def keep(self, reports: Sequence[PoolReport]) -> None:
        """Just after a start, before all targets have been read, nobody can say yet who loads."""
        if not all(map(says_something, reports)):
            return
        self._protection.bring_to(
            {
                (report.scaler.namespace, pod.name): report.decision_input.cold_start.start_limit_seconds
                for report in reports
                if isinstance(report, Decided) and _is_protected(report)
                for pod in report.workload.pods
                if not pod.is_ready
            }
        )

    def forget_all(self) -> None:
        """Nothing is remembered."""


def _is_protected(report: Decided) -> bool:
    return report.scaler.spec.protect_loading_replicas and report.scaler.spec.mode is not Mode.DRY_RUN
