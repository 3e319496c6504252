"""A stock HorizontalPodAutoscaler of kube-controller-manager 1.37 and we move the same counts on the same metrics.

Ours is driven by the record of the play: the same values, at the moments at which the HPA got them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from policies.constraints.behavior import ScalingBehavior
from policies.decision import decide
from policies.history import new_history, with_rescale
from policies.hpa.metric_proposal import Tolerance, milli_target, milli_value
from policies.hpa.metrics import MeasuredMetric, PodCounts, TargetType
from policies.hpa.reconcile import HPAMemory, HPASpec, reconcile
from policies.observation import QueryUnknown, QueryValue, ReplicaCounts
from tests.builders import a_decision_input, a_policy, an_observation
from tests.cluster.harness.control_plane import ControlPlane
from tests.parity.hpa_plays import PLAYS, SYNC_SECONDS, HPAPlay, Value
from tests.parity.hpa_stage import READY_PODS, Stage, StagedPlay, Sync

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

# The controller's --horizontal-pod-autoscaler-downscale-stabilization, which counts where there is no `behavior`.
CONTROLLER_WINDOW_SECONDS = 5.0
# A machine that is busy with other things may spoil a play; it is played again, and compared as far as it is sound.
ROUNDS = 4
LONG_ENOUGH = 0.5
# Our words for the two kinds of target.
TARGETS = {"AverageValue": "perReplica", "Value": "perPool"}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with ControlPlane() as control_plane, Stage(control_plane, "parity", tmp_path) as opened:
        yield opened


def counts_of_ours(play: HPAPlay, syncs: list[Sync]) -> list[int]:
    behavior = ScalingBehavior.model_validate(play.behavior)
    policy = a_policy(
        minReplicas=play.minimum,
        maxReplicas=play.maximum,
        behavior=behavior,
        signals={
            "custom": [
                {"name": f"m{index}", "query": "q", TARGETS[metric.target_type]: metric.target}
                for index, metric in enumerate(play.metrics)
            ]
        },
    )
    started = syncs[0].at_seconds
    # Complete since long ago: a stock HPA does not know that it has not been watching.
    history = replace(new_history(started, play.start), complete_since_seconds=started - 10_000)
    current, counts = play.start, []
    for place, sync in enumerate(syncs):
        current = play.set_by_others.get(place, current)
        queries = {f"custom/m{index}": query_answer(value) for index, value in enumerate(sync.values)}
        metrics = an_observation(ready=READY_PODS, queries=queries)
        counts_now = ReplicaCounts(current, current, ready=READY_PODS)
        seen = a_decision_input(policy, metrics, replicas=counts_now, history=history, now_seconds=sync.at_seconds)
        decision = decide(seen)
        history = decision.next_history
        if decision.desired_replicas != current:
            history = with_rescale(history, behavior, sync.at_seconds, current, decision.desired_replicas)
            current = decision.desired_replicas
        counts.append(current)
    return counts


def query_answer(value: Value) -> QueryValue | QueryUnknown:
    items = milli_items(value)
    return QueryValue(sum(items) / 1000.0, 1.0) if items else QueryUnknown("no series")


def milli_items(value: Value) -> tuple[int, ...]:
    if value is None:
        return ()
    return tuple(milli_value(item) for item in (value if isinstance(value, tuple) else (value,)))


def counts_of_our_model(play: HPAPlay, syncs: list[Sync]) -> list[int]:
    behavior = None if play.behavior is None else ScalingBehavior.model_validate(play.behavior)
    tolerance = (
        Tolerance(0.1, 0.1)
        if behavior is None
        else Tolerance(behavior.scale_up.tolerance, behavior.scale_down.tolerance)
    )
    memory, current, counts = HPAMemory(), play.start, []
    for place, sync in enumerate(syncs):
        current = play.set_by_others.get(place, current)
        metrics = tuple(
            MeasuredMetric(TargetType(metric.target_type), milli_target(metric.target), milli_items(value))
            for metric, value in zip(play.metrics, sync.values, strict=True)
        )
        spec = HPASpec(play.minimum, play.maximum, metrics, tolerance, behavior, CONTROLLER_WINDOW_SECONDS)
        pods = PodCounts(current, current, READY_PODS, READY_PODS)
        outcome = reconcile(spec, pods, memory, sync.at_seconds)
        memory, current = outcome.memory, outcome.replicas
        counts.append(current)
    return counts


def played(stage: Stage) -> list[StagedPlay]:
    """Each play once, the longest sound record of it."""
    best: dict[str, StagedPlay] = {}
    left = list(PLAYS)
    for _ in range(ROUNDS):
        for staged in stage.play(left, timeout_seconds=4 * SYNC_SECONDS * max(play.syncs for play in left)):
            before = best.get(staged.play.name)
            if before is None or len(staged.syncs) > len(before.syncs):
                best[staged.play.name] = staged
        left = [play for play in PLAYS if best[play.name].is_disturbed]
        if not left:
            break
    return list(best.values())


def as_text(counts: dict[str, list[int]]) -> str:
    return "\n".join(f"{name}: {' '.join(map(str, moved))}" for name, moved in counts.items())


def test_the_real_hpa_and_we_move_the_same_counts(stage: Stage) -> None:
    records = played(stage)
    real = {record.play.name: [sync.after for sync in record.syncs] for record in records}
    too_short = [r.play.name for r in records if len(r.syncs) < LONG_ENOUGH * r.play.syncs]
    assert not too_short, "this machine is too busy to time these plays"
    model = {record.play.name: counts_of_our_model(record.play, record.syncs) for record in records}
    assert as_text(model) == as_text(real)
    ours = {record.play.name: counts_of_ours(record.play, record.syncs) for record in records if record.play.is_ours}
    assert as_text(ours) == as_text({name: real[name] for name in ours})
    assert [name for name, moved in real.items() if len(set(moved)) < 2] == []
