"""A page's worth of history: the demo's own fleet, run for some ticks through the real reconciler."""

from __future__ import annotations

from autoscaler.controller.history_store import HistoryStore
from autoscaler.controller.reconcile import Reconciler
from autoscaler.dashboard.recorder import DashboardRecorder
from autoscaler.dashboard.snapshot import FleetSource
from autoscaler.demo.world import STARTS_AT_SECONDS, build_world
from forecasting.forecast import Forecast
from policies.parameters import Mode

FORECAST_POOL = ("demo", "chat-8b")


class DemoFleet:
    """Ticks of 15 simulated seconds, as fast as the machine allows."""

    def __init__(self, history_rows: int = 480, forecast: Forecast | None = None) -> None:
        self.forecast = forecast
        self._world = build_world(seed=1)
        self.recorder = DashboardRecorder(
            FleetSource("Tokenscaler demo", "In simulation: nothing of this is real.", True, 30.0),
            history_rows,
            self._world.columns,
            forecast_of=lambda key: self.forecast if key == FORECAST_POOL else None,
        )
        fleet = self._world.fleet
        self._reconciler = Reconciler(fleet, fleet, {Mode.SCALE: fleet}, HistoryStore(), [self.recorder])
        self._ticks = 0

    def run(self, ticks: int) -> None:
        for _ in range(ticks):
            now = STARTS_AT_SECONDS + 15.0 * self._ticks
            self._world.fleet.advance(now)
            self._reconciler.reconcile_all(self._world.scalers, now)
            self._ticks += 1
