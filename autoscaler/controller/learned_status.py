"""What of a report is worth keeping in `.status.learned`?"""

from __future__ import annotations

from autoscaler.api.learned import LearnedStatus, learned_cold_start
from autoscaler.api.learned_capacity import learned_capacity_status
from autoscaler.observers.workload import Workload
from policies.capacity.memory import CapacityMemory


def learned_status(workload: Workload, capacity: CapacityMemory | None) -> LearnedStatus | None:
    """What the pool has taught so far; None where that is nothing."""
    if workload.cold_start is None and capacity is None:
        return None
    return LearnedStatus(
        cold_start=learned_cold_start(workload.cold_start, workload.starts) if workload.cold_start else None,
        capacity=learned_capacity_status(capacity) if capacity else None,
    )
