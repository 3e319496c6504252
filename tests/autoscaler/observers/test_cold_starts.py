"""What the starts of a pool's pods teach, look after look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from autoscaler.api.learned import LearnedStatus, learned_cold_start
from autoscaler.kubernetes_gateway.watched_objects import WatchedPod
from autoscaler.observers.cold_starts import ColdStarts, LearnedStarts
from policies.cold_start import KEPT_STARTS, ObservedStart, learn_cold_start
from tests.pool_builders import a_scaler

CREATED = 1000.0

PENDING = WatchedPod("inference", "a", {}, CREATED, False, None, None, False)
SCHEDULED = replace(PENDING, scheduled_at_seconds=1090.0, ready_changed_at_seconds=1091.0)
LOADING = replace(SCHEDULED, started_at_seconds=1110.0)
READY = replace(LOADING, is_ready=True, ready_changed_at_seconds=1170.0)
WHOLE_START = ObservedStart(90.0, 20.0, 60.0)


def looks(*pods: Sequence[WatchedPod], pods_per_replica: int = 1, **scaler: Any) -> LearnedStarts:
    """What is known after several looks at one replica's pods; no pods: it is not there."""
    starts = ColdStarts()
    learned = None
    for members in pods:
        replicas: Mapping[str, Sequence[WatchedPod]] = {"a": members} if members else {}
        learned = starts.learn(a_scaler(**scaler), replicas, pods_per_replica)
    assert learned is not None
    return learned


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([[PENDING], [SCHEDULED], [LOADING], [READY]], [WHOLE_START], id="a start from its beginning"),
        pytest.param([[LOADING], [READY]], [WHOLE_START], id="a controller that came while it was loading"),
        pytest.param([[PENDING], [READY], [READY]], [WHOLE_START], id="a start counts once"),
        pytest.param([[READY]], [], id="of a pod that was ready before, the first start is not known"),
        pytest.param([[PENDING], [SCHEDULED], []], [], id="a start that was given up"),
        pytest.param(
            [[replace(LOADING, ready_changed_at_seconds=5000.0)], [replace(READY, ready_changed_at_seconds=5060.0)]],
            [],
            id="a pod that was unready for a while does not start",
        ),
        pytest.param(
            [[PENDING], [LOADING], [replace(READY, has_restarted=True)]], [], id="a crash on the way is no plain start"
        ),
        pytest.param(
            [[PENDING], [replace(READY, created_at_seconds=1050.0)]],
            [],
            id="another pod of the same name has a start of its own",
        ),
        pytest.param(
            [[PENDING], [replace(READY, started_at_seconds=None)]],
            [ObservedStart(90.0, None, 80.0)],
            id="a phase that shows no end is counted to the next",
        ),
        pytest.param(
            [[PENDING], [replace(READY, scheduled_at_seconds=None, started_at_seconds=None)]],
            [ObservedStart(None, None, 170.0)],
            id="no phase can be told",
        ),
        pytest.param(
            [[PENDING], [replace(READY, started_at_seconds=1089.0)]],
            [ObservedStart(90.0, 0.0, 80.0)],
            id="whole seconds in the wrong order are no time at all",
        ),
    ],
)
def test_a_start_is_seen(pods: list[list[WatchedPod]], expected: list[ObservedStart]) -> None:
    assert looks(*pods).starts == tuple(expected)


LEADER = READY
WORKER_PENDING = replace(PENDING, name="a-1", created_at_seconds=1002.0)
WORKER = replace(
    READY, name="a-1", created_at_seconds=1002.0, scheduled_at_seconds=1100.0, ready_changed_at_seconds=1300.0
)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param(
            [[PENDING, WORKER_PENDING], [LEADER, WORKER_PENDING], [LEADER, WORKER]],
            [ObservedStart(100.0, 10.0, 190.0)],
            id="it has started when both pods have",
        ),
        pytest.param(
            [[PENDING], [LEADER], [LEADER, WORKER_PENDING], [LEADER, WORKER]],
            [ObservedStart(100.0, 10.0, 190.0)],
            id="a worker that is made once its leader is ready belongs to the same start",
        ),
        pytest.param(
            [[LEADER, WORKER_PENDING], [LEADER, WORKER]], [], id="a worker that is replaced is no start of the replica"
        ),
        pytest.param([[PENDING], [LEADER]], [], id="one pod is no replica"),
    ],
)
def test_a_start_of_a_replica_of_two_pods(pods: list[list[WatchedPod]], expected: list[ObservedStart]) -> None:
    assert looks(*pods, pods_per_replica=2).starts == tuple(expected)


def test_without_a_start_nothing_is_learned_and_with_one_it_is() -> None:
    assert looks([PENDING]).cold_start is None
    seen = looks([PENDING], [READY], coldStart={"priorSeconds": 60})
    assert seen.cold_start == learn_cold_start([WHOLE_START], 60.0)


def test_another_prior_counts_at_once() -> None:
    starts = ColdStarts()
    starts.learn(a_scaler(coldStart={"priorSeconds": 60}), {"a": [PENDING]}, 1)
    starts.learn(a_scaler(coldStart={"priorSeconds": 60}), {"a": [READY]}, 1)
    learned = starts.learn(a_scaler(coldStart={"priorSeconds": 600}), {"a": [READY]}, 1)
    assert learned.cold_start == learn_cold_start([WHOLE_START], 600.0)


def test_two_starts_at_one_look_are_kept_in_the_order_of_their_ends() -> None:
    starts = ColdStarts()
    starts.learn(a_scaler(), {"a": [PENDING], "b": [PENDING]}, 1)
    later = replace(READY, ready_changed_at_seconds=1200.0)
    learned = starts.learn(a_scaler(), {"a": [later], "b": [READY]}, 1)
    assert [start.load_seconds for start in learned.starts] == [60.0, 90.0]


def test_no_more_than_fifty_starts_are_kept() -> None:
    starts = ColdStarts()
    for number in range(KEPT_STARTS + 10):
        made = replace(PENDING, created_at_seconds=CREATED - number)
        starts.learn(a_scaler(), {"a": [made]}, 1)
        learned = starts.learn(a_scaler(), {"a": [replace(READY, created_at_seconds=CREATED - number)]}, 1)
    assert len(learned.starts) == KEPT_STARTS
    assert learned.starts[-1].node_seconds == 90.0 + KEPT_STARTS + 9


def _saved(*starts: ObservedStart) -> dict[str, Any]:
    learned = LearnedStatus(cold_start=learned_cold_start(learn_cold_start(starts, 60.0), starts))
    return {"learned": learned.model_dump(mode="json", by_alias=True)}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(
            _saved(ObservedStart(0.0, 20.0, 61.0), ObservedStart(None, None, 70.0)),
            (ObservedStart(0.0, 20.0, 61.0), ObservedStart(None, None, 70.0)),
            id="what the predecessor saved",
        ),
        pytest.param({}, (), id="nothing"),
        pytest.param({"learned": {"coldStart": None}}, (), id="no cold start"),
        pytest.param({"learned": {"coldStart": {"recent": "1+2+3"}}}, (), id="not this version's form"),
        pytest.param(_saved() | {"learned": "x"}, (), id="no document at all"),
    ],
)
def test_a_successor_goes_on_from_the_status(status: dict[str, Any], expected: tuple[ObservedStart, ...]) -> None:
    assert ColdStarts().learn(a_scaler(status=status), {}, 1).starts == expected


def test_fifty_long_starts_fit_into_the_status() -> None:
    starts = (ObservedStart(99_999.0, 99_999.0, 1e9),) * KEPT_STARTS
    learned = learned_cold_start(learn_cold_start(starts, 60.0), starts)
    assert ColdStarts().learn(a_scaler(status=_saved(*starts)), {}, 1).starts[0].load_seconds == 99_999.0
    assert learned.recent.startswith("99999+99999+99999 ")


def test_a_recreated_scaler_begins_anew_and_one_that_is_gone_is_forgotten() -> None:
    starts = ColdStarts()
    starts.learn(a_scaler(), {"a": [PENDING]}, 1)
    assert starts.learn(a_scaler(), {"a": [READY]}, 1).starts
    assert starts.learn(a_scaler(uid="uid-2"), {"a": [READY]}, 1).starts == ()
    starts.learn(a_scaler(), {"a": [PENDING]}, 1)
    starts.retain(())
    assert starts.learn(a_scaler(), {"a": [READY]}, 1).starts == ()
