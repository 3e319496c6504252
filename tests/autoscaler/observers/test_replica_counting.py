from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaler.kubernetes_gateway.watched_objects import WatchedPod
from autoscaler.observers.replica_counting import (
    SeenReplica,
    count_replicas,
    live_replicas,
    pods_by_replica,
    seen_replicas,
)
from policies.cold_start import ColdStart
from policies.observation import ReplicaCounts

NOW = 10_000.0
# A start may take 450 s, and the wait for a node two minutes.
COLD_START = ColdStart(300.0, 300.0, 300.0)

READY = SeenReplica(True, False, NOW - 3600.0, None)
STARTING = SeenReplica(False, False, NOW - 449.0, None)
LATE = SeenReplica(False, False, NOW - 450.0, None)
WAITING_FOR_A_NODE = SeenReplica(False, False, NOW - 119.0, NOW - 119.0)
WITHOUT_A_NODE = SeenReplica(False, False, NOW - 120.0, NOW - 120.0)
TERMINATING = SeenReplica(False, True, NOW - 3600.0, None)


def _leaving(replica: SeenReplica) -> SeenReplica:
    return replace(replica, is_leaving=True)


@pytest.mark.parametrize(
    ("replicas", "spec", "missing_since_seconds", "expected"),
    [
        pytest.param([READY] * 3, 3, None, ReplicaCounts(3, 3, ready=3), id="all ready"),
        pytest.param([], 0, None, ReplicaCounts(0, 0, ready=0), id="none asked for"),
        pytest.param([READY, STARTING], 2, None, ReplicaCounts(2, 2, ready=1, starting=1), id="one still in time"),
        pytest.param([READY, LATE], 2, None, ReplicaCounts(2, 2, ready=1, stuck=1), id="one beyond its time"),
        pytest.param(
            [READY, WAITING_FOR_A_NODE], 2, None, ReplicaCounts(2, 2, ready=1, starting=1), id="a node may yet come"
        ),
        pytest.param(
            [READY, WITHOUT_A_NODE], 2, None, ReplicaCounts(2, 2, ready=1, stuck=1), id="no node for two minutes"
        ),
        pytest.param(
            [READY, READY, TERMINATING], 2, None, ReplicaCounts(2, 3, ready=2, terminating=1), id="one on its way out"
        ),
        pytest.param(
            [READY] * 5, 4, None, ReplicaCounts(4, 5, ready=4), id="a ready surge pod is no more than was asked for"
        ),
        pytest.param(
            [READY] * 4 + [STARTING], 4, None, ReplicaCounts(4, 5, ready=4), id="a starting surge pod is no supply"
        ),
        pytest.param(
            [READY] * 4 + [WITHOUT_A_NODE],
            4,
            None,
            ReplicaCounts(4, 5, ready=4),
            id="a surge pod that finds no node is not a stuck replica",
        ),
        pytest.param(
            [READY, STARTING, LATE, LATE],
            3,
            None,
            ReplicaCounts(3, 4, ready=1, starting=1, stuck=1),
            id="what starts in time counts before what is stuck",
        ),
        pytest.param(
            [READY], 4, NOW - 119.0, ReplicaCounts(4, 1, ready=1, starting=3), id="pods that are about to be made"
        ),
        pytest.param(
            [READY], 4, NOW - 120.0, ReplicaCounts(4, 1, ready=1, stuck=3), id="pods that nobody makes (a quota)"
        ),
        pytest.param([READY] * 3, 1, None, ReplicaCounts(1, 3, ready=1), id="more than asked for, not yet stopped"),
        pytest.param(
            [READY, _leaving(READY), _leaving(STARTING)],
            3,
            None,
            ReplicaCounts(3, 3, ready=1, leaving=2, leaving_ready=1),
            id="two on nodes that are about to go, one of which serves until then",
        ),
        pytest.param(
            [READY, _leaving(READY)],
            3,
            None,
            ReplicaCounts(3, 2, ready=1, starting=1, leaving=1, leaving_ready=1),
            id="a replacement that is about to be made",
        ),
        pytest.param(
            [READY, READY, _leaving(READY)],
            2,
            None,
            ReplicaCounts(2, 3, ready=2),
            id="one that leaves beside as many as were asked for",
        ),
        pytest.param(
            [READY, _leaving(LATE)],
            2,
            None,
            ReplicaCounts(2, 2, ready=1, leaving=1),
            id="one that would be stuck if it did not leave",
        ),
    ],
)
def test_counts(
    replicas: list[SeenReplica], spec: int, missing_since_seconds: float | None, expected: ReplicaCounts
) -> None:
    counts = count_replicas(replicas, spec, len(replicas), COLD_START, missing_since_seconds, NOW)
    assert counts == expected
    assert counts.ready + counts.starting + counts.stuck + counts.leaving == spec


def _numbered(*replicas: SeenReplica) -> list[SeenReplica]:
    return [replace(replica, number=number) for number, replica in enumerate(replicas)]


@pytest.mark.parametrize(
    ("replicas", "outlasting"),
    [
        pytest.param([READY, LATE, READY], 0, id="a Deployment takes away first what is not ready"),
        pytest.param(_numbered(READY, READY, LATE), 0, id="a StatefulSet takes away the last one first"),
        pytest.param(_numbered(LATE, READY, STARTING), 1, id="and the first one last, stuck or not"),
        pytest.param(_numbered(LATE, LATE, READY, LATE), 2, id="some of each"),
        pytest.param(_numbered(LATE, LATE), 0, id="where none works, none goes before another"),
    ],
)
def test_stuck_replicas_that_outlast_others(replicas: list[SeenReplica], outlasting: int) -> None:
    counts = count_replicas(replicas, len(replicas), len(replicas), COLD_START, None, NOW)
    assert counts.outlasting == outlasting


def _pod(
    name: str,
    *,
    created: float = 100.0,
    ready: bool = True,
    changed: float | None = 200.0,
    unschedulable: float | None = None,
    terminating: bool = False,
) -> WatchedPod:
    return WatchedPod("inference", name, {}, created, ready, changed, unschedulable, terminating)


def _group_of(pod: WatchedPod) -> str:
    return pod.name.rsplit("-", 1)[0]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([_pod("g-0"), _pod("g-1")], SeenReplica(True, False, 200.0, None), id="all pods ready"),
        pytest.param(
            [_pod("g-0"), _pod("g-1", ready=False, changed=250.0)],
            SeenReplica(False, False, 250.0, None),
            id="one pod not ready: it starts since that one does",
        ),
        pytest.param([_pod("g-0")], SeenReplica(False, False, 200.0, None), id="a pod is missing"),
        pytest.param(
            [_pod("g-0"), _pod("g-1"), _pod("g-2", ready=False, changed=250.0)],
            SeenReplica(False, False, 250.0, None),
            id="more pods than said, such as those of a Ray cluster: all must be ready",
        ),
        pytest.param(
            [_pod("g-0", ready=False, changed=None), _pod("g-1", ready=False, changed=None, unschedulable=130.0)],
            SeenReplica(False, False, 100.0, 130.0),
            id="one pod without a node keeps the whole replica waiting",
        ),
        pytest.param(
            [_pod("g-0", terminating=True), _pod("g-1", terminating=True)],
            SeenReplica(False, True, 0.0, None),
            id="all pods terminating",
        ),
        pytest.param(
            [_pod("g-0", terminating=True), _pod("g-1", created=300.0, ready=False, changed=None)],
            SeenReplica(False, False, 300.0, None),
            id="a group that is restarted as a whole",
        ),
    ],
)
def test_pods_make_up_a_replica(pods: list[WatchedPod], expected: SeenReplica) -> None:
    assert seen_replicas(pods_by_replica(pods, _group_of), 2) == (expected,)


def test_a_pod_that_lost_its_readiness_starts_anew() -> None:
    (replica,) = seen_replicas({"a": [_pod("a", created=0.0, ready=False, changed=9000.0)]}, 1)
    assert replica.starting_since_seconds == 9000.0


def test_terminating_replicas_are_not_alive() -> None:
    assert live_replicas([READY, STARTING, TERMINATING]) == 2


@pytest.mark.parametrize(
    ("node_seconds", "waits_seconds", "stuck"),
    [
        pytest.param(None, 120.0, 1, id="nothing is known of nodes: two minutes"),
        pytest.param(30.0, 120.0, 1, id="nodes that come soon do not make it less"),
        pytest.param(180.0, 269.0, 0, id="where nodes take three minutes to boot, longer"),
        pytest.param(180.0, 270.0, 1, id="and not for ever"),
        pytest.param(4000.0, 450.0, 1, id="nor longer than a start may take"),
    ],
)
def test_how_long_a_replica_may_wait_for_its_node(node_seconds: float | None, waits_seconds: float, stuck: int) -> None:
    waiting = SeenReplica(False, False, NOW - waits_seconds, NOW - waits_seconds)
    learned = replace(COLD_START, node_seconds=node_seconds)
    assert count_replicas([READY, waiting], 2, 2, learned, None, NOW).stuck == stuck
