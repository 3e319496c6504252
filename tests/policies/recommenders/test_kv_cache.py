from __future__ import annotations

from dataclasses import replace

import pytest

from policies.capacity.learned_capacity import LearnedCapacity
from policies.recommenders.kv_cache import recommend_kv_cache
from policies.recommenders.tokens_in_flight import recommend_tokens_in_flight
from policies.signals import Signal
from tests.builders import a_decision_input, a_policy, an_even_signal, an_observation


@pytest.mark.parametrize("usage", [0.1, 0.5, 0.86, 1.0])
@pytest.mark.parametrize("learned", [None, LearnedCapacity(16_000, 750, 60_000, safe_utilization=0.9)])
def test_the_kv_cache_asks_for_no_more_than_tokens_in_flight_that_go_by_its_own_size(
    usage: float, learned: LearnedCapacity | None
) -> None:
    """A learned capacity is never more than the cache, of which half is the most that a replica's share can be."""
    metrics = an_observation(
        {
            Signal.KV_CACHE_USAGE: an_even_signal(4 * usage, 4),
            Signal.KV_CACHE_USED_TOKENS: an_even_signal(4 * usage * 60_000, 4),
        }
    )
    seen = replace(
        a_decision_input(a_policy(signals={"kvCache": {}, "tokensInFlight": {}}), metrics), learned_capacity=learned
    )
    (kv_cache,), (tokens,) = recommend_kv_cache(seen), recommend_tokens_in_flight(seen)
    assert (kv_cache.replicas or 0.0) < (tokens.replicas or 0.0)
