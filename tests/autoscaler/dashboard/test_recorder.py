from __future__ import annotations

import pytest

from autoscaler.api.inference_scaler import InvalidInferenceScaler
from autoscaler.controller.pool_report import Rejected, Unobserved
from autoscaler.dashboard.recorder import DashboardRecorder, kept_rows
from autoscaler.dashboard.snapshot import FleetSource
from autoscaler.observers.workload import WorkloadUnavailable
from policies.reasons import Reason
from tests.autoscaler.replay.simulated_pools import KEY, a_scaler
from tests.fakes.demo_fleet import DemoFleet

CHAT = ("demo", "chat-8b")


def test_a_tick_becomes_a_row_and_a_change_of_the_count_a_line() -> None:
    fleet = DemoFleet()
    fleet.run(40)
    view = fleet.recorder.snapshot.pools[CHAT]
    assert len(view.series.times_seconds) == 40
    assert {"desired", "ready", "starting", "promptTokensPerSecond", "waitingRequests", "kvCacheUsage"} < set(
        view.series.names
    )
    assert {"vote/tokenRate", "vote/tokensInFlight", "metShare", "timeToFirstTokenP99Seconds"} < set(view.series.names)
    assert view.changes
    times = [change.at_seconds for change in view.changes]
    assert times == sorted(times, reverse=True)
    assert all(change.from_replicas != change.to_replicas for change in view.changes)
    assert view.changes[-1].outcome == "SucceededRescale"
    assert view.problem is None


def test_a_snapshot_that_somebody_reads_does_not_change_under_them() -> None:
    fleet = DemoFleet()
    fleet.run(3)
    read = fleet.recorder.snapshot
    rows = len(read.pools[CHAT].series.times_seconds)
    fleet.run(5)
    assert len(read.pools[CHAT].series.times_seconds) == rows
    assert fleet.recorder.snapshot is not read


def test_the_history_is_bounded() -> None:
    fleet = DemoFleet(history_rows=10)
    fleet.run(25)
    assert len(fleet.recorder.snapshot.pools[CHAT].series.times_seconds) == 10


@pytest.mark.parametrize(
    ("pools", "rows"),
    [
        pytest.param(1, 240, id="a pool alone has its full history"),
        pytest.param(400, 240, id="four hundred pools too"),
        pytest.param(1000, 100, id="a thousand share what there is"),
        pytest.param(100_000, 60, id="nobody has less than a quarter of an hour"),
    ],
)
def test_a_large_fleet_keeps_less_of_each_pool(pools: int, rows: int) -> None:
    assert kept_rows(pools, most=240) == rows


def test_a_pool_that_cannot_be_seen_says_why_and_one_that_is_gone_is_forgotten() -> None:
    recorder = DashboardRecorder(FleetSource("t", "a", is_simulated=False))
    scaler = a_scaler()
    recorder.report([Unobserved(scaler, 5.0, WorkloadUnavailable(Reason.TARGET_NOT_FOUND, "there is no such thing"))])
    view = recorder.snapshot.pools[KEY]
    assert view.problem == "there is no such thing"
    assert (view.decision, view.engine, view.max_replicas) == (None, "vllm", 20)
    invalid = InvalidInferenceScaler(
        namespace="inference", name="other", generation=1, problems=("spec.engine: missing",)
    )
    recorder.report([Rejected(invalid, 20.0)])
    assert list(recorder.snapshot.pools) == [("inference", "other")]
    assert recorder.snapshot.pools["inference", "other"].problem == ("the spec was not accepted: spec.engine: missing")
