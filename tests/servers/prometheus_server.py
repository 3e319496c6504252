"""How does a test get a real Prometheus that scrapes its pages every second?"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2
import yaml

from tests.servers.ports import free_port
from tests.servers.process import Program, wait_until


def prometheus_unavailable_reason() -> str | None:
    """Why no Prometheus can be started here, or None when it can."""
    return None if shutil.which("prometheus") else "prometheus is not installed (Debian: apt-get install prometheus)"


def static_targets(*addresses: str, **labels: str) -> list[dict[str, Any]]:
    """A `static_configs` list: the addresses with these labels."""
    return [{"targets": list(addresses), "labels": labels}]


class PrometheusServer:
    """A Prometheus process with its own folder and port; a context manager.

    Each scrape config is a dict as in prometheus.yml, for example `{"job_name": "vllm", "static_configs": [...]}`
    or with `http_sd_configs`. New targets of a service discovery arrive within 5 to 10 s: Prometheus batches them.
    """

    def __init__(
        self,
        scrape_configs: Sequence[Mapping[str, Any]] = (),
        *,
        scrape_interval_seconds: float = 1,
        external_labels: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        port: int | None = None,
        directory: Path | None = None,
    ):
        self.scrape_interval_seconds = scrape_interval_seconds
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._own_directory = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="tokenscaler-prometheus-"))
        self._external_labels = dict(external_labels or {})
        self.write_configuration(scrape_configs)
        self._program = Program(
            "prometheus",
            [
                "prometheus",
                f"--config.file={self._configuration_path}",
                f"--storage.tsdb.path={self.directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--web.enable-lifecycle",
                "--log.level=warn",
                *arguments,
            ],
            self.directory,
        )

    @property
    def _configuration_path(self) -> Path:
        return self.directory / "prometheus.yml"

    def write_configuration(self, scrape_configs: Sequence[Mapping[str, Any]]) -> None:
        """Writes prometheus.yml; a running server takes it up after `reload()`."""
        interval = f"{round(self.scrape_interval_seconds * 1000)}ms"
        document = {
            "global": {
                "scrape_interval": interval,
                "scrape_timeout": interval,
                "external_labels": self._external_labels,
            },
            "scrape_configs": [dict(config) for config in scrape_configs],
        }
        self._configuration_path.write_text(yaml.safe_dump(document, sort_keys=False))

    @property
    def pid(self) -> int:
        """The process id of the last start."""
        return self._program.pid

    def start(self) -> PrometheusServer:
        """Starts it (again, with the data it had) and waits until it answers."""
        self._program.start()
        self._program.wait_ready(self._answers)
        return self

    def reload(self) -> None:
        """Makes it read prometheus.yml again; targets change at once."""
        httpx2.post(f"{self.url}/-/reload", timeout=10).raise_for_status()

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/-/ready", timeout=2).status_code == 200
        except httpx2.TransportError:
            return False

    def kill(self) -> None:
        """SIGKILL: connections are refused from now on."""
        self._program.kill()

    def suspend(self) -> None:
        """SIGSTOP: connections are accepted by the kernel and never answered."""
        self._program.suspend()

    def resume(self) -> None:
        """SIGCONT."""
        self._program.resume()

    def stop(self) -> None:
        """Ends it and removes its folder, if that was made here."""
        self._program.stop()
        if self._own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> PrometheusServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def query(self, promql: str) -> list[dict[str, Any]]:
        """The `result` list of an instant query. Raises httpx2.HTTPStatusError for a refused one."""
        answer = httpx2.post(f"{self.url}/api/v1/query", data={"query": promql}, timeout=10)
        answer.raise_for_status()
        result: list[dict[str, Any]] = json.loads(answer.text)["data"]["result"]
        return result

    def get_text(self, path: str) -> str:
        """The body of a GET, for example of its own /metrics."""
        return httpx2.get(f"{self.url}{path}", timeout=10).raise_for_status().text

    def wait_for(self, promql: str, series: int = 1, timeout_seconds: float = 60) -> float:
        """Seconds until an instant query has at least this many series. Raises TimeoutError."""
        return wait_until(
            lambda: len(self.query(promql)) >= series, f"{series} series of {promql}", timeout_seconds, poll_seconds=0.2
        )
