"""When the fleet is reconciled: one tick at a time, at a fixed interval or woken, only while this process leads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_MAX_INSTANCES, JobExecutionEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from autoscaler.clock import Clock
from autoscaler.controller.pool_report import says_something
from autoscaler.controller.reconcile import Reconciler
from autoscaler.controller.scaler_source import ScalerSource
from autoscaler.telemetry import Telemetry

logger = logging.getLogger(__name__)

# The loop is taken for dead when no tick has ended for this many intervals (and at least this many seconds).
DEAD_AFTER_INTERVALS = 5
DEAD_AFTER_SECONDS = 60.0
# A standby, or a process whose caches are being filled, looks again so soon: it should act at once when it may.
IDLE_LOOK_SECONDS = 1.0
# Nodes that are taken away together are told of one after the other; one tick sees them all.
GATHERING_SECONDS = 0.5
# Nor do nodes that come and go make more than one tick in so long.
LEAST_BETWEEN_TICKS_SECONDS = 3.0
# The scheduler waits by wall time: a clock that was set back by an hour would stop it for an hour.
CLOCK_LOOK_SECONDS = 1.0


class ControlLoop:
    """Ticks while it leads; a standby does nothing but keep its caches warm.

    `tenure` is None while this process does not lead, else a number that is another one when somebody else may have led
    since: then what this process remembers is not the newest.
    """

    def __init__(
        self,
        reconciler: Reconciler,
        source: ScalerSource,
        telemetry: Telemetry,
        clock: Clock,
        tenure: Callable[[], int | None],
        is_synced: Callable[[], bool],
        tick_seconds: float,
    ) -> None:
        self._reconciler = reconciler
        self._source = source
        self._telemetry = telemetry
        self._clock = clock
        self._tenure = tenure
        self._is_synced = is_synced
        self._tick_seconds = tick_seconds
        self._last_tenure: int | None = None
        self._was_leading = False
        self._pools: int | None = None
        self._last_tick_seconds = clock.monotonic_seconds()
        # UTC, or tzlocal is asked; no grace time, or a late tick would be dropped.
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={"max_instances": 1, "coalesce": True, "misfire_grace_time": None},
        )
        self._scheduler.add_listener(self._on_job_event, EVENT_JOB_ERROR | EVENT_JOB_MAX_INSTANCES)
        self._stopping = threading.Event()
        self._wake_lock = threading.Lock()
        self._is_ticking = False
        self._is_woken = False
        self._clock_watch = threading.Thread(target=self._watch_clock, name="clock watch", daemon=True)

    def start(self) -> None:
        """Ticks now and then at every interval, in a thread of its own."""
        now = datetime.fromtimestamp(self._clock.now_seconds(), UTC)
        self._scheduler.add_job(
            self._tick_on_schedule, "interval", seconds=self._tick_seconds, id="tick", next_run_time=now
        )
        self._scheduler.start()
        self._clock_watch.start()

    def wake(self) -> None:
        """Something has happened that should not wait for the next tick: one comes at once, or after the present one.

        Woken ticks keep a distance, however often this is called, and none comes later than it would have.
        """
        with self._wake_lock:
            if self._is_ticking:
                self._is_woken = True
                return
        self._tick_soon()

    def _tick_soon(self) -> None:
        passed_seconds = self._clock.monotonic_seconds() - self._last_tick_seconds
        distance_seconds = min(LEAST_BETWEEN_TICKS_SECONDS, self._tick_seconds) - passed_seconds
        wait_seconds = max(GATHERING_SECONDS, distance_seconds)
        at = datetime.fromtimestamp(self._clock.now_seconds() + wait_seconds, UTC)
        job = self._scheduler.get_job("tick") if self._scheduler.running else None
        if job is not None and at < job.next_run_time:
            self._scheduler.modify_job("tick", next_run_time=at)

    def stop(self) -> None:
        """Waits for the tick that is under way and starts no other. Nothing happens where it was never started."""
        self._stopping.set()
        if self._clock_watch.ident is not None:
            self._clock_watch.join()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)

    def tick(self) -> bool:
        """One pass over all pools; False where nothing could be done yet, so that it is worth trying again soon.

        That is on a standby, before the caches have been filled, and while no target has been read.
        """
        started = self._clock.monotonic_seconds()
        tenure = self._tenure()
        if tenure is None:
            if self._was_leading:
                self._reconciler.stand_down()
            self._was_leading, self._pools = False, None
            self._finish("standby")
            return False
        if not self._is_synced():
            self._finish("unsynced")
            return False
        if tenure != self._last_tenure:
            # Somebody else may have decided meanwhile: what counts is what was saved, not what this process remembers.
            self._reconciler.forget_all()
        self._last_tenure, self._was_leading = tenure, True
        # Milliseconds are finer than any sample, and the record is read by people.
        reports = self._reconciler.reconcile_all(self._source.scalers(), round(self._clock.now_seconds(), 3))
        self._count(len(reports))
        self._finish("done")
        self._telemetry.tick_seconds.observe(self._clock.monotonic_seconds() - started)
        return not reports or any(map(says_something, reports))

    def is_alive(self) -> bool:
        """False when no tick has ended for far longer than the interval: the process should be restarted."""
        allowed = max(DEAD_AFTER_SECONDS, DEAD_AFTER_INTERVALS * self._tick_seconds)
        return self._clock.monotonic_seconds() - self._last_tick_seconds < allowed

    def _tick_on_schedule(self) -> None:
        with self._wake_lock:
            self._is_ticking, self._is_woken = True, False
        try:
            has_looked = self.tick()
        finally:
            with self._wake_lock:
                self._is_ticking, is_woken = False, self._is_woken
        if not has_looked and self._tick_seconds > IDLE_LOOK_SECONDS:
            soon = datetime.fromtimestamp(self._clock.now_seconds() + IDLE_LOOK_SECONDS, UTC)
            self._scheduler.modify_job("tick", next_run_time=soon)
        elif is_woken:
            self._tick_soon()

    def _watch_clock(self) -> None:
        """Ticks at once where the next tick is farther away than an interval: the clock has been set back."""
        while not self._stopping.wait(CLOCK_LOOK_SECONDS):
            now = datetime.fromtimestamp(self._clock.now_seconds(), UTC)
            job = self._scheduler.get_job("tick")
            if job is not None and job.next_run_time > now + timedelta(seconds=self._tick_seconds + CLOCK_LOOK_SECONDS):
                logger.warning("the clock was set back", extra={"next_tick": job.next_run_time.isoformat()})
                self._scheduler.modify_job("tick", next_run_time=now)

    def _count(self, pools: int) -> None:
        # Said where it changes, and once where it is 0: else a policy in the wrong namespace or folder is a silence.
        if pools != self._pools:
            logger.info("InferenceScalers looked after", extra={"count": pools})
        self._pools = pools

    def _finish(self, outcome: str) -> None:
        self._last_tick_seconds = self._clock.monotonic_seconds()
        self._telemetry.ticks.labels(outcome).inc()

    def _on_job_event(self, event: JobExecutionEvent) -> None:
        if event.code == EVENT_JOB_MAX_INSTANCES:
            self._telemetry.ticks.labels("missed").inc()
            logger.warning("a tick took longer than its interval", extra={"tick_seconds": self._tick_seconds})
            return
        self._telemetry.ticks.labels("failed").inc()
        logger.error("a tick failed", exc_info=event.exception)
