"""How much of a replica's capacity may be used? What its law leaves to the slow requests, trimmed by what they bore."""

from __future__ import annotations

LEAST_SAFE_UTILIZATION = 0.52
# What is between this and 1 is left for the tolerance, and for rises within a minute.
MOST_SAFE_UTILIZATION = 0.85
# Lengths that spread otherwise than the law supposes are found by what misses, within these bounds.
LEAST_TRIM, MOST_TRIM = 0.75, 1.4
# Of the requests half a percent may be outside the objectives. What comes with rises of the load is part of that, so
# that between them it is 0.3 %; below half of it there is room.
TOLERATED_SHARE = 0.003
CALM_SHARE = 0.0015
GROWTH_PER_MINUTE = 0.012
CUT_FACTOR = 0.6
WORST_SHARE = 0.03  # a window that went wrong as a whole says no more than this
# The calm of replicas that have little to do says nothing of what they could bear.
LOADED_SHARE = 0.75


def safe_utilization(safe_share: float, trim: float) -> float:
    """The share of the capacity that a replica may be given: the law's own times the trim, within 0.52 and 0.85."""
    return min(max(safe_share * trim, LEAST_SAFE_UTILIZATION), MOST_SAFE_UTILIZATION)


def trimmed(trim: float, utilization: float, outside_share: float, work_per_replica: float) -> float:
    """The trim after one more minute in which nothing started or queued.

    Up by 0.012 while no request was outside the objectives and the replicas had at least three quarters of their safe
    load, by less the more were, nothing at 0.15 %; beyond it by 0.6 x (0.003 - share): 2 % outside take 0.0102. Slowly,
    since a hair trigger overshoots. Within 0.75 and 1.4, and not on where the utilisation is at a bound of its own.
    """
    if outside_share < CALM_SHARE:
        change = GROWTH_PER_MINUTE * (1.0 - outside_share / CALM_SHARE)
    else:
        change = CUT_FACTOR * (TOLERATED_SHARE - min(outside_share, WORST_SHARE))
    if change > 0 and work_per_replica < LOADED_SHARE * utilization:
        return trim
    bound = MOST_SAFE_UTILIZATION if change > 0 else LEAST_SAFE_UTILIZATION
    if utilization == bound:
        return trim
    return min(max(trim + change, LEAST_TRIM), MOST_TRIM)
