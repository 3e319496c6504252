"""Who gets how many accelerators where there are not enough for all that is wanted?"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from policies.capacity_split import CapacityType
from policies.wording import number


@dataclass(frozen=True, slots=True)
class AcceleratorDemand:
    """What one InferenceScaler wants of a pool, before any share of the pool limits it.

    `minimum_replicas` are promised; `current_replicas` stand in the target now. The higher `priority` is served first.
    `capacity_type` is the only kind of node that the replicas run on; None: they run on any. `cpu_millis` and
    `memory_bytes` are what the pod of a replica asks for; 0: nothing, or nobody knows.
    """

    scaler: str
    wanted_replicas: int
    current_replicas: int
    minimum_replicas: int
    accelerators_per_replica: int
    priority: int = 0
    capacity_type: CapacityType | None = None
    cpu_millis: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class AcceleratorAllowance:
    """The most replicas that a scaler may have, and the words for where that comes from."""

    replicas: int
    because: str


def share_accelerators(
    ceiling_accelerators: int, demands: Iterable[AcceleratorDemand], pool: str
) -> Mapping[str, AcceleratorAllowance]:
    """The allowance of every scaler. Its own minimum is always in it, be there accelerators or not.

    First come all minimums, then what is wanted beyond them, by priority; scalers of the same priority share evenly,
    and what one does not want the others get. An allowance also holds what is left over and what those of lower
    priority have beyond their minimum: they yield at the next look, when the growth has been asked for.
    """
    ordered = sorted(demands, key=lambda demand: (-demand.priority, demand.scaler))
    granted = {demand.scaler: demand.minimum_replicas for demand in ordered}
    left = ceiling_accelerators - sum(each.minimum_replicas * each.accelerators_per_replica for each in ordered)
    for _, group in groupby(ordered, key=lambda demand: demand.priority):
        left = _share_evenly(left, list(group), granted)
    beyond_minimum = 0
    allowances: dict[str, AcceleratorAllowance] = {}
    for _, group in groupby(reversed(ordered), key=lambda demand: demand.priority):
        equals = list(group)
        for demand in equals:
            possible = max(0, left) + beyond_minimum
            replicas = granted[demand.scaler] + possible // demand.accelerators_per_replica
            because = f"{number(ceiling_accelerators)} accelerators of {pool}, shared by priority"
            allowances[demand.scaler] = AcceleratorAllowance(replicas, because)
        beyond_minimum += sum(_beyond_minimum(each, granted) for each in equals)
    return allowances


def _beyond_minimum(demand: AcceleratorDemand, granted: Mapping[str, int]) -> int:
    return (granted[demand.scaler] - demand.minimum_replicas) * demand.accelerators_per_replica


def _share_evenly(left: int, equals: Sequence[AcceleratorDemand], granted: dict[str, int]) -> int:
    """Gives scalers of one priority what they want as far as it goes; returns the accelerators that are left.

    One replica at a time to who has the fewest accelerators, so that large replicas do not starve beside small ones.
    """
    by_name = {demand.scaler: demand for demand in equals}
    hungry = [(granted[name] * demand.accelerators_per_replica, name) for name, demand in by_name.items()]
    heapq.heapify(hungry)
    while hungry:
        has, name = heapq.heappop(hungry)
        size = by_name[name].accelerators_per_replica
        if granted[name] < by_name[name].wanted_replicas and size <= left:
            granted[name] += 1
            left -= size
            heapq.heappush(hungry, (has + size, name))
    return left
