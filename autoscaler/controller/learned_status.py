"""What of a report is worth keeping in `.status.learned`?"""

from __future__ import annotations

from autoscaler.api.learned import LearnedStatus, learned_cold_start, written_bursts
from autoscaler.api.learned_capacity import learned_capacity_status
from autoscaler.observers.workload import Workload
from policies.bursts import BurstMemory
from policies.capacity.memory import CapacityMemory


def learned_status(workload: Workload, capacity: CapacityMemory | None, bursts: BurstMemory) -> LearnedStatus | None:
    """What the pool has taught so far; None where that is nothing."""
    if workload.cold_start is None and capacity is None and not bursts.short:
        return None
    return LearnedStatus(
        cold_start=learned_cold_start(workload.cold_start, workload.starts) if workload.cold_start else None,
        capacity=learned_capacity_status(capacity) if capacity else None,
        bursts=written_bursts(bursts.short),
    )
