"""How long the pool's own starts take is learned, shown and kept across a restart of the controller."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.harness.policies import quick_policy
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

LOADS_IN_SECONDS = 6


def _queue(waiting: int) -> PoolLoad:
    return PoolLoad(running=waiting, waiting=waiting)


def test_starts_are_learned_shown_and_taken_up_by_the_next_controller(start_fleet, start_controller) -> None:
    fleet = start_fleet(replicas=1, loads_in=f"{LOADS_IN_SECONDS}s")
    fleet.create_scaler(quick_policy())
    first = start_controller(fleet, identity="first")
    first.wait_deciding()

    def learned() -> dict[str, Any]:
        return (fleet.scaler_status().get("learned") or {}).get("coldStart") or {}

    assert learned() == {}  # what was there before is no start that was seen
    fleet.set_load(_queue(8))
    fleet.wait_replicas(2)
    fleet.wait_ready(2)
    wait_until(lambda: learned().get("starts") == 1, "one start in the status", 60)
    # Times of conditions are in whole seconds.
    assert learned()["l95Seconds"] >= LOADS_IN_SECONDS - 1
    assert learned()["imageSeconds"] >= LOADS_IN_SECONDS - 1
    late = fleet.wait_condition("ColdStartsInTime", "False", "StartsSlowly")
    assert "coldStart.priorSeconds says 1 s" in late["message"]

    first.stop()
    second = start_controller(fleet, identity="second")
    second.wait_deciding()
    fleet.set_load(_queue(16))
    fleet.wait_replicas(4)
    fleet.wait_ready(4)
    wait_until(lambda: learned().get("starts") == 3, "the start before the restart and two more", 60)
    assert len(learned()["recent"].split()) == 3
