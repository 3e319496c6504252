"""What is remembered of a pool, and what is taken up again after a restart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from autoscaler.api.learned import written_bursts
from autoscaler.api.status import save_history
from autoscaler.controller.history_store import HistoryStore
from policies.bursts import Burst, BurstMemory
from policies.constraints.node_move import LONGEST_REST_SECONDS
from policies.history import MoveMemory, ScalingHistory, new_history
from tests.builders import NOW, a_history
from tests.pool_builders import a_scaler

SAVED = a_history(recommended={100.0: 9, 15.0: 4}, rescaled={40.0: 2}, last_desired_replicas=9)


def a_status(**changes: Any) -> dict[str, Any]:
    return {"observedGeneration": 1, "history": save_history(SAVED), **changes}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(a_status(), SAVED, id="a saved history is restored"),
        pytest.param({}, new_history(NOW, 4), id="without a status it begins now, with the present count"),
        pytest.param({"observedGeneration": 3}, new_history(NOW, 4), id="a status without a history is none"),
        pytest.param(a_status(history="{"), new_history(NOW, 4), id="a history that is no JSON is none"),
        pytest.param(a_status(history="{}"), new_history(NOW, 4), id="a history that lacks its fields is none"),
        pytest.param(a_status(history=7), new_history(NOW, 4), id="a history that is no text is none"),
        pytest.param(a_status(observedGeneration="x"), SAVED, id="another field that is wrong costs no history"),
        pytest.param(a_status(future=1), SAVED, id="a field of a newer program costs no history"),
        pytest.param(
            a_status(conditions=[{"type": "Future", "status": "True", "reason": "x", "lastTransitionTime": "x"}]),
            SAVED,
            id="a condition of a newer program costs no history",
        ),
    ],
)
def test_a_pool_that_this_process_has_not_seen_is_restored(status: dict[str, Any], expected: ScalingHistory) -> None:
    assert HistoryStore().recall(a_scaler(status=status), 4, NOW) == expected


def test_what_this_process_remembers_counts_before_what_was_saved() -> None:
    store, scaler = HistoryStore(), a_scaler(status=a_status())
    newer = a_history(last_desired_replicas=7)
    store.remember(scaler, newer)
    assert store.recall(scaler, 4, NOW) == newer


ASLEEP = a_history(recommended={15.0: 0}, last_seen_replicas=0, is_scaled_to_zero=True)
SWITCHED_OFF = a_history(recommended={15.0: 4}, last_seen_replicas=0)
AWAKE = a_history(recommended={15.0: 1}, last_seen_replicas=1)


@pytest.mark.parametrize(
    ("saved", "minimum", "replicas", "is_asleep"),
    [
        pytest.param(ASLEEP, 0, 0, True, id="saved asleep"),
        pytest.param(SWITCHED_OFF, 0, 0, False, id="saved switched off"),
        pytest.param(AWAKE, 0, 0, True, id="nobody saved who went to zero: the policy's own way of going there"),
        pytest.param(None, 0, 0, True, id="nothing saved, as with --config: the same"),
        pytest.param(AWAKE, 1, 0, False, id="a policy that never goes to zero did not"),
        pytest.param(None, 1, 0, False, id="nor did it without anything saved"),
        pytest.param(AWAKE, 0, 1, False, id="not at zero"),
    ],
)
def test_whether_a_pool_at_zero_sleeps_after_a_restart(
    saved: ScalingHistory | None, minimum: int, replicas: int, is_asleep: bool
) -> None:
    status = {} if saved is None else a_status(history=save_history(saved))
    pending = {"pendingRequests": {"query": "q", "perReplica": 4}}
    scaler = a_scaler(status=status, minReplicas=minimum, signals=pending)
    assert HistoryStore().recall(scaler, replicas, NOW).is_scaled_to_zero is is_asleep


def test_a_pool_that_is_switched_off_under_our_eyes_does_not_sleep() -> None:
    store, scaler = (
        HistoryStore(),
        a_scaler(minReplicas=0, signals={"pendingRequests": {"query": "q", "perReplica": 4}}),
    )
    store.remember(scaler, AWAKE)
    assert not store.recall(scaler, 0, NOW).is_scaled_to_zero


def test_a_scaler_that_was_made_anew_begins_anew() -> None:
    store = HistoryStore()
    store.remember(a_scaler(uid="old"), SAVED)
    assert store.recall(a_scaler(uid="new"), 4, NOW) == new_history(NOW, 4)


def test_after_forgetting_everything_what_was_saved_counts() -> None:
    store, scaler = HistoryStore(), a_scaler(status=a_status())
    store.remember(scaler, a_history(last_desired_replicas=7))
    store.forget_all()
    assert store.recall(scaler, 4, NOW) == SAVED


def test_only_the_pools_that_are_still_there_are_retained() -> None:
    store, one, two = HistoryStore(), a_scaler("one"), a_scaler("two")
    store.remember(one, SAVED)
    store.remember(two, SAVED)
    store.retain(frozenset({two.key}))
    assert store.recall(one, 4, NOW) == new_history(NOW, 4)
    assert store.recall(two, 4, NOW) == SAVED


def test_a_history_that_a_faster_clock_saved_does_not_reach_into_the_future() -> None:
    ahead = a_history(recommended={-3600.0: 90}, rescaled={-3600.0: 8}, complete_for_seconds=-3600.0)
    scaler = a_scaler(status=a_status(history=save_history(ahead)))
    restored = HistoryStore().recall(scaler, 4, NOW)
    assert restored == a_history(recommended={0.0: 90}, rescaled={0.0: 8}, complete_for_seconds=0.0)


def test_a_clock_that_was_set_back_leaves_no_times_in_the_future() -> None:
    store, scaler = HistoryStore(), a_scaler()
    store.remember(
        scaler,
        a_history(
            recommended={100.0: 9, 0.0: 4},
            rescaled={100.0: 5},
            blind_since_seconds=NOW - 40.0,
            low_coverage_since_seconds=NOW,
            idle_since_seconds=NOW - 1000.0,
        ),
    )
    assert store.recall(scaler, 4, NOW - 60.0) == a_history(
        recommended={100.0: 9, 60.0: 4},
        rescaled={100.0: 5},
        blind_since_seconds=NOW - 60.0,
        low_coverage_since_seconds=NOW - 60.0,
        idle_since_seconds=NOW - 1000.0,
    )


def test_a_clock_that_was_set_back_keeps_no_move_of_nodes_waiting() -> None:
    day_seconds = 86_400.0
    store, scaler = HistoryStore(), a_scaler()
    memory = MoveMemory(NOW, 1, NOW, 6, NOW + 2 * day_seconds, 2)
    store.remember(scaler, replace(a_history(recommended={0.0: 4}), node_move=memory))
    recalled = store.recall(scaler, 4, NOW - day_seconds).node_move
    then = NOW - day_seconds
    assert recalled == MoveMemory(then, 1, then, 6, then + LONGEST_REST_SECONDS, 2)


def test_bursts_are_remembered_and_taken_up_from_the_status() -> None:
    bursts = (Burst(1_899_990_000.0, 45.0, 4, 9, 8, 0.012), Burst(1_899_995_000.0, 60.0, 3, 8, 9))
    status = {"learned": {"bursts": written_bursts(bursts)}}
    store = HistoryStore()
    assert store.recall_bursts(a_scaler(status=status)) == BurstMemory(bursts)
    assert store.recall_bursts(
        a_scaler(status={"learned": {"bursts": "1+2+3 x+1+2+3+4+5 1+2+3+4+5+? 1+2+3+4+5+x"}})
    ) == BurstMemory((Burst(1.0, 2.0, 3, 4, 5),))
    store.remember_bursts(a_scaler(), BurstMemory(bursts[:1]))
    assert store.recall_bursts(a_scaler()) == BurstMemory(bursts[:1])
    assert store.recall_bursts(a_scaler(uid="another")) == BurstMemory()
    store.retain(frozenset())
    assert store.recall_bursts(a_scaler()) == BurstMemory()
