"""`tokenscaler drain-watcher` as a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.fakes.api_server import FakeApiServer
from tests.fakes.instance_metadata import ACTION, FakeInstanceMetadata
from tests.servers.process import Program, wait_until

pytestmark = pytest.mark.timeout(120)


def test_it_drains_at_a_notice_and_ends_when_told_to(tmp_path: Path) -> None:
    drain_file, looked_file = tmp_path / "draining", tmp_path / "looked"
    with FakeApiServer() as server, FakeInstanceMetadata() as metadata:
        server.put("nodes", {"metadata": {"name": "gpu-1"}, "spec": {}, "status": {}})
        command: list[str | Path] = [sys.executable, "-m", "autoscaler", "drain-watcher", "--node", "gpu-1"]
        command += ["--drain-file", drain_file, "--looked-file", looked_file, "--metadata-url", metadata.url]
        watcher = Program("drain-watcher", [*command, "--kubeconfig", server.write_kubeconfig(tmp_path)], tmp_path)
        watcher.start()
        try:
            wait_until(looked_file.exists, "it has looked", 60)
            assert not drain_file.exists()
            metadata.pages[ACTION] = '{"action": "terminate", "time": "2030-01-01T00:00:00Z"}'
            wait_until(drain_file.exists, "it drains", 30)
            wait_until(lambda: any(each.method == "PATCH" for each in server.requests), "it cordons", 30)
        finally:
            watcher.stop()
        assert watcher.exit_code == 0
