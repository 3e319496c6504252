from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from autoscaler.replay.scraped_pages import ScrapeSettings
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.simulated_metrics import SimulatedMetrics
from autoscaler.replay.simulated_pool import SimulatedPool
from policies.observation import QueryUnknown, QueryValue
from policies.signals import Signal
from tests.autoscaler.replay.simulated_pools import (
    STARTED_AT,
    a_pool,
    a_query,
    a_setup,
    some_requests,
    steady_requests,
)


def conserved(pool: SimulatedPool) -> bool:
    outcomes = pool.outcomes
    return outcomes.arrived == outcomes.finished + outcomes.rejected + outcomes.dropped + pool.requests_in_flight


class TestRequests:
    def test_every_request_finishes_or_is_still_there(self) -> None:
        pool = a_pool(a_setup(), steady_requests(20.0))
        for second in range(1, 600):
            pool.advance(STARTED_AT + second)
            if second == 100:
                pool.scale(5)
            if second == 400:
                pool.scale(2)
            assert conserved(pool)
        assert pool.outcomes.arrived == pytest.approx(20 * 599, abs=2)
        assert pool.outcomes.rejected == pool.outcomes.dropped == 0

    def test_requests_in_flight_are_rate_times_time_as_littles_law_says(self) -> None:
        pool = a_pool(a_setup(initial_replicas=4), steady_requests(16.0))
        pool.advance(STARTED_AT + 60)
        in_flight = []
        for quarter in range(4 * 300):
            pool.advance(STARTED_AT + 60 + quarter / 4)
            in_flight.append(pool.requests_in_flight)
        request = Request(STARTED_AT, 1000, 200)
        alone = a_pool(a_setup(initial_replicas=4), iter([request]))
        alone.advance(STARTED_AT + 30)
        assert request.finished_at is not None
        at_least = 16.0 * (request.finished_at - STARTED_AT - 0.1)
        mean = sum(in_flight) / len(in_flight)
        assert at_least < mean < 1.6 * at_least  # a busy replica is slower than an idle one

    def test_without_a_ready_replica_requests_wait_at_the_gateway_and_are_served_later(self) -> None:
        pool = a_pool(a_setup(initial_replicas=0), some_requests(10))
        pool.advance(STARTED_AT + 5)
        assert (pool.gateway_queue, pool.outcomes.finished) == (10, 0)
        pool.scale(1)
        pool.advance(STARTED_AT + 104)
        assert pool.gateway_queue == 10
        pool.advance(STARTED_AT + 130)
        assert (pool.gateway_queue, pool.outcomes.finished) == (0, 10)
        first_token = pool.outcomes.recent_time_to_first_token_seconds(0.99)
        assert first_token is not None
        assert first_token > 100

    def test_a_request_longer_than_the_cache_is_rejected_as_engines_do(self) -> None:
        pool = a_pool(a_setup(), iter([Request(STARTED_AT, 500_000, 10)]))
        pool.advance(STARTED_AT + 60)
        assert pool.outcomes.rejected == 1
        assert conserved(pool)

    def test_the_load_is_spread_evenly(self) -> None:
        pool = a_pool(a_setup(initial_replicas=4, scrape=ScrapeSettings(interval_seconds=1.0)), steady_requests(16.0))
        pool.advance(STARTED_AT + 120)
        finished = [sample.page.finished_requests for pod in pool.pods if (sample := pool.pages.newest(pod.name, 2e9))]
        assert len(finished) == 4
        assert max(finished) < 1.1 * min(finished)


class TestReplicas:
    def test_a_new_replica_serves_after_its_cold_start(self) -> None:
        pool = a_pool(a_setup(cold_start_seconds=100.0), steady_requests(1.0))
        pool.advance(STARTED_AT + 10)
        pool.scale(3)
        pool.advance(STARTED_AT + 109)
        assert (pool.replicas.ready, pool.replicas.starting) == (2, 1)
        pool.advance(STARTED_AT + 111)
        assert (pool.replicas.ready, pool.replicas.starting) == (3, 0)

    def test_a_victim_takes_no_new_requests_and_finishes_its_streams(self) -> None:
        pool = a_pool(a_setup(), steady_requests(8.0, tokens=(100, 2000)))
        pool.advance(STARTED_AT + 30)
        pool.scale(1)
        assert (pool.replicas.ready, pool.replicas.terminating) == (1, 1)
        assert len(pool.pods) == 1
        pool.advance(STARTED_AT + 120)
        assert pool.replicas.terminating == 0
        assert pool.outcomes.dropped == 0
        assert conserved(pool)

    def test_what_is_not_finished_within_the_grace_is_lost(self) -> None:
        pool = a_pool(a_setup(drain_grace_seconds=5.0), steady_requests(8.0, tokens=(100, 2000)))
        pool.advance(STARTED_AT + 30)
        pool.scale(1)
        pool.advance(STARTED_AT + 36)
        assert pool.replicas.terminating == 0
        assert pool.outcomes.dropped > 0
        assert conserved(pool)

    def test_replicas_that_start_go_first_then_the_youngest(self) -> None:
        pool = a_pool(a_setup(), steady_requests(1.0))
        pool.advance(STARTED_AT + 1)
        pool.scale(3)
        pool.advance(STARTED_AT + 200)
        pool.scale(4)
        pool.scale(2)
        assert [pod.name for pod in pool.pods] == ["vllm-chat-00001", "vllm-chat-00002"]
        assert pool.replicas.terminating == 1  # the one that had been ready; the starting one is gone at once

    def test_what_is_paid_for_includes_starting_and_draining_replicas(self) -> None:
        pool = a_pool(a_setup(cold_start_seconds=50.0), some_requests(1))
        pool.advance(STARTED_AT + 50)
        pool.scale(3)
        pool.advance(STARTED_AT + 100)
        assert pool.replica_seconds == pytest.approx(2 * 50 + 3 * 50, abs=2)


class TestWhatThePolicySees:
    def observe(self, pool: SimulatedPool, metrics: SimulatedMetrics, at: float) -> float | None:
        pool.advance(STARTED_AT + at)
        signals = metrics.observe(a_query(pool), pool.gateway_queue, STARTED_AT + at).signals
        signal = signals.get(Signal.KV_CACHE_USAGE)
        return signal.total if signal and signal.known_replicas else None

    def test_a_scrape_becomes_visible_only_after_its_delay(self) -> None:
        scrape = ScrapeSettings(interval_seconds=10.0, delay_seconds=5.0)
        pool = a_pool(a_setup(initial_replicas=1, scrape=scrape), some_requests(5, tokens=(1000, 4000)))
        metrics = SimulatedMetrics("vllm", pool.setup.profile.kv_capacity_tokens, pool.pages)
        seen_at = next(s / 4 for s in range(200) if self.observe(pool, metrics, s / 4) is not None)
        first = pool.pages.newest("vllm-chat-00001", STARTED_AT + seen_at)
        assert first is not None
        assert STARTED_AT + seen_at - first.at_seconds == pytest.approx(5.0, abs=0.25)

    def test_between_two_scrapes_nothing_changes(self) -> None:
        scrape = ScrapeSettings(interval_seconds=30.0, delay_seconds=0.0)
        pool = a_pool(a_setup(initial_replicas=1, scrape=scrape), steady_requests(5.0))
        metrics = SimulatedMetrics("vllm", pool.setup.profile.kv_capacity_tokens, pool.pages)
        seen = [self.observe(pool, metrics, 100 + second) for second in range(60)]
        changes = sum(before != after for before, after in itertools.pairwise(seen))
        assert 1 <= changes <= 2

    def test_rates_need_two_scrapes_and_then_tell_what_is_served(self) -> None:
        pool = a_pool(a_setup(initial_replicas=2), steady_requests(6.0))
        metrics = SimulatedMetrics("vllm", pool.setup.profile.kv_capacity_tokens, pool.pages)
        pool.advance(STARTED_AT + 17)
        early = metrics.observe(a_query(pool), 0, STARTED_AT + 17)
        assert early.signals[Signal.PROMPT_TOKENS].unknown_replicas > 0
        pool.advance(STARTED_AT + 300)
        later = metrics.observe(a_query(pool), 0, STARTED_AT + 300)
        assert later.signals[Signal.PROMPT_TOKENS].total == pytest.approx(6000, rel=0.1)
        assert later.signals[Signal.GENERATION_TOKENS].total == pytest.approx(1200, rel=0.1)
        assert later.signals[Signal.REQUESTS_FINISHED].total == pytest.approx(6, rel=0.1)
        assert later.prompt_tokens_per_request == 1000
        assert later.generation_tokens_per_request == 200
        assert later.coverage == 1.0
        usage, used = later.signals[Signal.KV_CACHE_USAGE], later.signals[Signal.KV_CACHE_USED_TOKENS]
        assert used.total == pytest.approx(usage.total * pool.setup.profile.kv_capacity_tokens)

    def test_latency_quantiles_are_as_coarse_as_their_buckets_and_not_far_off(self) -> None:
        pool = a_pool(a_setup(initial_replicas=2), steady_requests(6.0))
        metrics = SimulatedMetrics("vllm", pool.setup.profile.kv_capacity_tokens, pool.pages)
        pool.advance(STARTED_AT + 300)
        latency = metrics.observe(a_query(pool), 0, STARTED_AT + 300).latency
        exact = pool.outcomes.recent_time_to_first_token_seconds(0.99)
        assert exact is not None
        assert latency.time_to_first_token_p99_seconds is not None
        assert exact / 3 < latency.time_to_first_token_p99_seconds < 3 * exact
        assert latency.inter_token_latency_p50_seconds is not None

    def test_samples_of_a_drained_replica_do_not_count_as_load(self) -> None:
        pool = a_pool(a_setup(), steady_requests(6.0))
        metrics = SimulatedMetrics("vllm", pool.setup.profile.kv_capacity_tokens, pool.pages)
        pool.advance(STARTED_AT + 100)
        pool.scale(1)
        pool.advance(STARTED_AT + 101)
        seen = metrics.observe(a_query(pool), 0, STARTED_AT + 101)
        assert seen.ready_replicas == 1
        assert seen.signals[Signal.RUNNING_REQUESTS].ready_replicas == 1

    def test_the_gateways_queue_is_the_pending_requests_and_other_promql_is_unknown(self) -> None:
        pool = a_pool(a_setup(initial_replicas=0), some_requests(3))
        metrics = SimulatedMetrics("vllm", pool.setup.profile.kv_capacity_tokens, pool.pages)
        pool.advance(STARTED_AT + 5)
        seen = metrics.observe(a_query(pool, "pendingRequests", "custom/mine"), pool.gateway_queue, STARTED_AT + 5)
        assert seen.queries["pendingRequests"] == QueryValue(3.0, 0.0)
        assert isinstance(seen.queries["custom/mine"], QueryUnknown)

    def test_a_shared_prefix_shows_as_hits_of_the_prefix_cache(self) -> None:
        requests = (Request(STARTED_AT + i / 5, 1000, 100, cached_tokens=400) for i in range(1, 2000))
        pool = a_pool(a_setup(), requests)
        metrics = SimulatedMetrics("vllm", pool.setup.profile.kv_capacity_tokens, pool.pages)
        pool.advance(STARTED_AT + 200)
        seen = metrics.observe(a_query(pool), 0, STARTED_AT + 200)
        assert seen.prefix_cache_hit_share == pytest.approx(0.4)


def test_a_pool_cannot_go_back() -> None:
    pool = a_pool(replace(a_setup()), steady_requests(1.0))
    pool.advance(STARTED_AT + 10)
    with pytest.raises(ValueError, match="cannot go back"):
        pool.advance(STARTED_AT + 9)
