"""How is the real controller started beside the control plane, and what did it decide?"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2

from tests.servers.ports import free_port
from tests.servers.process import Program, wait_until


class ControllerProcess(Program):
    """`tokenscaler run` as a process of its own, with its decision log and HTTP side."""

    def __init__(
        self,
        directory: Path,
        kubeconfig: Path,
        prometheus_url: str,
        *,
        identity: str,
        namespaces: Sequence[str],
        lease_namespace: str,
        tick_seconds: float = 1,
        dry_run: bool = False,
        config: Path | None = None,
        arguments: Sequence[str | Path] = (),
    ):
        self.identity = identity
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.decision_log = directory / f"{identity}.jsonl"
        self._records: list[dict[str, Any]] = []
        self._read_bytes = 0
        command: list[str | Path] = [sys.executable, "-m", "autoscaler", "run"]
        command += ["--kubeconfig", kubeconfig, "--prometheus-url", prometheus_url]
        command += ["--tick-seconds", str(tick_seconds), "--http-host", "127.0.0.1", "--http-port", str(self.port)]
        command += ["--decisions", self.decision_log, "--identity", identity]
        command += ["--lease-namespace", lease_namespace, "--lease-name", "tokenscaler"]
        for namespace in namespaces:
            command += ["--namespace", namespace]
        command += ["--dry-run"] if dry_run else []
        command += ["--config", config] if config is not None else []
        super().__init__(f"controller-{identity}", [*command, *arguments], directory)

    def wait_deciding(self, records: int = 1, timeout_seconds: float = 60) -> None:
        """Waits until it has recorded so many decisions since the log began."""

        def decided() -> bool:
            return len(self.records()) >= records

        self.wait_ready(decided, timeout_seconds)

    def records(self) -> list[dict[str, Any]]:
        """Its decision records so far, oldest first; a line that is still being written is left out."""
        if self.decision_log.exists():
            # A test that waits asks twenty times a second, and the log grows: each line is read once.
            with self.decision_log.open("rb") as log:
                log.seek(self._read_bytes)
                whole_lines = log.read().rpartition(b"\n")[0]
            if whole_lines:
                self._records += [json.loads(line) for line in whole_lines.split(b"\n")]
                self._read_bytes += len(whole_lines) + 1
        return list(self._records)

    def wait_record(self, condition: Any, what: str, timeout_seconds: float = 60) -> dict[str, Any]:
        """The first record from now on for which `condition(record)` holds."""
        seen = len(self.records())
        found: list[dict[str, Any]] = []

        def holds() -> bool:
            found[:] = [record for record in self.records()[seen:] if condition(record)]
            return bool(found)

        wait_until(holds, what, timeout_seconds, poll_seconds=0.2)
        return found[0]

    def get(self, path: str) -> httpx2.Response:
        """An answer of its HTTP side. Raises httpx2.TransportError when it does not listen."""
        return httpx2.get(f"{self.url}{path}", timeout=10)

    def is_ready(self) -> bool:
        """Whether /readyz says ok."""
        try:
            return self.get("/readyz").status_code == 200
        except httpx2.TransportError:
            return False
