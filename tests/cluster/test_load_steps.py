"""Load steps up and down: the count follows as the policy says, and everything that a person looks at says why."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import time
from itertools import pairwise
from typing import Any

import pytest

from tests.cluster.harness.audit_log import AuditEvent
from tests.cluster.harness.fleet import wait_scraped, written_count
from tests.cluster.harness.policies import in_shorter_time, preset, quick_policy
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

SCRAPE_SECONDS = 1
TICK_SECONDS = 1


def _queue(waiting: int) -> PoolLoad:
    return PoolLoad(running=waiting, waiting=waiting)


def _explain(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "autoscaler", "explain", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def _counts(writes: tuple[AuditEvent, ...]) -> list[int]:
    return [written_count(write) for write in writes]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "LeaderWorkerSet"])
def test_a_step_up_is_patched_within_scrape_tick_and_a_second(
    start_fleet, start_controller, prometheus, kind: str
) -> None:
    fleet = start_fleet(replicas=1, kind=kind)
    fleet.create_scaler(quick_policy())
    start_controller(fleet).wait_deciding()

    delays = []
    for waiting, replicas in ((8, 2), (16, 4), (24, 6)):
        stepped_at = datetime.datetime.now(datetime.UTC)
        fleet.set_load(_queue(waiting))
        fleet.wait_replicas(replicas)
        delays.append((fleet.scale_writes()[-1].at - stepped_at).total_seconds())
        fleet.wait_ready(replicas)
        wait_scraped(prometheus, fleet)

    assert fleet.written_counts() == [2, 4, 6]
    # Others use this machine too: one step in time shows that nothing in the path waits longer.
    assert min(delays) <= SCRAPE_SECONDS + TICK_SECONDS + 1, delays


def test_columns_condition_event_and_explain_say_why(start_fleet, start_controller, prometheus) -> None:
    fleet = start_fleet(replicas=1)
    fleet.create_scaler(quick_policy())
    controller = start_controller(fleet)
    controller.wait_deciding()
    fleet.set_load(_queue(12))
    fleet.wait_replicas(3)
    fleet.wait_ready(3)
    wait_scraped(prometheus, fleet)
    wait_until(lambda: fleet.scaler_status().get("readyReplicas") == 3, "3 ready in the status", 30)

    columns = fleet.control_plane.kubectl("get", "isc", "-n", fleet.namespace)
    header, row = columns.splitlines()
    assert {"MODE", "READY", "DESIRED", "REASON"} <= set(header.split()), columns
    assert row.split()[:2] == ["vllm", "Scale"], columns
    assert row.split().count("3") >= 2, columns

    assert fleet.condition("SpecAccepted")["status"] == "True"
    assert fleet.condition("ScalingActive")["status"] == "True"
    assert fleet.condition("AbleToScale")["status"] == "True"
    assert fleet.condition("MetricsAvailable")["status"] == "True"

    rescaled = fleet.wait_event("SucceededRescale")
    assert "1" in rescaled["message"]
    assert "3" in rescaled["message"]
    assert "waiting" in rescaled["message"].lower()

    told = _explain(f"{fleet.namespace}/vllm", "--url", controller.url)
    assert told.returncode == 0, told.stderr
    assert "waiting" in told.stdout.lower()
    as_json = _explain(f"{fleet.namespace}/vllm", "--url", controller.url, "--output", "json")
    assert as_json.returncode == 0, as_json.stderr
    assert "3" in json.dumps(json.loads(as_json.stdout))

    recomputed = _explain("--log", controller.decision_log)
    assert recomputed.returncode == 0, recomputed.stdout + recomputed.stderr


def test_a_step_down_waits_for_the_window_and_keeps_the_rate(start_fleet, start_controller) -> None:
    window, step, period = 12, 2, 6
    policy = quick_policy(minimum=1, down_window_seconds=window)
    policy["behavior"]["scaleDown"]["policies"] = [{"type": "Pods", "value": step, "periodSeconds": period}]
    fleet = start_fleet(replicas=8)
    fleet.set_load(_queue(32))
    time.sleep(2 * SCRAPE_SECONDS)
    fleet.create_scaler(policy)
    start_controller(fleet).wait_deciding(records=3)

    dropped_at = datetime.datetime.now(datetime.UTC)
    fleet.set_load(_queue(4))
    fleet.wait_replicas(1, timeout_seconds=120)

    writes = fleet.scale_writes()
    assert _counts(writes) == [6, 4, 2, 1]
    assert (writes[0].at - dropped_at).total_seconds() >= window - TICK_SECONDS
    gaps = [(later.at - earlier.at).total_seconds() for earlier, later in pairwise(writes)]
    assert min(gaps) >= period - TICK_SECONDS, gaps


def test_the_queue_depth_preset_does_what_its_numbers_say(start_fleet, start_controller, prometheus) -> None:
    # As shipped: 2 to 32 replicas, 4 waiting each; up after 30 s by 100 %/30 s, down after 300 s by 2 pods/60 s.
    # Windows and periods are a third up and a twentieth down here; the up window outlasts the discovery of new pods.
    shipped = preset("queue-depth.yaml")
    assert (shipped["minReplicas"], shipped["maxReplicas"]) == (2, 32)
    assert shipped["signals"]["waitingRequests"] == {"perReplica": 4}
    assert shipped["behavior"]["scaleUp"]["stabilizationWindowSeconds"] == 30
    assert shipped["behavior"]["scaleUp"]["policies"] == [{"type": "Percent", "value": 100, "periodSeconds": 30}]
    assert shipped["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 300
    assert shipped["behavior"]["scaleDown"]["policies"] == [{"type": "Pods", "value": 2, "periodSeconds": 60}]
    policy = in_shorter_time(shipped, 2)
    policy["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 15
    policy["behavior"]["scaleDown"]["policies"][0]["periodSeconds"] = 3
    fleet = start_fleet(replicas=2)
    policy["scaleTargetRef"] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": fleet.name}
    fleet.create_scaler(policy | {"mode": "Scale"})
    start_controller(fleet).wait_deciding(records=3)

    stepped_at = datetime.datetime.now(datetime.UTC)
    fleet.set_load(_queue(40))
    fleet.wait_replicas(10, timeout_seconds=180)
    ups = fleet.scale_writes()
    assert _counts(ups) == [4, 8, 10]
    assert (ups[0].at - stepped_at).total_seconds() >= 15 - TICK_SECONDS
    assert min((later.at - earlier.at).total_seconds() for earlier, later in pairwise(ups)) >= 15 - TICK_SECONDS

    fleet.wait_ready(10)
    wait_scraped(prometheus, fleet)
    dropped_at = datetime.datetime.now(datetime.UTC)
    fleet.set_load(_queue(0))
    fleet.wait_replicas(2, timeout_seconds=180)
    downs = fleet.scale_writes()[len(ups) :]
    assert _counts(downs) == [8, 6, 4, 2]
    assert (downs[0].at - dropped_at).total_seconds() >= 15 - TICK_SECONDS
    assert min((later.at - earlier.at).total_seconds() for earlier, later in pairwise(downs)) >= 3 - TICK_SECONDS


def test_the_agents_preset_does_what_its_numbers_say(start_fleet, start_controller, prometheus, tmp_path) -> None:
    # As shipped: 4 to 96 replicas by tokens per second; up at once by 100 %/30 s, down after 600 s by 4 pods/60 s;
    # a schedule in the morning; gateway pending requests as fallback. Times are ten times shorter here.
    shipped = preset("agents.yaml")
    assert (shipped["minReplicas"], shipped["maxReplicas"]) == (4, 96)
    assert shipped["behavior"]["scaleUp"].get("stabilizationWindowSeconds", 0) == 0
    assert shipped["behavior"]["scaleUp"]["policies"] == [{"type": "Percent", "value": 100, "periodSeconds": 30}]
    assert shipped["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 600
    assert shipped["behavior"]["scaleDown"]["policies"] == [{"type": "Pods", "value": 4, "periodSeconds": 60}]
    per_replica = shipped["signals"]["tokenRate"]["perReplicaPerSecond"]
    policy = in_shorter_time(shipped | {"schedules": []}, 10)
    policy["signals"]["pendingRequests"] = {
        "query": 'sum(gateway_pending_requests{pool="agents"})',
        "perReplica": shipped["signals"]["pendingRequests"]["perReplica"],
    }
    fleet = start_fleet(replicas=4)
    policy["scaleTargetRef"] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": fleet.name}
    fleet.exporters.set_gateway_pending("agents", 0)
    fleet.create_scaler(policy | {"mode": "Scale"})
    config = tmp_path / "prometheus-client.yaml"
    config.write_text("queries: {rate_window_seconds: 6}\n")
    start_controller(fleet, arguments=["--prometheus-config", config]).wait_deciding(records=3)

    # Work for 13.7 replicas: 4 -> 8 -> 14, never more than twice the count of 3 s before. A rate that reads 2 % high
    # for a moment asks for no 15th, which tolerance would keep; one that reads 5 % low leaves 13, which it would not.
    fleet.set_load(PoolLoad(prompt_tokens_per_second=per_replica * 12.7, generation_tokens_per_second=per_replica))
    fleet.wait_replicas(14, timeout_seconds=120)
    fleet.wait_ready(14)
    wait_scraped(prometheus, fleet)
    ups = fleet.scale_writes()
    _assert_at_most_doubled(4, ups, period_seconds=3)

    # The engines are idle again: down by 4 pods in 6 s, after a minute.
    dropped_at = datetime.datetime.now(datetime.UTC)
    fleet.set_load(PoolLoad())
    fleet.wait_replicas(4, timeout_seconds=180)
    downs = fleet.scale_writes()[len(ups) :]
    assert (downs[0].at - dropped_at).total_seconds() >= 60 - TICK_SECONDS
    _assert_at_most_four_less(14, downs, period_seconds=6)

    # The morning window opens: its minimum is reached, though nobody asks for anything.
    now = datetime.datetime.now(datetime.UTC)
    opened, closes = now - datetime.timedelta(minutes=2), now + datetime.timedelta(hours=1)
    window = shipped["schedules"][0]
    fleet.patch_scaler(
        {
            "schedules": [
                {
                    "name": window["name"],
                    "timezone": "UTC",
                    "start": f"{opened.minute} {opened.hour} * * *",
                    "end": f"{closes.minute} {closes.hour} * * *",
                    "minReplicas": window["minReplicas"],
                }
            ]
        }
    )
    fleet.wait_replicas(window["minReplicas"], timeout_seconds=120)

    # The gateway holds requests back: they are work for more replicas than the schedule.
    more = window["minReplicas"] + 6
    fleet.exporters.set_gateway_pending("agents", more * policy["signals"]["pendingRequests"]["perReplica"])
    fleet.wait_replicas(more, timeout_seconds=120)


def _assert_at_most_four_less(first: int, writes: tuple[AuditEvent, ...], period_seconds: float) -> None:
    """Whether the last of the old work leaves the window at once or in two ticks, no period loses more than 4."""
    counts = [first, *_counts(writes)]
    assert counts == sorted(counts, reverse=True), counts
    assert counts[-1] == 4, counts
    for index, write in enumerate(writes):
        within = [
            earlier
            for earlier, at in zip(counts, (write.at for write in writes), strict=False)
            if 0 <= (write.at - at).total_seconds() < period_seconds - TICK_SECONDS
        ]
        assert max(within) - counts[index + 1] <= 4, (counts, [str(each.at) for each in writes])


def _assert_at_most_doubled(first: int, writes: tuple[AuditEvent, ...], period_seconds: float) -> None:
    counts = [first, *_counts(writes)]
    assert counts == sorted(counts), counts
    for index, write in enumerate(writes):
        # The count that stood a period before this write, by our own clock and the tick that decided it.
        before = first
        for earlier, count in zip(writes, counts[1:], strict=True):
            if (write.at - earlier.at).total_seconds() >= period_seconds - TICK_SECONDS:
                before = count
        assert counts[index + 1] <= 2 * before, (counts, [str(each.at) for each in writes])
