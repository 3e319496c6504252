"""What of a report is worth keeping in `.status.learned`?"""

from __future__ import annotations

from autoscaler.api.learned import LearnedStatus, learned_cold_start
from autoscaler.observers.workload import Workload


def learned_status(workload: Workload) -> LearnedStatus | None:
    """What the pool has taught so far; None where that is nothing."""
    if workload.cold_start is None:
        return None
    return LearnedStatus(cold_start=learned_cold_start(workload.cold_start, workload.starts))
