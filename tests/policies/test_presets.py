"""The two policies that people bring along do through time exactly what their numbers say."""

from __future__ import annotations

from policies.decision import decide
from policies.history import ScalingHistory, with_rescale
from policies.observation import MetricsObservation
from policies.parameters import ScalingParameters
from policies.signals import Signal
from tests.builders import NOW, a_decision_input, a_history, a_policy, an_even_signal, an_observation

TICK_SECONDS = 15

AGENTS = a_policy(
    minReplicas=4,
    maxReplicas=96,
    signals={"tokenRate": {"perReplicaPerSecond": 180_000}},
    behavior={
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "policies": [{"type": "Percent", "value": 100, "periodSeconds": 30}],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": 600,
            "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}],
        },
    },
)
QUEUE_DEPTH = a_policy(
    minReplicas=2,
    maxReplicas=32,
    signals={"waitingRequests": {"perReplica": 4}},
    behavior={
        "scaleUp": {
            "stabilizationWindowSeconds": 30,
            "policies": [{"type": "Percent", "value": 100, "periodSeconds": 30}],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": 300,
            "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}],
        },
    },
)


class Pool:
    """A pool whose counts are written at each tick; `changes` has (seconds since the start, new count)."""

    def __init__(self, policy: ScalingParameters, replicas: int) -> None:
        self.policy, self.replicas, self.seconds = policy, replicas, -TICK_SECONDS
        self.history: ScalingHistory = a_history(recommended={15: replicas})
        self.changes: list[tuple[int, int]] = []

    def run(self, metrics: MetricsObservation, until_seconds: int) -> None:
        while self.seconds < until_seconds:
            self.seconds += TICK_SECONDS
            now = NOW + self.seconds
            decision = decide(
                a_decision_input(self.policy, metrics, replicas=self.replicas, history=self.history, now_seconds=now)
            )
            self.history = decision.next_history
            if decision.desired_replicas != self.replicas:
                self.changes.append((self.seconds, decision.desired_replicas))
                self.history = with_rescale(
                    self.history, self.policy.behavior, now, self.replicas, decision.desired_replicas
                )
                self.replicas = decision.desired_replicas


def a_token_rate(per_second: float) -> MetricsObservation:
    return an_observation(
        {Signal.PROMPT_TOKENS: an_even_signal(per_second, 4), Signal.GENERATION_TOKENS: an_even_signal(0.0, 4)}
    )


def a_queue(requests: float) -> MetricsObservation:
    return an_observation({Signal.WAITING_REQUESTS: an_even_signal(requests, 4)})


def test_agents_double_every_30_s_and_give_back_4_a_minute_after_10_minutes() -> None:
    pool = Pool(AGENTS, 4)
    pool.run(a_token_rate(40 * 180_000), until_seconds=300)
    assert pool.changes == [(0, 8), (30, 16), (60, 32), (90, 40)]
    pool.changes.clear()
    pool.run(a_token_rate(10 * 180_000), until_seconds=2000)
    # 600 s after the last recommendation of 40; ten are needed at the end.
    assert pool.changes == [
        (900, 36),
        (960, 32),
        (1020, 28),
        (1080, 24),
        (1140, 20),
        (1200, 16),
        (1260, 12),
        (1320, 10),
    ]


def test_agents_stay_within_4_and_96() -> None:
    pool = Pool(AGENTS, 4)
    pool.run(a_token_rate(500 * 180_000), until_seconds=300)
    assert pool.replicas == 96
    pool.run(a_token_rate(0.0), until_seconds=4000)
    assert pool.replicas == 4


def test_queue_depth_grows_once_the_queue_has_stood_for_30_s_and_gives_back_2_a_minute() -> None:
    pool = Pool(QUEUE_DEPTH, 2)
    pool.run(a_queue(0.0), until_seconds=0)
    pool.run(a_queue(40.0), until_seconds=300)
    # Zero was recommended at 0 s, which is 30 s old and so outside the window at 30 s.
    assert pool.changes == [(30, 4), (60, 8), (90, 10)]
    pool.changes.clear()
    pool.run(a_queue(0.0), until_seconds=1200)
    assert pool.changes == [(600, 8), (660, 6), (720, 4), (780, 2)]
