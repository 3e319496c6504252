"""A policy in HPA's terms alone moves a target through time as a stock HPA would: the same counts at every sync."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.constraints.behavior import ScalingBehavior
from policies.constraints.tolerance import tolerance_of
from policies.decision import decide
from policies.history import new_history, with_rescale
from policies.hpa.metric_proposal import milli_target, milli_value
from policies.hpa.metrics import MeasuredMetric, PodCounts, TargetType
from policies.hpa.reconcile import HPAMemory, HPASpec, reconcile
from policies.observation import QueryUnknown, ReplicaCounts
from policies.parameters import ScalingParameters
from tests.builders import NOW, a_decision_input, a_policy, an_observation

SYNC_SECONDS = 15.0

rates = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Pods", "Percent"]),
            "value": st.integers(1, 120),
            "periodSeconds": st.sampled_from([1, 15, 30, 60, 90, 300]),
        }
    ),
    min_size=1,
    max_size=3,
)


def rules(windows: list[int]) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries(
        {
            "stabilizationWindowSeconds": st.sampled_from(windows),
            "selectPolicy": st.sampled_from(["Max", "Max", "Min", "Disabled"]),
            "policies": rates,
            "tolerance": st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.3]),
        }
    )


behaviors = st.fixed_dictionaries(
    {
        "scaleUp": rules([0, 15, 30, 60, 120, 300]),
        # A window of nothing does not exist for us: it is at least the cold start, which is a second or more.
        "scaleDown": rules([15, 30, 60, 120, 300]),
    }
).map(ScalingBehavior.model_validate)


@dataclass(frozen=True)
class Play:
    """A target, its metrics sync by sync (None: missing), and at which syncs somebody else sets its count."""

    start: int
    minimum: int
    maximum: int
    behavior: ScalingBehavior
    targets: tuple[tuple[TargetType, float], ...]
    values: tuple[tuple[float | None, ...], ...]
    unready: int = 0  # replicas of any count that are not ready
    set_by_others: dict[int, int] = field(default_factory=dict)

    def counts(self, current: int) -> ReplicaCounts:
        """The target with so many replicas."""
        return ReplicaCounts(current, current, ready=max(0, current - self.unready))


@st.composite
def plays(draw: st.DrawFn) -> Play:
    minimum = draw(st.integers(1, 10))
    kinds = st.sampled_from([TargetType.AVERAGE_VALUE, TargetType.AVERAGE_VALUE, TargetType.VALUE])
    numbers = st.sampled_from([0.1, 0.3, 1.0, 2.5, 7.0, 1000.0])
    targets = draw(st.lists(st.tuples(kinds, numbers), min_size=1, max_size=3))
    demand = st.one_of(st.floats(0.0, 60.0), st.integers(0, 400).map(lambda tenths: tenths / 10))
    # Of a Value target the quantity is a multiple of what it should be, not of what one replica should have.
    ratio = st.one_of(st.floats(0.0, 3.0), st.integers(0, 40).map(lambda tenths: tenths / 10))
    per_sync = st.tuples(
        *(
            (ratio if kind is TargetType.VALUE else demand).map(lambda times, target=target: times * target)
            for kind, target in targets
        )
    )
    values: list[tuple[float | None, ...]] = list(draw(st.lists(per_sync, min_size=5, max_size=40)))
    # Fewer in a row than would be a hole in our history, on which we shrink nothing.
    missing = st.tuples(st.integers(1, len(values) - 1), st.integers(0, len(targets) - 1))
    for sync, metric in draw(st.lists(missing, max_size=6)):
        values[sync] = tuple(None if index == metric else value for index, value in enumerate(values[sync]))
    return Play(
        start=draw(st.integers(1, 50)),
        minimum=minimum,
        maximum=draw(st.integers(minimum, 60)),
        behavior=draw(behaviors),
        targets=tuple(targets),
        values=tuple(values),
        unready=draw(st.integers(0, 3)),
        set_by_others=draw(st.dictionaries(st.integers(1, len(values) - 1), st.integers(1, 70), max_size=2)),
    )


def play_ours(play: Play) -> list[int]:
    policy = a_policy(
        minReplicas=play.minimum,
        maxReplicas=play.maximum,
        behavior=play.behavior,
        signals={
            "custom": [
                {"name": f"m{index}", "query": "q", "perPool" if kind is TargetType.VALUE else "perReplica": target}
                for index, (kind, target) in enumerate(play.targets)
            ]
        },
    )
    # Complete since long ago: a stock HPA does not know that it has not been watching.
    history = replace(new_history(NOW, play.start), complete_since_seconds=NOW - 10_000)
    current, counts = play.start, []
    for sync, values in enumerate(play.values):
        now = NOW + sync * SYNC_SECONDS
        current = play.set_by_others.get(sync, current)
        metrics = an_observation(
            ready=play.counts(current).ready,
            queries={
                f"custom/m{index}": QueryUnknown("no series") if value is None else value
                for index, value in enumerate(values)
            },
        )
        counted = play.counts(current)
        decision = decide(a_decision_input(policy, metrics, replicas=counted, history=history, now_seconds=now))
        history = decision.next_history
        if decision.desired_replicas != current:
            history = with_rescale(history, play.behavior, now, current, decision.desired_replicas)
            current = decision.desired_replicas
        counts.append(current)
    return counts


def play_stock(play: Play) -> list[int]:
    tolerance = tolerance_of(ScalingParameters(max_replicas=1, behavior=play.behavior))
    memory, current, counts = HPAMemory(), play.start, []
    for sync, values in enumerate(play.values):
        current = play.set_by_others.get(sync, current)
        metrics = tuple(
            MeasuredMetric(kind, milli_target(target), () if value is None else (milli_value(value),))
            for (kind, target), value in zip(play.targets, values, strict=True)
        )
        spec = HPASpec(play.minimum, play.maximum, metrics, tolerance, play.behavior)
        pods = PodCounts(current, current, play.counts(current).ready, current)
        outcome = reconcile(spec, pods, memory, NOW + sync * SYNC_SECONDS)
        memory, current = outcome.memory, outcome.replicas
        counts.append(current)
    return counts


@settings(max_examples=400, deadline=None)
@given(plays())
def test_the_counts_are_those_of_a_stock_hpa(play: Play) -> None:
    assert play_ours(play) == play_stock(play)
