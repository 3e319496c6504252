"""`knative-kpa`: Knative Serving's pod autoscaler (knative/serving 98e5ef90, pkg/autoscaler/scaling/autoscaler.go).

Every 2 s; concurrency over a stable window of 60 s and a panic window of 6 s; target 70 % of 100 requests a replica.
Panic begins where the panic window's wish is twice the ready pods, never gives back, and ends a stable window after the
last such moment. One step may grow a thousandfold and halve. Its queue proxies know the requests in flight at once.
`scale-down-delay` (none by default) makes the largest wish of that time count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from autoscaler.replay.baselines.peer import SlidingMean
from autoscaler.replay.stock_hpa import PoolWorld

STABLE_SECONDS = 60.0
PANIC_SHARE = 0.1
PANIC_THRESHOLD = 2.0
TARGET_UTILISATION = 0.7
DEFAULT_CONCURRENCY = 100.0
MAXIMUM_UP_RATE = 1000.0
MAXIMUM_DOWN_RATE = 2.0


@dataclass(slots=True)
class PanicMode:
    """Since when, and the most pods wished for meanwhile; None: no panic."""

    since_seconds: float | None = None
    most_pods: int = 0


def desired_pods(
    stable_concurrency: float,
    panic_concurrency: float,
    target: float,
    ready: int,
    mode: PanicMode,
    now_seconds: float,
    stable_seconds: float = STABLE_SECONDS,
) -> int:
    """One decision; `mode` is carried from one to the next."""
    ready = max(1, ready)
    most, least = math.ceil(MAXIMUM_UP_RATE * ready), math.floor(ready / MAXIMUM_DOWN_RATE)
    stable_wish, panic_wish = math.ceil(stable_concurrency / target), math.ceil(panic_concurrency / target)
    is_over = panic_wish / ready >= PANIC_THRESHOLD
    stable = min(max(stable_wish, least), most)
    panic = min(max(panic_wish, least), most)
    if is_over:
        if mode.since_seconds is None:
            mode.most_pods = 0
        mode.since_seconds = now_seconds
    elif mode.since_seconds is not None and now_seconds - mode.since_seconds > stable_seconds:
        mode.since_seconds, mode.most_pods = None, 0
    if mode.since_seconds is None:
        return stable
    mode.most_pods = max(mode.most_pods, stable, panic)
    return mode.most_pods


class KnativeKPA:
    """The rule with its windows."""

    interval_seconds = 2.0

    def __init__(
        self,
        concurrency_per_replica: float = DEFAULT_CONCURRENCY * TARGET_UTILISATION,
        stable_seconds: float = STABLE_SECONDS,
        down_delay_seconds: float = 0.0,
    ) -> None:
        """The panic window is a tenth of the stable one, as in its defaults."""
        self._target = concurrency_per_replica
        self._stable_seconds = stable_seconds
        self._stable, self._panic = SlidingMean(stable_seconds), SlidingMean(PANIC_SHARE * stable_seconds)
        self._delay_seconds = down_delay_seconds
        self._wishes: list[tuple[float, int]] = []
        self._mode = PanicMode()
        self._has_begun = False

    def desired(self, world: PoolWorld, now_seconds: float) -> int | None:
        """An autoscaler that starts over several pods starts in panic, so that it does not give them back unseen."""
        concurrency = float(world.pool.requests_in_flight)
        if not self._has_begun and world.pool.spec_replicas > 1:
            self._mode = PanicMode(now_seconds, world.pool.spec_replicas)
        self._has_begun = True
        wish = desired_pods(
            self._stable.add(now_seconds, concurrency),
            self._panic.add(now_seconds, concurrency),
            self._target,
            world.pool.replicas.ready,
            self._mode,
            now_seconds,
            self._stable_seconds,
        )
        return self.delayed(wish, now_seconds)

    def delayed(self, wish: int, now_seconds: float) -> int:
        """The largest wish of the delay's time, this one included."""
        self._wishes = [each for each in self._wishes if each[0] > now_seconds - self._delay_seconds]
        self._wishes.append((now_seconds, wish))
        return max(count for _, count in self._wishes)
