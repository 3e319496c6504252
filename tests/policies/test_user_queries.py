from __future__ import annotations

from policies.user_queries import user_queries
from tests.builders import a_policy


def test_each_query_has_the_name_that_its_vote_looks_it_up_by() -> None:
    policy = a_policy(
        signals={
            "kvCache": {},
            "pendingRequests": {"query": "sum(pending)", "perReplica": 3},
            "custom": [{"name": "depth", "query": "sum(depth)", "perReplica": 2}],
        }
    )
    assert user_queries(policy) == {"pendingRequests": "sum(pending)", "custom/depth": "sum(depth)"}


def test_a_policy_without_queries_asks_nothing() -> None:
    assert user_queries(a_policy(signals={"kvCache": {}})) == {}
