"""`ray-serve`: Ray Serve's default autoscaling policy (serve/advanced-guides/advanced-autoscaling).

Every 10 s the mean of the ongoing requests over 30 s by a target of 2 a replica; growing must be wished for 30 s on
end, shrinking for 600 s.
"""

from __future__ import annotations

import math

from autoscaler.replay.baselines.peer import SlidingMean
from autoscaler.replay.stock_hpa import PoolWorld

TARGET_ONGOING_REQUESTS = 2.0
LOOK_BACK_SECONDS = 30.0
UP_DELAY_SECONDS = 30.0
DOWN_DELAY_SECONDS = 600.0


class RayServe:
    """The rule with its delays."""

    interval_seconds = 10.0

    def __init__(
        self,
        target_ongoing_requests: float = TARGET_ONGOING_REQUESTS,
        down_delay_seconds: float = DOWN_DELAY_SECONDS,
    ) -> None:
        self._target = target_ongoing_requests
        self._down_delay_seconds = down_delay_seconds
        self._ongoing = SlidingMean(LOOK_BACK_SECONDS)
        self._wishes_in_a_row = 0  # positive: to grow, negative: to shrink

    def desired(self, world: PoolWorld, now_seconds: float) -> int | None:
        """A decision counts once it has persisted for its whole delay; any other one begins anew."""
        ongoing = self._ongoing.add(now_seconds, float(world.pool.requests_in_flight))
        return self.decide(ongoing, world.pool.spec_replicas)

    def decide(self, ongoing: float, current: int) -> int | None:
        """One look at the mean of the ongoing requests."""
        wish = math.ceil(ongoing / self._target)
        if wish > current:
            self._wishes_in_a_row = max(0, self._wishes_in_a_row) + 1
            if self._wishes_in_a_row > UP_DELAY_SECONDS / self.interval_seconds:
                self._wishes_in_a_row = 0
                return wish
        elif wish < current:
            self._wishes_in_a_row = min(0, self._wishes_in_a_row) - 1
            if -self._wishes_in_a_row > self._down_delay_seconds / self.interval_seconds:
                self._wishes_in_a_row = 0
                return wish
        else:
            self._wishes_in_a_row = 0
        return None
