"""When the loop ticks, what it remembers, and how it is seen to be dead."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence

import pytest

from autoscaler.api.status import save_history
from autoscaler.clock import Clock, ManualClock, SystemClock
from autoscaler.controller.history_store import HistoryStore
from autoscaler.controller.loop import DEAD_AFTER_INTERVALS, DEAD_AFTER_SECONDS, ControlLoop
from autoscaler.controller.pool_report import Decided
from autoscaler.controller.reconcile import Reconciler
from autoscaler.controller.replica_wish import ReplicaWish
from autoscaler.observers.metrics import PoolKey
from autoscaler.observers.workload import WorkloadUnavailable
from autoscaler.telemetry import Telemetry
from policies.accelerator_sharing import AcceleratorAllowance
from policies.capacity_split import ReplicaSplit
from policies.history import ScalingHistory
from policies.node_move import NodeMove
from policies.parameters import Mode
from policies.reasons import Reason
from policies.victims import NodesOfSplit
from tests.builders import NOW, a_history
from tests.fakes.ports import FakeActuator, FakeMetrics, FakeReporter, FakeSource, FakeWorkloads
from tests.pool_builders import KEY, a_scaler, a_workload, some_waiting

PATIENCE_SECONDS = 20.0


class OldShares:
    """A NodeCapacity that leaves every pool what is `left`, until it is told to forget that."""

    def __init__(self) -> None:
        self.left: AcceleratorAllowance | None = None
        self.first: dict[PoolKey, AcceleratorAllowance] = {}

    def allowance(self, key: PoolKey) -> AcceleratorAllowance | None:
        return self.left

    def first_allowances(
        self, wishes: Sequence[ReplicaWish], now_seconds: float
    ) -> Mapping[PoolKey, AcceleratorAllowance]:
        assert [wish.wanted for wish in wishes] == [4]
        return self.first

    def provide(
        self, wishes: Sequence[ReplicaWish], referring: Mapping[PoolKey, str | None], now_seconds: float
    ) -> Mapping[PoolKey, ReplicaSplit]:
        return {}

    def nodes_of_split(self, key: PoolKey) -> NodesOfSplit | None:
        return None

    def node_move(self, key: PoolKey) -> NodeMove | None:
        return None

    def forget_all(self) -> None:
        self.left = None


class Fleet:
    """A loop over one pool on fakes. `tenure` and `is_synced` are what the test says; `on_sync` runs in each tick."""

    def __init__(self, clock: Clock | None = None, tick_seconds: float = 15.0) -> None:
        self.clock = clock or ManualClock(NOW)
        self.tenure: int | None = 1
        self.is_synced = True
        self.on_sync: Callable[[], None] = lambda: None
        self.source = FakeSource(a_scaler(status={"history": save_history(SAVED)}))
        self.reporter = FakeReporter()
        self.telemetry = Telemetry()
        self.histories = HistoryStore()
        self.metrics = FakeMetrics({KEY: some_waiting(40.0)})
        self.workloads = FakeWorkloads({KEY: a_workload()})
        self.shares = OldShares()
        actuator = FakeActuator()
        reconciler = Reconciler(
            self.workloads,
            self.metrics,
            dict.fromkeys(Mode, actuator),
            self.histories,
            (self.telemetry, self.reporter),
            node_capacity=self.shares,
        )
        self.loop = ControlLoop(
            reconciler,
            self.source,
            self.telemetry,
            self.clock,
            lambda: self.tenure,
            self._synced,
            tick_seconds,
        )

    def _synced(self) -> bool:
        self.on_sync()
        return self.is_synced

    def advance(self, seconds: float) -> None:
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(seconds)

    def ticks(self, outcome: str) -> float:
        return self.telemetry.registry.get_sample_value("tokenscaler_ticks_total", {"outcome": outcome}) or 0.0

    def shown_pools(self) -> int:
        return len(self.reporter.ticks[-1]) if self.reporter.ticks else 0

    def decided_from(self) -> ScalingHistory:
        """The history that the last decision began with."""
        report = self.reporter.ticks[-1][0]
        assert isinstance(report, Decided)
        return report.decision_input.history


SAVED = a_history(recommended={100.0: 9}, last_desired_replicas=9)


def test_a_leader_reconciles_all_pools() -> None:
    fleet = Fleet()
    assert fleet.loop.tick()
    assert fleet.shown_pools() == 1
    assert fleet.ticks("done") == 1.0
    assert fleet.telemetry.registry.get_sample_value("tokenscaler_tick_seconds_count") == 1.0


def test_a_standby_does_nothing() -> None:
    fleet = Fleet()
    fleet.tenure = None
    assert not fleet.loop.tick()
    assert (fleet.reporter.ticks, fleet.metrics.asked) == ([], [])
    assert fleet.ticks("standby") == 1.0
    assert fleet.telemetry.registry.get_sample_value("tokenscaler_tick_seconds_count") == 0.0


def test_nothing_is_decided_before_the_caches_are_filled() -> None:
    fleet = Fleet()
    fleet.is_synced = False
    assert not fleet.loop.tick()
    assert fleet.reporter.ticks == []
    assert fleet.ticks("unsynced") == 1.0
    fleet.is_synced = True
    assert fleet.loop.tick()


def test_targets_that_have_not_been_read_yet_are_looked_at_again_soon() -> None:
    fleet = Fleet()
    fleet.workloads.workloads[KEY] = WorkloadUnavailable(Reason.NOT_READ_YET, "the first list is under way")
    assert not fleet.loop.tick()
    fleet.workloads.workloads[KEY] = WorkloadUnavailable(Reason.STALE_CACHE, "the list fails")
    assert fleet.loop.tick()


def test_without_any_pool_there_is_no_hurry() -> None:
    fleet = Fleet()
    fleet.source.given = ()
    assert fleet.loop.tick()


def test_who_becomes_leader_begins_with_what_was_saved() -> None:
    fleet = Fleet()
    fleet.histories.remember(a_scaler(), a_history(last_desired_replicas=3))  # of long ago
    fleet.loop.tick()
    assert fleet.decided_from() == SAVED


def test_a_leader_goes_on_with_what_it_remembers() -> None:
    fleet = Fleet()
    fleet.loop.tick()
    fleet.advance(15.0)
    fleet.loop.tick()
    assert fleet.decided_from().last_desired_replicas == 4


def test_who_becomes_leader_again_after_another_begins_with_what_was_saved() -> None:
    fleet = Fleet()
    fleet.loop.tick()
    fleet.tenure = None
    fleet.loop.tick()
    fleet.tenure = 2
    fleet.loop.tick()
    assert fleet.decided_from() == SAVED


def test_another_leader_between_two_ticks_is_not_overlooked() -> None:
    fleet = Fleet()
    fleet.loop.tick()
    fleet.tenure = 2
    fleet.loop.tick()
    assert fleet.decided_from() == SAVED


def test_whoever_becomes_leader_decides_within_the_shares_of_its_first_look() -> None:
    fleet = Fleet()
    fleet.source.given = (a_scaler(acceleratorPoolRef={"name": "h100"}),)
    fleet.shares.first = {KEY: AcceleratorAllowance(2, "shared by priority")}
    fleet.loop.tick()
    report = fleet.reporter.ticks[-1][0]
    assert isinstance(report, Decided)
    assert report.decision.desired_replicas == 2
    assert report.decision_input.accelerator_allowance == fleet.shares.first[KEY], "as the record has it"


@pytest.mark.parametrize(
    ("tenure", "desired"),
    [
        pytest.param(1, 2, id="shares of our own last tick hold"),
        pytest.param(2, 4, id="another has led since: its shares are not known"),
    ],
)
def test_no_count_is_cut_by_shares_of_long_ago(tenure: int, desired: int) -> None:
    fleet = Fleet()
    fleet.loop.tick()
    fleet.shares.left = AcceleratorAllowance(2, "what was left then")
    fleet.tenure = tenure
    fleet.advance(15.0)
    fleet.loop.tick()
    report = fleet.reporter.ticks[-1][0]
    assert isinstance(report, Decided)
    assert report.decision.desired_replicas == desired


def test_who_could_not_prove_its_lease_for_a_while_forgets_nothing() -> None:
    fleet = Fleet()
    fleet.loop.tick()
    fleet.tenure = None  # the API server is away
    fleet.loop.tick()
    fleet.tenure = 1  # and nobody else has led
    fleet.advance(60.0)
    fleet.loop.tick()
    assert fleet.decided_from().last_desired_replicas == 4


def test_who_leads_no_more_shows_no_pool() -> None:
    fleet = Fleet()
    fleet.loop.tick()
    assert b'name="llama"' in fleet.telemetry.render()
    fleet.tenure = None
    for _ in range(3):
        fleet.loop.tick()
    assert b'name="llama"' not in fleet.telemetry.render()
    assert [len(reports) for reports in fleet.reporter.ticks] == [1, 0]


def test_the_time_of_a_decision_has_milliseconds() -> None:
    fleet = Fleet(ManualClock(NOW + 0.123456))
    fleet.loop.tick()
    assert fleet.reporter.ticks[-1][0].now_seconds == NOW + 0.123


def _nothing(fleet: Fleet) -> None:
    pass


def _standby(fleet: Fleet) -> None:
    fleet.tenure = None


def _unsynced(fleet: Fleet) -> None:
    fleet.is_synced = False


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(_nothing, id="a leader"),
        pytest.param(_standby, id="a standby"),
        pytest.param(_unsynced, id="a process whose caches are being filled"),
    ],
)
def test_whoever_ticks_is_alive(state: Callable[[Fleet], None]) -> None:
    fleet = Fleet()
    state(fleet)
    for _ in range(10):
        fleet.advance(DEAD_AFTER_SECONDS - 1.0)
        assert fleet.loop.is_alive()
        fleet.loop.tick()


@pytest.mark.parametrize(
    ("tick_seconds", "allowed_seconds"),
    [
        pytest.param(1.0, DEAD_AFTER_SECONDS, id="a short interval is given a minute"),
        pytest.param(60.0, DEAD_AFTER_INTERVALS * 60.0, id="a long one is given five intervals"),
    ],
)
def test_without_a_tick_for_long_the_loop_is_dead(tick_seconds: float, allowed_seconds: float) -> None:
    fleet = Fleet(tick_seconds=tick_seconds)
    fleet.advance(allowed_seconds - 0.1)
    assert fleet.loop.is_alive()
    fleet.advance(0.1)
    assert not fleet.loop.is_alive()
    fleet.loop.tick()
    assert fleet.loop.is_alive()


def test_a_loop_whose_every_tick_fails_is_dead_in_the_end() -> None:
    fleet = Fleet()
    fleet.source.given = OSError("no such folder")
    for _ in range(DEAD_AFTER_INTERVALS):
        fleet.advance(15.0)
        with pytest.raises(OSError, match="no such folder"):
            fleet.loop.tick()
    assert not fleet.loop.is_alive()


def test_a_loop_that_was_never_started_can_be_stopped() -> None:
    Fleet().loop.stop()


class Running:
    """A started loop with a short interval, and waiting for what it does without guessing how long that takes."""

    def __init__(self, tick_seconds: float = 0.05, clock: Clock | None = None) -> None:
        self.fleet = Fleet(clock or SystemClock(), tick_seconds)
        self.ticked = threading.Semaphore(0)
        self.fleet.on_sync = self.ticked.release

    def __enter__(self) -> Running:
        self.fleet.loop.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.fleet.loop.stop()

    def wait_for_ticks(self, count: int) -> None:
        for _ in range(count):
            assert self.ticked.acquire(timeout=PATIENCE_SECONDS), "no tick came"


def test_a_started_loop_ticks_at_once_and_again() -> None:
    with Running() as running:
        running.wait_for_ticks(3)
    assert running.fleet.ticks("done") >= 3.0


class ClockThatIsSet(SystemClock):
    """The machine's clock, ahead by an hour until somebody sets it right."""

    def __init__(self) -> None:
        self.ahead_seconds = 3600.0

    def now_seconds(self) -> float:
        return super().now_seconds() + self.ahead_seconds


def test_a_clock_that_is_set_back_does_not_stop_the_loop() -> None:
    clock = ClockThatIsSet()
    with Running(clock=clock) as running:
        clock.ahead_seconds = 0.0
        running.wait_for_ticks(2)


def test_a_stopped_loop_has_ended_its_tick_and_begins_no_other() -> None:
    with Running() as running:
        running.wait_for_ticks(1)
    done = running.fleet.ticks("done")
    assert done == len(running.fleet.reporter.ticks)
    assert not running.ticked.acquire(timeout=0.2) or running.fleet.ticks("done") == done


def test_a_tick_that_fails_is_logged_counted_and_followed_by_others(caplog: pytest.LogCaptureFixture) -> None:
    with Running() as running:
        scalers, running.fleet.source.given = running.fleet.source.given, KeyError("a bug")
        running.wait_for_ticks(3)
        running.fleet.source.given = scalers
        running.wait_for_ticks(3)
    assert running.fleet.ticks("failed") >= 1.0
    assert running.fleet.ticks("done") >= 1.0
    failures = [record for record in caplog.records if record.getMessage() == "a tick failed"]
    assert len(failures) == running.fleet.ticks("failed")
    assert failures[0].exc_info is not None
    assert isinstance(failures[0].exc_info[1], KeyError)


def test_how_many_objects_there_are_is_said_where_it_changes_also_where_there_are_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="autoscaler.controller.loop")
    fleet = Fleet()
    scalers, fleet.source.given = fleet.source.given, ()
    for given in ((), (), scalers, scalers):
        fleet.source.given = given
        fleet.loop.tick()
    counts = [vars(each)["count"] for each in caplog.records if each.getMessage() == "InferenceScalers looked after"]
    assert counts == [0, 1]


class _Heard(logging.Handler):
    """Tells when a message has been logged."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self.message = message
        self.event = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == self.message:
            self.event.set()


def test_a_tick_that_takes_longer_than_the_interval_is_counted_as_missed_and_runs_alone() -> None:
    logger, heard = logging.getLogger("autoscaler.controller.loop"), _Heard("a tick took longer than its interval")
    running, alone = Running(), threading.Lock()

    def wait_until_another_is_due() -> None:
        assert alone.acquire(blocking=False)
        assert heard.event.wait(PATIENCE_SECONDS)
        alone.release()
        running.ticked.release()

    running.fleet.on_sync = wait_until_another_is_due
    logger.addHandler(heard)
    try:
        with running:
            running.wait_for_ticks(1)
    finally:
        logger.removeHandler(heard)
    assert running.fleet.ticks("missed") >= 1.0
    assert running.fleet.ticks("failed") == 0.0


def test_a_standby_looks_again_soon_and_acts_as_soon_as_it_leads() -> None:
    """With an interval of ten minutes the second look comes after a second."""
    running = Running(tick_seconds=300.0)
    running.fleet.is_synced = False
    with running:
        running.wait_for_ticks(1)
        running.fleet.is_synced = True
        running.wait_for_ticks(1)
    assert running.fleet.ticks("unsynced") == 1.0
    assert running.fleet.ticks("done") == 1.0


class TestWoken:
    """A loop with an interval of an hour: every tick but the first is a woken one."""

    def test_a_tick_comes_at_once_and_only_one(self) -> None:
        with Running(3600.0) as running:
            running.wait_for_ticks(1)
            for _ in range(10):
                running.fleet.loop.wake()
            running.wait_for_ticks(1)
        assert not running.ticked.acquire(blocking=False)

    def test_what_happens_during_a_tick_brings_another(self) -> None:
        running = Running(3600.0)

        def happens_once() -> None:
            running.ticked.release()
            running.fleet.on_sync = running.ticked.release
            running.fleet.loop.wake()

        running.fleet.on_sync = happens_once
        with running:
            running.wait_for_ticks(2)

    def test_a_loop_that_was_never_started_stays_asleep(self) -> None:
        fleet = Fleet()
        fleet.loop.wake()
        assert fleet.reporter.ticks == []
