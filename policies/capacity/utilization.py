"""How much of a replica's capacity may be used? As much as its requests have borne."""

from __future__ import annotations

LEAST_SAFE_UTILIZATION = 0.55
MOST_SAFE_UTILIZATION = 0.90
# Of the requests half a percent may be outside the objectives. What comes with rises of the load is part of that, so
# that between them it is 0.3 %; below half of it there is room.
TOLERATED_SHARE = 0.003
CALM_SHARE = 0.0015
GROWTH_PER_MINUTE = 0.004
CUT_FACTOR = 0.6
WORST_SHARE = 0.03  # a window that went wrong as a whole says no more than this
# The calm of replicas that have little to do says nothing of what they could bear.
LOADED_SHARE = 0.75


def trimmed_utilization(utilization: float, outside_share: float, work_per_replica: float) -> float:
    """The safe utilisation after one more minute in which nothing started or queued.

    Up by 0.004 while fewer than 0.15 % of the requests were outside the objectives and the replicas had at least three
    quarters of their safe load; else by 0.6 x (0.003 - share): 2 % outside take 0.0102. Slowly, since a hair trigger
    overshoots. Within 0.55 and 0.90.
    """
    if outside_share < CALM_SHARE:
        change = GROWTH_PER_MINUTE if work_per_replica >= LOADED_SHARE * utilization else 0.0
    else:
        change = CUT_FACTOR * (TOLERATED_SHARE - min(outside_share, WORST_SHARE))
    return min(max(utilization + change, LEAST_SAFE_UTILIZATION), MOST_SAFE_UTILIZATION)
