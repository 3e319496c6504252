"""To which replica does a simulated gateway send a request?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import Protocol

import numpy as np

from autoscaler.replay.replica_set import SimulatedPod


class RouterName(StrEnum):
    """The ways of routing that a fleet may be described with."""

    LEAST_LOADED = "least-loaded"
    ROUND_ROBIN = "round-robin"
    IMBALANCED = "imbalanced"


class Router(Protocol):
    """Chooses one of the ready pods, of which there is at least one."""

    def choose(self, ready: Sequence[SimulatedPod], loads: Sequence[int]) -> int:
        """The place of the pod that gets the next request; `loads` are the requests in flight on each."""
        ...


class LeastLoaded:
    """The pod with the fewest requests; the search begins elsewhere each time, which shares out ties."""

    def __init__(self) -> None:
        self._turn = 0

    def choose(self, ready: Sequence[SimulatedPod], loads: Sequence[int]) -> int:
        """The least loaded."""
        self._turn = turn = (self._turn + 1) % len(loads)
        place = loads.index(least := min(loads))
        return loads.index(least, turn) if place < turn and least in loads[turn:] else place


class RoundRobin:
    """One after the other, whatever they have to do: a wedged or slow replica gets as much as the rest."""

    def __init__(self) -> None:
        self._turn = 0

    def choose(self, ready: Sequence[SimulatedPod], loads: Sequence[int]) -> int:
        """The next one."""
        self._turn = (self._turn + 1) % len(ready)
        return self._turn


class Imbalanced:
    """By chance, each pod with a weight of its own (log-normal, deviation 1): sessions that stick to their replica."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._pods: tuple[str, ...] = ()
        self._shares: list[float] = []

    def choose(self, ready: Sequence[SimulatedPod], loads: Sequence[int]) -> int:
        """A random one by the pods' weights."""
        names = tuple(pod.name for pod in ready)
        if names != self._pods:
            self._pods = names
            self._shares = list(accumulate(pod.popularity for pod in ready))
        place = int(np.searchsorted(self._shares, self._generator.uniform(0.0, self._shares[-1]), side="right"))
        return min(place, len(ready) - 1)


ROUTERS: Mapping[RouterName, Callable[[np.random.Generator], Router]] = {
    RouterName.LEAST_LOADED: lambda generator: LeastLoaded(),
    RouterName.ROUND_ROBIN: lambda generator: RoundRobin(),
    RouterName.IMBALANCED: Imbalanced,
}
