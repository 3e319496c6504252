"""A dry run under an account without a single write verb decides everything and attempts no write."""

from __future__ import annotations

import pytest

from tests.cluster.harness.policies import quick_policy
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

READ_ONLY = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]


def test_a_dry_run_decides_and_never_attempts_a_write(control_plane, start_fleet, start_controller) -> None:
    fleet = start_fleet(replicas=2)
    fleet.create_scaler(quick_policy(mode="Scale"))
    kubeconfig = control_plane.create_service_account(fleet.namespace, "reader", READ_ONLY)
    controller = start_controller(fleet, kubeconfig=kubeconfig, dry_run=True)
    controller.wait_deciding(records=3)
    fleet.set_load(PoolLoad(running=40, waiting=20))

    record = controller.wait_record(lambda record: record["decision"]["desiredReplicas"] == 5, "5 decided")
    assert record["actuation"]["reason"] == "DryRun"
    wait_until(controller.is_ready, "a dry run is ready", 30)
    controller.stop()

    account = f"system:serviceaccount:{fleet.namespace}:reader"
    requests = [event for event in control_plane.audit_events() if event.user == account]
    assert requests, "it has read"
    # The reviews of one's own permissions are creates that change nothing.
    writes = [event for event in requests if event.is_write and not event.resource.startswith("selfsubject")]
    assert writes == []
    assert fleet.replicas() == 2
