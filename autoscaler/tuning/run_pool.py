"""Who runs the many runs? Worker processes, one a core, each with the loads in its memory.

A worker takes no signals: Ctrl-C reaches the whole group of processes at once, and it is this process that says stop.
It ends by itself when this process is gone.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.synchronize import Event
from types import TracebackType
from typing import Self

from autoscaler.replay.policy_only import PolicyOnlyStage
from autoscaler.replay.trace import RequestTrace
from autoscaler.tuning.contender import Contender, replayed
from autoscaler.tuning.figures import RunFigures, run_figures
from autoscaler.tuning.scenes import Part, Scene

# How often it is looked whether the user wants to stop.
LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Job:
    """One run: which contender, on which part of which scene, by which seed."""

    contender: Contender
    scene: int
    part: Part
    seed: int


class WorkersLostError(RuntimeError):
    """A worker process ended by itself, most likely for want of memory."""


class RunPool:
    """Workers for the scenes; one process without any where `processes` is 1. To be used as a context."""

    def __init__(self, scenes: Sequence[Scene], processes: int) -> None:
        self._scenes = tuple(scenes)
        self._processes = processes
        self._executor: ProcessPoolExecutor | None = None
        self._stops: Event | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._executor is not None:
            if self._stops is not None:
                self._stops.set()
            self._executor.shutdown(cancel_futures=True)

    def run(self, jobs: Sequence[Job], was_stopped: Callable[[], bool]) -> Iterator[tuple[int, RunFigures | None]]:
        """Each job's place and figures, as soon as they are there; None where the contender cannot be made there.

        Ends early, without the runs that are under way, once `was_stopped`. Raises WorkersLostError.
        """
        if self._processes == 1:
            yield from self._run_here(jobs, was_stopped)
        else:
            yield from self._run_in_workers(jobs, was_stopped)

    def _run_here(
        self, jobs: Iterable[Job], was_stopped: Callable[[], bool]
    ) -> Iterator[tuple[int, RunFigures | None]]:
        work = _Work(self._scenes, was_stopped)
        for place, job in enumerate(jobs):
            figures = None if was_stopped() else work.run(job)
            if was_stopped():
                return
            yield place, figures

    def _run_in_workers(
        self, jobs: Sequence[Job], was_stopped: Callable[[], bool]
    ) -> Iterator[tuple[int, RunFigures | None]]:
        try:
            futures = self._submit(jobs)
            waiting = set(futures)
            while waiting:
                done, _ = wait(waiting, LOOK_SECONDS, FIRST_COMPLETED)
                if was_stopped():
                    self._stop(waiting)
                    return
                for future in list(done)[:1]:  # one at a time: whoever takes it may want to stop then
                    waiting.remove(future)
                    yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise WorkersLostError(
                "a worker process ended by itself, most likely for want of memory; what was run is kept: run the same "
                "command again with fewer --jobs"
            ) from error

    def _submit(self, jobs: Sequence[Job]) -> dict[Future[RunFigures | None], int]:
        with _children_without_interrupts():
            if self._executor is None:
                context = get_context("spawn")
                self._stops = context.Event()
                self._executor = ProcessPoolExecutor(
                    self._processes, mp_context=context, initializer=_begin, initargs=(self._scenes, self._stops)
                )
            return {self._executor.submit(_run, job): place for place, job in enumerate(jobs)}

    def _stop(self, waiting: Iterable[Future[RunFigures | None]]) -> None:
        assert self._stops is not None
        self._stops.set()
        for future in waiting:
            future.cancel()


def cores() -> int:
    """How many processes can work at once: what this one may use, in a container too."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Work:
    """What runs jobs, in a worker or here."""

    def __init__(self, scenes: Sequence[Scene], was_stopped: Callable[[], bool]) -> None:
        self._scenes = scenes
        self._was_stopped = was_stopped
        self._draw = cache(self._drawn)
        self._rates = cache(self._stage_of_rates)

    def run(self, job: Job) -> RunFigures | None:
        """The figures; None where the contender cannot be made there, or once stopped."""
        scene = self._scenes[job.scene]
        stage = scene.stage(job.part, self._goes_on)
        drawn = self._draw(job.scene, job.part, job.seed)
        policy = replayed(job.contender, stage, drawn, job.seed)
        if policy is None:
            return None
        if scene.rates_step_seconds is None:
            return run_figures(stage.run(policy, drawn, job.seed), scene.name)
        return run_figures(self._rates(job.scene, job.part, job.seed).run(policy, job.seed), scene.name)

    def _goes_on(self) -> bool:
        return not self._was_stopped()

    def _stage_of_rates(self, scene: int, part: Part, seed: int) -> PolicyOnlyStage:
        return self._scenes[scene].rates(part, seed, self._goes_on)

    def _drawn(self, scene: int, part: Part, seed: int) -> RequestTrace:
        return self._scenes[scene].drawn(part, seed)


_work: _Work | None = None


def _begin(scenes: Sequence[Scene], stops: Event) -> None:
    global _work  # a worker's own, filled once
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _work = _Work(scenes, stops.is_set)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(job: Job) -> RunFigures | None:
    assert _work is not None
    return _work.run(job)


@contextmanager
def _children_without_interrupts() -> Iterator[None]:
    """Processes that begin in here have Ctrl-C blocked from their first instruction on; ours waits until after it."""
    resource_tracker.ensure_running()  # it changes the mask itself, so it must have been started before
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
