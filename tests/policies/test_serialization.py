"""A recorded input, read again, is decided again the same: this is what `explain` rests on."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from policies.decision import ScalingDecision, decide
from policies.decision_input import DecisionInput
from policies.observation import QueryUnknown
from policies.signals import Signal
from tests.builders import a_blackout, a_decision_input, a_history, a_policy, a_signal, an_observation

INPUT = TypeAdapter(DecisionInput)
DECISION = TypeAdapter(ScalingDecision)
POLICY = a_policy(
    minReplicas=0,
    signals={
        "tokensInFlight": {},
        "kvCache": {},
        "pendingRequests": {"query": "q", "perReplica": 3},
        "custom": [{"name": "depth", "query": "d", "perReplica": 0.1}],
    },
    schedules=[{"name": "day", "start": "0 8 * * *", "end": "0 20 * * *", "minReplicas": 2}],
    missingData={"fallback": {"replicas": 3}},
)


@pytest.mark.parametrize("by_alias", [True, False])
@pytest.mark.parametrize(
    "metrics",
    [
        pytest.param(
            an_observation(
                {Signal.KV_CACHE_USAGE: a_signal(0.1, 1 / 3, None, 0.7, held=1)},
                queries={"pendingRequests": 7.1, "custom/depth": QueryUnknown("empty")},
                fresh=2,
            ),
            id="signals by name, unknown ones, answers and refusals of queries",
        ),
        pytest.param(a_blackout(), id="nothing seen"),
    ],
)
def test_a_recorded_decision_is_decided_again_the_same(metrics: Any, by_alias: bool) -> None:
    history = a_history(recommended={10: 4, 200: 6}, rescaled={14: 1}, last_desired_replicas=6, last_seen_replicas=4)
    decision_input = a_decision_input(POLICY, metrics, history=history)
    read = INPUT.validate_json(INPUT.dump_json(decision_input, by_alias=by_alias))
    assert read == decision_input
    decision = decide(read)
    assert decision == decide(decision_input)
    assert DECISION.validate_json(DECISION.dump_json(decision, by_alias=by_alias)) == decision
