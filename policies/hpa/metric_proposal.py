"""How many replicas does one metric ask for? The HorizontalPodAutoscaler's arithmetic for External and Object metrics.

Kubernetes 1.37: values are integers in thousandths (int64), ratios float64 in the order written here. A count of
replicas is at most the int32 maximum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

MAXIMUM_INT32 = 2_147_483_647
MAXIMUM_INT64 = 9_223_372_036_854_775_807


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The band around the target, as shares, in which nothing is done; both ends belong to it."""

    up: float
    down: float

    def holds(self, ratio: float) -> bool:
        """Whether the ratio of demand to target is near enough to one. NaN is not."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@cache
def share_of_quantity(share: float) -> float:
    """A share as Kubernetes makes a float64 of the quantity that says it: so many of 0.001 or a smaller unit.

    0.118 is 118m, and so 0.11800000000000001; by that 1.118 is within a tolerance of 0.118, which in floats it is not.
    """
    for unit in (1e-3, 1e-6, 1e-9):
        count = round(share / unit)
        if math.isclose(count * unit, share, rel_tol=1e-12):
            return count * unit
    return share


def milli_value(value: float) -> int:
    """A quantity in thousandths, rounded to the nearest, at most the int64 maximum."""
    thousandths = value * 1000.0
    return MAXIMUM_INT64 if thousandths >= MAXIMUM_INT64 else round(thousandths)


def whole_replicas(replicas: float) -> int:
    """A real count rounded up, at most the int32 maximum, which is also what an infinite one is."""
    return MAXIMUM_INT32 if replicas >= MAXIMUM_INT32 else math.ceil(replicas)


def milli_target(value: float) -> int:
    """A target in thousandths. A finer one is rounded up, as quantities are, and so never zero: 0.0101 is 11."""
    # 16.1 * 1000 is 16100.000000000002: what is within a billionth of a whole number is that number.
    thousandths = value * 1000.0
    nearest = round(thousandths)
    return nearest if math.isclose(thousandths, nearest, rel_tol=1e-9) else math.ceil(thousandths)


def propose_average_value(total: float, target: float, replicas: int, tolerance: Tolerance) -> int:
    """Replicas at which each has `target`: the present count inside the band, else total / target rounded up.

    From zero replicas there is no ratio and so no band. 8600 at 2222 a replica of 3: ratio 1.29, so 4.
    """
    total, target = float(total), float(target)
    if replicas > 0 and tolerance.holds(total / (target * float(replicas))):
        return replicas
    return whole_replicas(total / target)


def propose_value(total: float, target: float, replicas: int, ready_replicas: int, tolerance: Tolerance) -> int:
    """Replicas at which the whole of the pool has `target`: the ratio of the two times the replicas that are ready."""
    ratio = float(total) / float(target)
    if replicas == 0:
        return whole_replicas(ratio)
    return propose_ratio(ratio, replicas, ready_replicas, tolerance)


def propose_ratio(ratio: float, replicas: int, ready_replicas: int, tolerance: Tolerance) -> int:
    """The present count inside the band, else the ratio times the replicas that are ready, rounded up."""
    if tolerance.holds(ratio):
        return replicas
    return whole_replicas(ratio * float(ready_replicas))


def sum_for_value(values_milli: tuple[int, ...]) -> int:
    """The items of one metric added up for a Value target; at the int64 maximum the sum ends."""
    total = 0
    for value_milli in values_milli:
        if value_milli > 0 and total > MAXIMUM_INT64 - value_milli:
            return MAXIMUM_INT64
        total += value_milli
    return total


def sum_for_average_value(values_milli: tuple[int, ...]) -> int:
    """The items of one external metric added up for an AverageValue target.

    As soon as the sum is negative it is taken for one beyond int64, and ends there as the maximum.
    """
    total = 0
    for value_milli in values_milli:
        total += value_milli
        if total < 0 or total > MAXIMUM_INT64:
            return MAXIMUM_INT64
    return total
