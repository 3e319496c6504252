"""Metrics that are missing, wrong or cut off never lower a count; blind for long, a pool goes to its fallback."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from tests.cluster.harness.fleet import Fleet, wait_scraped
from tests.cluster.harness.policies import quick_policy
from tests.servers.prometheus_proxy import PrometheusProxy, Spoilt
from tests.servers.vllm_exporters import Fault, PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

# Four times the down window of the policies here: whoever takes "not seen" for "no load" would have lowered by then.
BLIND_SECONDS = 20
TOKENS_PER_REPLICA = 1000
RATE_WINDOW_SECONDS = 10


def _steady_fleets(start_fleet, prometheus, *sizes: int, queue_on_every_pod: bool = False, **policy) -> list[Fleet]:
    """Pools whose load asks for exactly the replicas they have."""
    fleets = [start_fleet(replicas=replicas, scraped=False) for replicas in sizes]
    for fleet, replicas in zip(fleets, sizes, strict=True):
        fleet.set_load(replace(_load_for(replicas), queue_on_every_pod=queue_on_every_pod))
    time.sleep(2)  # two scrapes: no decision is made on idle pages
    wait_scraped(prometheus, *fleets)
    for fleet in fleets:
        fleet.create_scaler(quick_policy(**policy))
    return fleets


def _load_for(replicas: int) -> PoolLoad:
    """Asks for so many replicas by waiting requests, and by tokens per second (a little less: rates are uneven)."""
    tokens = TOKENS_PER_REPLICA * (replicas - 0.1)
    return PoolLoad(running=8 * replicas, waiting=4 * replicas, prompt_tokens_per_second=tokens)


def _assert_never_lowered(fleet: Fleet, first: int) -> None:
    counts = [first, *fleet.written_counts()]
    assert all(later >= earlier for earlier, later in pairwise(counts)), counts


@dataclass(frozen=True)
class _ExporterFault:
    name: str
    share: float
    spoil: Callable[[Fleet, float], None]


def _fault(fault: Fault) -> Callable[[Fleet, float], None]:
    return lambda fleet, share: fleet.set_fault(fault, share)


def _restart_engines(fleet: Fleet, share: float) -> None:
    names = fleet.pod_names()
    for name in names[: round(len(names) * share)]:
        fleet.exporters.restart(fleet.namespace, name)


EXPORTER_FAULTS = (
    _ExporterFault("half of the exporters dead", 0.5, _fault(Fault.DEAD)),
    _ExporterFault("all exporters dead", 1.0, _fault(Fault.DEAD)),
    _ExporterFault("one exporter hangs", 0.25, _fault(Fault.HANGS)),
    _ExporterFault("NaN from half of the exporters", 0.5, _fault(Fault.NAN)),
    _ExporterFault("NaN from all exporters", 1.0, _fault(Fault.NAN)),
    _ExporterFault("the metric renamed on one pod", 0.25, _fault(Fault.RENAMED)),
    _ExporterFault("the metric renamed on all pods", 1.0, _fault(Fault.RENAMED)),
    _ExporterFault("empty pages from all exporters", 1.0, _fault(Fault.EMPTY)),
    _ExporterFault("counters reset on half of the pods", 0.5, _restart_engines),
)


def test_no_fault_of_the_exporters_lowers_a_count(start_fleet, start_controller, prometheus, tmp_path) -> None:
    made = _steady_fleets(start_fleet, prometheus, *(4 for _ in EXPORTER_FAULTS), queue_on_every_pod=True)
    fleets = {fault.name: fleet for fault, fleet in zip(EXPORTER_FAULTS, made, strict=True)}
    restarted = fleets["counters reset on half of the pods"]
    restarted.patch_scaler(
        {"signals": {"waitingRequests": None, "tokenRate": {"perReplicaPerSecond": TOKENS_PER_REPLICA}}}
    )
    time.sleep(RATE_WINDOW_SECONDS)
    namespaces = [fleet.namespace for fleet in fleets.values()]
    config = tmp_path / "prometheus-client.yaml"
    config.write_text(f"queries: {{rate_window_seconds: {RATE_WINDOW_SECONDS}}}\n")
    arguments = ["--prometheus-config", config]
    controller = start_controller(restarted, namespaces=namespaces, arguments=arguments)
    controller.wait_deciding(records=3 * len(fleets))

    for fault in EXPORTER_FAULTS:
        fault.spoil(fleets[fault.name], fault.share)
    time.sleep(BLIND_SECONDS)
    written = {name: fleet.written_counts() for name, fleet in fleets.items()}
    assert restarted.written_counts() == [], "a reset is neither less work nor more"
    lowered = {name: counts for name, counts in written.items() if min([4, *counts]) < 4}
    assert not lowered, written
    all_dead = fleets["all exporters dead"].condition("MetricsAvailable")
    assert all_dead["status"] == "False", all_dead
    half_dead = fleets["half of the exporters dead"].condition("MetricsAvailable")
    assert half_dead["status"] == "False", half_dead
    # The first tick that saw a page missing wrote the message; numbers in it are renewed only now and then.
    assert "of 4 ready replicas have fresh samples" in half_dead["message"]

    for fleet in fleets.values():
        fleet.set_fault(None)
    for fleet in fleets.values():
        fleet.wait_condition("MetricsAvailable", "True")
        fleet.set_load(_load_for(8))
    for name, fleet in fleets.items():
        assert fleet.wait_replicas(8) < 60, name


def test_a_prometheus_that_answers_badly_lowers_nothing(start_fleet, start_controller, prometheus) -> None:
    (fleet,) = _steady_fleets(start_fleet, prometheus, 4)
    with PrometheusProxy(prometheus.url) as proxy:
        start_controller(fleet, prometheus_url=proxy.url).wait_deciding(records=5)
        for spoilt in Spoilt:
            # The load is gone while nobody can see it, or (behind the warning) only half of it can be seen.
            proxy.spoilt = spoilt
            fleet.set_load(PoolLoad())
            time.sleep(12)
            assert fleet.written_counts() == [], spoilt
            condition = fleet.condition("MetricsAvailable")
            assert condition["status"] == "False", (spoilt, condition)
            fleet.set_load(PoolLoad(running=32, waiting=16))
            proxy.spoilt = None
            fleet.wait_condition("MetricsAvailable", "True")
        fleet.set_load(PoolLoad(running=64, waiting=32))
        fleet.wait_replicas(8)
        assert fleet.written_counts() == [8]


@pytest.mark.parametrize(
    "silence",
    [
        pytest.param("kill", id="killed: connections are refused"),
        pytest.param("suspend", id="stopped: connections are accepted and never answered"),
    ],
)
def test_a_lost_prometheus_is_a_hold_then_the_fallback_then_normal_again(
    start_fleet, start_controller, prometheus, silence: str
) -> None:
    hold_seconds = 10
    missing_data = {"holdSeconds": hold_seconds, "fallback": {"replicas": 6, "behavior": "CurrentIfHigher"}}
    fleet, high = _steady_fleets(start_fleet, prometheus, 4, 7, missing_data=missing_data)
    controller = start_controller(fleet, namespaces=[fleet.namespace, high.namespace])
    controller.wait_deciding(records=8)

    getattr(prometheus, silence)()
    lost_at = time.monotonic()
    fleet.wait_condition("MetricsAvailable", "False", timeout_seconds=30)
    fleet.wait_replicas(6, timeout_seconds=60)
    assert time.monotonic() - lost_at >= hold_seconds
    fleet.wait_condition("ScalingActive", "False", "Fallback")
    assert "fallback" in fleet.wait_event("SucceededRescale")["message"]
    high.wait_event("Fallback")
    fleet.wait_ready(6)
    assert high.written_counts() == [], "CurrentIfHigher: 7 are more than 6"

    if silence == "kill":
        prometheus.start()
    else:
        prometheus.resume()
    fleet.wait_condition("MetricsAvailable", "True", timeout_seconds=60)
    fleet.wait_condition("ScalingActive", "True")
    # 16 waiting ask for 4: back by the ordinary rules of scale-down, once three good readings have come.
    fleet.wait_replicas(4, timeout_seconds=120)
    reasons = [
        step["reason"]
        for record in controller.records()
        for step in record["decision"].get("steps", ())
        if _is_of(record, fleet)
    ]
    assert reasons.count("Recovering") >= 2, "three good readings in a row before anything is lowered"
    assert fleet.written_counts() == [6, 4]
    _assert_never_lowered(high, first=7)


def _is_of(record, fleet: Fleet) -> bool:
    return record["namespace"] == fleet.namespace
