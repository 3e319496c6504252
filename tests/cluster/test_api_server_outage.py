"""The API server is away for a minute, and its history compacted: nothing is lost, nothing is lowered by mistake."""

from __future__ import annotations

import datetime
import time
from collections import Counter

import pytest

from tests.cluster.harness.policies import quick_policy
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

OUTAGE_SECONDS = 60
EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]


def test_a_minute_without_api_server_loses_and_lowers_nothing(
    own_control_plane, start_fleet, start_controller, prometheus
) -> None:
    fleet = start_fleet(replicas=4, on=own_control_plane)
    fleet.set_load(PoolLoad(running=32, waiting=16))
    time.sleep(2)
    fleet.create_scaler(quick_policy())
    kubeconfig = own_control_plane.create_service_account(fleet.namespace, "controller", EVERYTHING)
    controller = start_controller(fleet, kubeconfig=kubeconfig)
    controller.wait_deciding(records=5)

    own_control_plane.stop_api_server()
    time.sleep(OUTAGE_SECONDS)
    assert controller.running, controller.log_tail()
    own_control_plane.compact_etcd()
    own_control_plane.start_api_server()
    back_at = datetime.datetime.now(datetime.UTC)
    wait_until(controller.is_ready, "the controller is ready again", 60)
    time.sleep(15)  # three down windows
    assert fleet.written_counts() == []

    fleet.set_load(PoolLoad(running=64, waiting=32))
    fleet.wait_replicas(8, timeout_seconds=60)
    assert fleet.written_counts() == [8]
    fleet.wait_condition("ScalingActive", "True")

    # Watches resume or are told 410 and list once more; nobody lists again and again.
    account = f"system:serviceaccount:{fleet.namespace}:controller"
    lists = Counter(
        event.resource
        for event in own_control_plane.audit_events()
        if event.user == account and event.verb == "list" and event.at >= back_at
    )
    assert lists, "an old watch gets 410 and lists again"
    assert max(lists.values()) <= 3, lists
