from __future__ import annotations

from typing import Any

import pytest

from autoscaler.api.accelerator_pool import AcceleratorPool, parse_accelerator_pool
from tests.autoscaler.api.objects import POOL, changed

MANAGED = {"mode": "Manage", "nodeShape": {"accelerators": 8}}
BUFFER = {"method": "CapacityBuffer"}


@pytest.mark.parametrize(
    ("changes", "spare_nodes"),
    [
        pytest.param({**MANAGED, "prewarm": BUFFER, "latencyClass": "Interactive"}, 1, id="one for people who wait"),
        pytest.param({**MANAGED, "prewarm": BUFFER, "latencyClass": "Batch"}, 0, id="none for work"),
        pytest.param({**MANAGED, "prewarm": BUFFER}, 0, id="none where nothing is said"),
        pytest.param(
            {**MANAGED, "prewarm": BUFFER | {"spareNodes": 0}, "latencyClass": "Interactive"}, 0, id="as it is said"
        ),
        pytest.param({**MANAGED, "latencyClass": "Interactive"}, None, id="nothing holds nodes"),
        pytest.param(
            {**MANAGED, "prewarm": {"method": "Replicas"}, "latencyClass": "Interactive"}, None, id="replicas do"
        ),
        pytest.param({"prewarm": BUFFER, "latencyClass": "Interactive"}, None, id="nothing is managed"),
    ],
)
def test_nodes_to_spare(changes: dict[str, Any], spare_nodes: int | None) -> None:
    pool = parse_accelerator_pool(changed(POOL, changes))
    assert isinstance(pool, AcceleratorPool), pool
    held = pool.spec.held_ready
    assert (None if held is None else held.spare_nodes) == spare_nodes
