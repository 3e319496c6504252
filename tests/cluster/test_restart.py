"""A controller that restarts in the middle of a scale-down window: no count is lowered before the window was seen."""

from __future__ import annotations

import datetime
import time

import pytest

from tests.cluster.harness.policies import quick_policy
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

WINDOW_SECONDS = 24


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def test_a_restored_window_goes_on_where_it_was(start_fleet, start_controller) -> None:
    fleet = start_fleet(replicas=4)
    fleet.set_load(PoolLoad(running=32, waiting=16))
    time.sleep(2)
    fleet.create_scaler(quick_policy(down_window_seconds=WINDOW_SECONDS))
    first = start_controller(fleet, "first")
    first.wait_deciding(records=3)

    dropped_at = _now()
    fleet.set_load(PoolLoad(running=8, waiting=4))
    time.sleep(WINDOW_SECONDS / 2)
    first.kill()
    second = start_controller(fleet, "second")
    second.wait_deciding()
    fleet.wait_replicas(1, timeout_seconds=120)

    write = fleet.scale_writes()[0]
    assert (write.at - dropped_at).total_seconds() >= WINDOW_SECONDS - 1
    assert fleet.written_counts() == [1]


def test_without_a_saved_history_a_whole_new_window_is_seen(control_plane, start_fleet, start_controller) -> None:
    fleet = start_fleet(replicas=4)
    fleet.set_load(PoolLoad(running=32, waiting=16))
    time.sleep(2)
    fleet.create_scaler(quick_policy(down_window_seconds=WINDOW_SECONDS))
    first = start_controller(fleet, "first")
    first.wait_deciding(records=3)
    fleet.set_load(PoolLoad(running=8, waiting=4))
    time.sleep(WINDOW_SECONDS / 2)
    first.kill()
    control_plane.api.merge(f"{fleet.scalers_path}/vllm/status", {"status": None})

    restarted_at = _now()
    start_controller(fleet, "second").wait_deciding()
    fleet.wait_replicas(1, timeout_seconds=120)
    assert (fleet.scale_writes()[0].at - restarted_at).total_seconds() >= WINDOW_SECONDS
