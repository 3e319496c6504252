"""The control plane, Prometheus, fleets and controllers that the scenarios share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet, wait_scraped
from tests.cluster.harness.node_pools import INSTANCE_TYPES, NODE_CLASS
from tests.servers.prometheus_server import PrometheusServer
from tests.servers.vllm_exporters import VllmExporters

# Long looks, which somebody asks for (`make proof-events`, `make proof-karpenter`).
_LONG_LOOKS = {
    "test_random_events.py": "TOKENSCALER_EVENTS",
    "test_karpenter_outage.py": "TOKENSCALER_LONG_LOOKS",
    "test_held_back_consolidation.py": "TOKENSCALER_LONG_LOOKS",
}
collect_ignore = [file for file, asked_by in _LONG_LOOKS.items() if asked_by not in os.environ]
CRD_DIRECTORY = Path(__file__).parents[2] / "deploy" / "crd"


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """One control plane for all tests of this process: our CRDs and 12 nodes of 8 GPUs are there."""
    with ControlPlane() as started:
        started.apply(CRD_DIRECTORY)
        started.add_nodes(12)
        yield started


@pytest.fixture
def own_control_plane() -> Iterator[ControlPlane]:
    """A control plane for one test that breaks it."""
    with ControlPlane() as started:
        started.apply(CRD_DIRECTORY)
        started.add_nodes(4)
        yield started


@pytest.fixture
def karpenter_plane() -> Iterator[ControlPlane]:
    """A control plane of one test's own with a Karpenter, our CRDs and a class of nodes; there are no NodePools yet."""
    with ControlPlane(karpenter_instance_types=INSTANCE_TYPES) as started:
        started.apply(CRD_DIRECTORY, NODE_CLASS)
        yield started


@pytest.fixture
def exporters() -> Iterator[VllmExporters]:
    """The metrics pages of this test's pods."""
    with VllmExporters() as started:
        yield started


@pytest.fixture
def prometheus(exporters: VllmExporters) -> Iterator[PrometheusServer]:
    """A Prometheus that scrapes this test's pods every second."""
    with PrometheusServer([exporters.scrape_config()]) as started:
        yield started


StartFleet = Callable[..., Fleet]
StartController = Callable[..., ControllerProcess]


@pytest.fixture
def start_fleet(
    request: pytest.FixtureRequest, exporters: VllmExporters, prometheus: PrometheusServer
) -> Iterator[Any]:
    """start_fleet(replicas=2, kind=..., loads_in="5s", on=control_plane, ...) -> Fleet, Ready and scraped.

    Without `on` it is on the control plane of all tests, which starts with the first who asks for it. New pods are
    scraped after 5 to 10 s: several fleets are made faster by `scraped=False` and one wait at the end.
    """
    with ExitStack() as fleets:

        def start(replicas: int = 2, on: ControlPlane | None = None, scraped: bool = True, **options: Any) -> Fleet:
            plane = on or request.getfixturevalue("control_plane")
            fleet = fleets.enter_context(Fleet(plane, exporters, replicas=replicas, **options))
            if scraped:
                wait_scraped(prometheus, fleet)
            return fleet

        yield start


@pytest.fixture
def start_controller(prometheus: PrometheusServer, tmp_path: Path) -> Iterator[Any]:
    """start_controller(fleet, identity="a", kubeconfig=..., prometheus_url=..., dry_run=...) -> ControllerProcess."""
    started: list[ControllerProcess] = []

    def start(fleet: Fleet, identity: str = "controller", **options: Any) -> ControllerProcess:
        options.setdefault("kubeconfig", fleet.control_plane.kubeconfig)
        options.setdefault("prometheus_url", prometheus.url)
        options.setdefault("namespaces", [fleet.namespace])
        options.setdefault("lease_namespace", fleet.namespace)
        controller = ControllerProcess(tmp_path, identity=identity, **options)
        started.append(controller)
        controller.start()
        return controller

    yield start
    for controller in started:
        controller.kill()
        print(f"--- {controller.log_path}\n{controller.log_tail(60)}")
