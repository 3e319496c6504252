"""The demo's loop: advance the simulated fleet by one tick, let the real reconciler decide, show it, wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fastapi import FastAPI
from rich.console import Console

from autoscaler.actuators.actuator import ReplicaActuator
from autoscaler.actuators.dry_run import DryRunActuator
from autoscaler.clock import Clock, SystemClock
from autoscaler.controller.history_store import HistoryStore
from autoscaler.controller.latest_records import LatestRecords
from autoscaler.controller.reconcile import Reconciler
from autoscaler.dashboard.app import create_app as create_dashboard
from autoscaler.dashboard.recorder import DashboardRecorder
from autoscaler.dashboard.snapshot import FleetSource
from autoscaler.demo.screen import LiveScreen, PlainScreen, Screen
from autoscaler.demo.world import ABOUT, DemoWorld, build_world
from autoscaler.http_server import HttpServer, create_app
from autoscaler.telemetry import Telemetry
from policies.parameters import Mode

TICK_SECONDS = 15.0
# What is simulated at once at the start, so that the page has something to show.
WARM_UP_SECONDS = 600.0
HISTORY_ROWS = 960  # four simulated hours
HOST = "127.0.0.1"


def run_demo(
    port: int = 8080,
    speed: float = 30.0,
    duration_seconds: float | None = None,
    seed: int = 1,
    console: Console | None = None,
    clock: Clock | None = None,
) -> int:
    """Runs until Ctrl-C, SIGTERM or for `duration_seconds` of real time; returns the exit code, 0.

    `speed` is simulated seconds in one second. Where `port` is taken a free one serves the page. Needs no privileges,
    and opens nothing but this one port, on the loopback interface.
    """
    console = console or Console(highlight=False)
    world = build_world(seed)
    telemetry, records = Telemetry(), LatestRecords(None)
    recorder = DashboardRecorder(
        FleetSource("Tokenscaler demo", ABOUT, is_simulated=True, seconds_per_second=speed),
        history_rows=HISTORY_ROWS,
        extra_columns=world.columns,
    )
    fleet = world.fleet
    actuators: dict[Mode, ReplicaActuator] = {
        Mode.DRY_RUN: DryRunActuator(),
        Mode.SCALE_UP_ONLY: fleet,
        Mode.SCALE: fleet,
    }
    reconciler = Reconciler(fleet, fleet, actuators, HistoryStore(), [records, telemetry, recorder])
    app = create_app(telemetry, records, lambda: True, lambda: None)
    app.mount("/", create_dashboard(lambda: recorder.snapshot))
    server = _server_on_a_free_port(app, port)
    url = f"http://{HOST}:{server.port}/"
    server.start()
    try:
        with _stop_on_signals() as stop:
            console.print(f"Tokenscaler demo, in simulation: {url} shows it; Ctrl-C ends it.", soft_wrap=True)
            screen: Screen = LiveScreen(console, url) if console.is_terminal else PlainScreen(console)
            pace = Pace(clock or SystemClock(), speed, duration_seconds)

            def tick(now_seconds: float) -> None:
                fleet.advance(now_seconds)
                reconciler.reconcile_all(world.scalers, now_seconds)
                screen.show(recorder.snapshot)

            with screen:
                _run(fleet.now_seconds, tick, pace, stop)
    finally:
        server.stop()
    _say_what_users_got(world, console)
    return 0


class Pace:
    """When the next tick is due on a real clock, and when it is enough."""

    def __init__(self, clock: Clock, speed: float, duration_seconds: float | None) -> None:
        self._clock = clock
        self._seconds_per_tick = TICK_SECONDS / speed
        self._due = clock.monotonic_seconds()
        self._ends_at = None if duration_seconds is None else self._due + duration_seconds

    @property
    def is_over(self) -> bool:
        """Whether the duration has passed."""
        return self._ends_at is not None and self._clock.monotonic_seconds() >= self._ends_at

    def wait(self, stop: threading.Event) -> None:
        """Waits for the next tick or `stop`. A machine that is too slow falls behind; it does not hurry afterwards."""
        now = self._clock.monotonic_seconds()
        self._due = max(self._due + self._seconds_per_tick, now)
        wait_until = self._due if self._ends_at is None else min(self._due, self._ends_at)
        stop.wait(max(0.0, wait_until - now))


def _run(starts_at_seconds: float, tick: Callable[[float], None], pace: Pace, stop: threading.Event) -> None:
    simulated = starts_at_seconds
    while not stop.is_set() and not pace.is_over:
        tick(simulated)
        simulated += TICK_SECONDS
        if simulated - starts_at_seconds > WARM_UP_SECONDS:
            pace.wait(stop)


def _server_on_a_free_port(app: FastAPI, port: int) -> HttpServer:
    try:
        return HttpServer(app, HOST, port)
    except OSError:
        return HttpServer(app, HOST, 0)


@contextmanager
def _stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; the handlers that were there before come back at the end."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may take signals
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stop.set()) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _say_what_users_got(world: DemoWorld, console: Console) -> None:
    for pool in world.fleet.pools.values():
        outcomes, setup = pool.outcomes, pool.setup
        if not outcomes.finished:
            continue
        accelerator_hours = pool.replica_seconds / 3600 * setup.profile.accelerators_per_replica
        console.print(
            f"{setup.name}: {outcomes.finished:,} requests, {100 * outcomes.met / outcomes.finished:.1f} % within the "
            f"objectives, {accelerator_hours:.1f} accelerator-hours (in simulation)",
            soft_wrap=True,
        )
