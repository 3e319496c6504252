"""How many requests does the metrics API answer on one core, how quickly, and does its memory stay as it is?

The server is a process of its own on one core, with TLS, the front proxy's client certificate and 1,000 pools; the
client, on another core, keeps its connections and asks on each as soon as it is answered.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import uvloop

from tests.benchmarks.figure import Figure
from tests.benchmarks.metrics_api_server import NAMESPACES, POOLS_PER_NAMESPACE, ServerFiles
from tests.fakes.served_metrics_api import HPA_ACCOUNT, NAMES

CONNECTIONS = 8
WARM_UP_REQUESTS = 20_000
METRICS = ("tokenscaler-desired-replicas", "tokens-in-flight", "waiting-requests", "kv-cache-usage")


@dataclass(frozen=True, slots=True)
class _Run:
    requests: int
    seconds: float
    latencies_milliseconds: list[float]


def measure(requests: int = 1_000_000) -> list[Figure]:
    """Throughput, latency and memory over so many requests."""
    with tempfile.TemporaryDirectory() as directory:
        files = ServerFiles(Path(directory))
        cores = sorted(os.sched_getaffinity(0))
        command = [sys.executable, "-m", "tests.benchmarks.metrics_api_server", directory, str(cores[0])]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            os.sched_setaffinity(0, {cores[-1]})
            assert server.stdout is not None
            with closing(server.stdout) as said:
                port = int(said.readline())
            uvloop.run(_ask(files, port, WARM_UP_REQUESTS))
            before, cpu_before = _resident_kibibytes(server.pid), _cpu_seconds(server.pid)
            run = uvloop.run(_ask(files, port, requests))
            after, cpu_seconds = _resident_kibibytes(server.pid), _cpu_seconds(server.pid) - cpu_before
        finally:
            os.sched_setaffinity(0, set(cores))
            server.kill()
            server.wait(30)
    latencies = sorted(run.latencies_milliseconds)
    return [
        Figure(f"requests a second, {CONNECTIONS} connections", f"{run.requests / run.seconds:,.0f}", ">= 2,000"),
        Figure("requests a second of its own CPU time", f"{run.requests / cpu_seconds:,.0f}"),
        Figure("p50 of an answer", f"{latencies[len(latencies) // 2]:.1f} ms"),
        Figure("p99 of an answer", f"{latencies[int(len(latencies) * 0.99)]:.1f} ms", "<= 10 ms"),
        Figure(f"resident memory after {requests:,} more requests", f"{(after - before) / 1024:+.1f} MiB", "flat"),
        Figure("resident memory", f"{after / 1024:.0f} MiB"),
    ]


def _resident_kibibytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _ask(files: ServerFiles, port: int, requests: int) -> _Run:
    context = ssl.create_default_context(cafile=str(files.authority))
    context.load_cert_chain(files.client_certificate, files.client_key)
    latencies: list[float] = []
    started = time.perf_counter()
    share = requests // CONNECTIONS
    await asyncio.gather(*(_ask_on_one(context, port, share, first, latencies) for first in range(CONNECTIONS)))
    return _Run(share * CONNECTIONS, time.perf_counter() - started, latencies)


async def _ask_on_one(context: ssl.SSLContext, port: int, requests: int, first: int, latencies: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=NAMES[0])
    for number in range(first, first + requests):
        began = time.perf_counter()
        writer.write(_request(number))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
        await reader.readexactly(length)
        latencies.append((time.perf_counter() - began) * 1000)
    writer.close()


def _request(number: int) -> bytes:
    namespace = number % NAMESPACES
    pool, metric = (number * 7) % POOLS_PER_NAMESPACE, METRICS[number % len(METRICS)]
    path = (
        f"/apis/external.metrics.k8s.io/v1beta1/namespaces/team-{namespace}/{metric}?labelSelector=scaler%3Dpool-{pool}"
    )
    return (
        f"GET {path} HTTP/1.1\r\nHost: {NAMES[0]}\r\nX-Remote-User: {HPA_ACCOUNT}\r\n"
        "X-Remote-Group: system:serviceaccounts\r\nX-Remote-Group: system:authenticated\r\n"
        "Accept: application/vnd.kubernetes.protobuf, */*\r\nAccept-Encoding: gzip\r\n"
        "User-Agent: kube-controller-manager\r\n\r\n"
    ).encode()
