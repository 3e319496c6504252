"""How does a published rule steer a simulated pool? It is asked at its own interval, its count written in bounds.

A rule is a function of what its system reads. Rules that ask their pods directly see them as they are now; others read
a Prometheus, as late as it has scraped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from autoscaler.replay.steered_fleet import SteeredFleet
from autoscaler.replay.stock_hpa import PoolWorld, world_of
from autoscaler.replay.virtual_clock import Recurring


class PeerRule(Protocol):
    """A rule with its memory, made anew for every run."""

    @property
    def interval_seconds(self) -> float:
        """How often it is asked."""
        ...

    def desired(self, world: PoolWorld, now_seconds: float) -> int | None:
        """The count it wants now, before bounds; None for no change."""
        ...


@dataclass(frozen=True, slots=True)
class PeerPolicy:
    """One or several rules of a peer, and the bounds. Of several rules each writes when it is asked."""

    name: str
    minimum: int
    maximum: int
    make_rules: Callable[[], Sequence[PeerRule]]

    def controllers(self, fleet: SteeredFleet) -> Sequence[Recurring]:
        """One loop a rule."""
        world = world_of(fleet)
        return tuple(_Loop(rule, world, self) for rule in self.make_rules())


class _Loop:
    def __init__(self, rule: PeerRule, world: PoolWorld, policy: PeerPolicy) -> None:
        self.interval_seconds = rule.interval_seconds
        self._rule = rule
        self._world = world
        self._policy = policy

    def tick(self, now_seconds: float) -> None:
        wanted = self._rule.desired(self._world, now_seconds)
        if wanted is None:
            return
        bounded = min(max(wanted, self._policy.minimum), self._policy.maximum)
        if bounded != self._world.pool.spec_replicas:
            self._world.pool.scale(bounded, self._policy.name, f"{bounded}: {self._policy.name} wants {wanted}")


class SlidingMean:
    """The mean of what was measured in the last `seconds`; None before the first measurement."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._points: list[tuple[float, float]] = []

    def add(self, at_seconds: float, value: float) -> float:
        """Keeps one measurement and returns the mean with it."""
        self._points.append((at_seconds, value))
        self._points = [point for point in self._points if point[0] > at_seconds - self._seconds]
        return math.fsum(value for _, value in self._points) / len(self._points)
