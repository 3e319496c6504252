from __future__ import annotations

import pytest

from policies.observation import ReplicaCounts
from policies.recommenders.custom import recommend_custom
from tests.builders import a_decision_input, a_policy, an_observation


@pytest.mark.parametrize(
    ("value", "counts", "replicas"),
    [
        pytest.param(
            3.0, ReplicaCounts(6, 6, ready=4), 6.0, id="half as much again as it should be: of the ready ones"
        ),
        pytest.param(1.0, ReplicaCounts(6, 6, ready=6), 3.0, id="half of what it should be"),
        pytest.param(3.0, ReplicaCounts(0, 0, ready=0), 1.5, id="from zero the ratio itself"),
        pytest.param(3.0, ReplicaCounts(2, 2, ready=0), 0.0, id="where none is ready none is asked for, as in HPA"),
    ],
)
def test_a_quantity_of_the_whole_pool_votes_by_the_ready_replicas(
    value: float, counts: ReplicaCounts, replicas: float
) -> None:
    policy = a_policy(signals={"custom": [{"name": "latency", "query": "q", "perPool": 2}]})
    metrics = an_observation(queries={"custom/latency": value}, ready=counts.ready)
    (vote,) = recommend_custom(a_decision_input(policy, metrics, replicas=counts))
    assert vote.replicas == replicas
    assert vote.message.startswith(f"latency ({value:g} where 2 should be, ")
