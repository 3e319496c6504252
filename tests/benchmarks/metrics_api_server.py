"""The metrics API over 1,000 pools on one core, until killed; `metrics_api_server DIRECTORY CORE` prints its port."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autoscaler.clock import SystemClock
from autoscaler.controller.published_metrics import publish
from autoscaler.external_metrics.newest_metrics import NewestMetrics
from autoscaler.external_metrics.status_metrics import StatusMetrics
from tests.fakes.served_metrics_api import FRONT_PROXY, ServedMetricsApi
from tests.pool_builders import a_decision_report, a_scaler_document, some_waiting

NAMESPACES = 50
POOLS_PER_NAMESPACE = 20


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """Where the client finds whom to trust and who it is."""

    directory: Path

    @property
    def authority(self) -> Path:
        """The authority of the server's certificate."""
        return self.directory / "server-authority.crt"

    @property
    def client_certificate(self) -> Path:
        """The front proxy's certificate."""
        return self.directory / "client.crt"

    @property
    def client_key(self) -> Path:
        """And its key."""
        return self.directory / "client.key"


class _Watched:
    """InferenceScalers as a watch has them; the decisions in their statuses are of now."""

    version = 1
    has_synced = True

    def __init__(self, now_seconds: float) -> None:
        report = a_decision_report(metrics=some_waiting(40.0), now_seconds=now_seconds)
        status = {"externalMetrics": publish(report).model_dump(mode="json", by_alias=True)}
        self._documents = tuple(
            _document(f"team-{namespace}", f"pool-{pool}", status)
            for namespace in range(NAMESPACES)
            for pool in range(POOLS_PER_NAMESPACE)
        )

    def all(self) -> tuple[dict[str, Any], ...]:
        return self._documents


def _document(namespace: str, name: str, status: dict[str, Any]) -> dict[str, Any]:
    document = a_scaler_document(name, mode="ExternalMetric")
    document["metadata"] |= {"namespace": namespace, "resourceVersion": "1"}
    return document | {"status": status}


class _StandingClock(SystemClock):
    """A clock that stands still, so that nothing becomes too old however long it is measured."""

    def __init__(self) -> None:
        self._started = time.time()

    def now_seconds(self) -> float:
        return self._started


def main() -> None:
    """Serves until it is killed."""
    files, core = ServerFiles(Path(sys.argv[1])), int(sys.argv[2])
    os.sched_setaffinity(0, {core})
    clock = _StandingClock()
    with ServedMetricsApi(NewestMetrics(StatusMetrics(_Watched(clock.now_seconds()))), clock=clock) as api:
        files.authority.write_text(api.material.authority_pem)
        certificate, key = api.authority.issue(FRONT_PROXY, files.directory)
        shutil.move(certificate, files.client_certificate)
        shutil.move(key, files.client_key)
        print(api.server.port, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
