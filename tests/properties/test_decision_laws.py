"""Laws that hold for every decision, over generated policies, loads and histories."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from policies.constraints.rate_limit import scale_up_limit
from policies.constraints.replica_bounds import bounds_at
from policies.decision import ScalingDecision, decide
from policies.decision_input import DecisionInput
from policies.history import with_rescale
from policies.observation import PoolLatency, ReplicaCounts
from policies.parameters import Mode, ScalingParameters
from policies.reasons import Reason
from policies.recommenders.forecast import ForecastMode, ForecastParameters
from tests.builders import NOW, a_blackout, a_history, a_policy
from tests.forecast_builders import a_forecast
from tests.properties.pools import (
    CAPACITY,
    PENDING_PER_REPLICA,
    RATE_PER_REPLICA,
    WAITING_PER_REPLICA,
    Load,
    Pool,
    loads,
    observe,
    policies,
    pools,
)

INPUT = TypeAdapter(DecisionInput)
DECISION = TypeAdapter(ScalingDecision)
laws = settings(max_examples=200, deadline=None)

seen_loads = loads.map(lambda load: replace(load, is_seen=True, is_aged=False))


@laws
@given(pools())
def test_the_bounds_hold(pool: Pool) -> None:
    decision = decide(pool.decision_input())
    bounds = bounds_at(pool.policy, NOW, 0.0)
    if decision.reason is Reason.SCALING_DISABLED:
        assert decision.desired_replicas == pool.current == 0
    elif pool.policy.mode is Mode.SCALE_UP_ONLY:
        assert decision.desired_replicas >= max(bounds.minimum, pool.current)
    else:
        assert bounds.minimum <= decision.desired_replicas <= bounds.maximum


@laws
@given(pools(), st.floats(1.0, 10.0))
def test_more_load_never_lowers_a_vote_or_the_count(pool: Pool, factor: float) -> None:
    before, after = decide(pool.decision_input()), decide(pool.busier(factor).decision_input())
    assert after.desired_replicas >= before.desired_replicas
    for less, more in zip(before.recommendations, after.recommendations, strict=True):
        assert (more.replicas or 0.0) >= (less.replicas or 0.0) * (1 - 1e-12)


@laws
@given(pools(seen_loads), st.data())
def test_what_is_not_known_never_lowers_the_count(pool: Pool, data: st.DataObject) -> None:
    """Where less is seen there may be less growth, but no shrinking that full sight would not have brought."""
    assume(pool.loads)
    hidden = data.draw(st.sets(st.sampled_from(range(len(pool.loads))), min_size=1))
    is_aged = data.draw(st.booleans())
    silent = data.draw(st.sets(st.sampled_from(sorted(pool.queries))))
    partial = replace(
        pool,
        loads=tuple(
            replace(load, is_seen=is_aged, is_aged=is_aged) if index in hidden else load
            for index, load in enumerate(pool.loads)
        ),
        queries={name: None if name in silent else value for name, value in pool.queries.items()},
    )
    full, less = decide(pool.decision_input()), decide(partial.decision_input())
    assert less.desired_replicas >= min(full.desired_replicas, pool.current)


@laws
@given(pools())
def test_latencies_that_are_not_known_never_lower_the_count(pool: Pool) -> None:
    full, less = decide(pool.decision_input()), decide(replace(pool, latency=PoolLatency()).decision_input())
    assert less.desired_replicas >= min(full.desired_replicas, pool.current)


@laws
@given(pools(), st.floats(0.0, 5.0))
def test_what_unsteady_replicas_hold_lowers_no_count_and_raises_none(pool: Pool, held: float) -> None:
    without = decide(replace(pool, unsteady=0.0).decision_input()).desired_replicas
    count = decide(replace(pool, unsteady=held).decision_input()).desired_replicas
    assert without <= count <= max(without, pool.current)


@laws
@given(pools())
def test_a_blackout_never_lowers_the_count(pool: Pool) -> None:
    blind = decide(replace(pool.decision_input(), metrics=a_blackout()))
    # A policy of nothing but schedules measures nothing, so there is nothing that it cannot see.
    assume(any(not vote.is_exact for vote in blind.recommendations))
    assert blind.desired_replicas >= min(pool.current, bounds_at(pool.policy, NOW, 0.0).maximum)


HASTY = a_policy(
    signals={"tokensInFlight": {}, "kvCache": {}},
    behavior={"scaleDown": {"stabilizationWindowSeconds": 0}},
    coldStart={"priorSeconds": 1},
)


@laws
@given(st.integers(1, 25), st.floats(0.0, 0.6), st.integers(1, 5), st.integers(0, 5), st.integers(0, 3))
def test_a_shrinking_pool_keeps_as_many_working_replicas_as_it_needs(
    ready: int, share: float, stuck: int, outlasting: int, starting: int
) -> None:
    """However the target chooses whom to take away among those that outlast the working ones."""
    load = Load(kv_usage=share, tokens=share, waiting=0.0, rate=share)
    pool = Pool(HASTY, (load,) * ready, starting, {}, a_history(), stuck, outlasting)
    decision = decide(pool.decision_input())
    needed = max(vote.rounded_up for vote in decision.recommendations)
    working = min(decision.desired_replicas, pool.current) - min(outlasting, stuck)
    assert working >= min(max(needed, 1), ready + starting)


@laws
@given(pools())
def test_stuck_replicas_never_order_more_than_two(pool: Pool) -> None:
    decision_input = pool.decision_input()
    healthy = replace(decision_input.replicas, stuck=0, outlasting=0, starting=pool.starting + pool.stuck)
    with_stuck, without = decide(decision_input), decide(replace(decision_input, replicas=healthy))
    assert with_stuck.desired_replicas >= without.desired_replicas
    assert with_stuck.desired_replicas <= max(without.desired_replicas + 2, pool.current)


@laws
@given(pools(), st.floats(0.0, 60.0), st.booleans())
def test_a_forecast_never_lowers_the_count_and_advice_never_changes_it(
    pool: Pool, replicas: float, is_blind: bool
) -> None:
    plain = pool.decision_input()
    if is_blind:
        plain = replace(plain, metrics=a_blackout())
    forecast = a_forecast(*[replicas * RATE_PER_REPLICA] * 4)

    def with_mode(mode: ForecastMode) -> int:
        policy = pool.policy.model_copy(update={"forecast": ForecastParameters(mode=mode)})
        return decide(replace(plain, parameters=policy, forecast=forecast)).desired_replicas

    without = decide(plain).desired_replicas
    assert with_mode(ForecastMode.ADVISE) == without
    assert with_mode(ForecastMode.ACTIVE) >= without


# A held count may be the count that came, and it matters that it is held; so does that a pool sleeps or wakes.
MAY_SPEAK_WITHOUT_A_CHANGE = {"missingData", "lastReplica", "wakeUp", "switchedOff"}


@laws
@given(pools())
def test_the_steps_lead_from_the_proposal_to_the_count(pool: Pool) -> None:
    decision = decide(pool.decision_input())
    for earlier, later in itertools.pairwise(decision.steps):
        assert later.before == earlier.after
    assert decision.steps[-1].after == decision.desired_replicas
    for step in decision.steps:
        if step.reason in (Reason.NOT_LIMITED, Reason.DESIRED_WITHIN_RANGE):
            assert step.after == step.before
        else:
            assert step.message
            assert step.after != step.before or step.name in MAY_SPEAK_WITHOUT_A_CHANGE
    assert decision.message.startswith(f"{decision.desired_replicas}: ")


@laws
@given(pools())
def test_a_recorded_decision_is_decided_again_the_same(pool: Pool) -> None:
    decision_input = pool.decision_input()
    read = INPUT.validate_json(INPUT.dump_json(decision_input, by_alias=True))
    assert read == decision_input
    decision = decide(decision_input)
    assert decide(read) == decision
    assert DECISION.validate_json(DECISION.dump_json(decision, by_alias=True)) == decision


EVERY_VOTE = a_policy(
    signals={
        "tokensInFlight": {},
        "tokenRate": {"perReplicaPerSecond": RATE_PER_REPLICA},
        "kvCache": {},
        "waitingRequests": {"perReplica": WAITING_PER_REPLICA},
        "pendingRequests": {"query": "q", "perReplica": PENDING_PER_REPLICA},
        "custom": [{"name": "depth", "query": "q", "perReplica": 2.0}],
    }
)


@laws
@given(st.integers(1, 25), st.floats(0.0, 0.5))
def test_no_vote_exceeds_the_ready_replicas_at_half_load(ready: int, share: float) -> None:
    """Half of what a replica should do, of every kind of load: a vote above ready there would grow without end."""
    # A replica with its full share of tokens has half of its KV cache in use; waiting requests are tokens as well.
    half = Load(kv_usage=share / 2, tokens=share, waiting=share / 2, rate=share)
    queries = {"pendingRequests": ready * share * PENDING_PER_REPLICA, "custom/depth": ready * share * 2.0}
    votes = decide(Pool(EVERY_VOTE, (half,) * ready, 0, queries, a_history()).decision_input()).recommendations
    assert len(votes) == 6
    for vote in votes:
        assert vote.replicas is not None
        assert vote.replicas <= ready


@laws
@given(st.integers(1, 25), st.floats(0.0, 0.5))
def test_no_vote_by_what_is_learned_exceeds_the_ready_replicas_at_half_load(ready: int, share: float) -> None:
    half = Load(kv_usage=share / 2, tokens=share, waiting=share / 2, rate=share)
    pool = Pool(a_policy(objectives={}), (half,) * ready, 0, {}, a_history(), capacity=CAPACITY)
    votes = decide(pool.decision_input()).recommendations
    assert [vote.recommender for vote in votes] == ["tokensInFlight", "workRate"]
    for vote in votes:
        assert vote.replicas is not None
        assert vote.replicas <= ready


@settings(max_examples=20, deadline=None)
@given(policies(), st.integers(1, 25), st.floats(0.0, 30.0))
def test_constant_load_reaches_a_fixed_point_and_stays(policy: ScalingParameters, replicas: int, demand: float) -> None:
    """The load of `demand` replicas, shared evenly by those that are there, for some four hours of ticks."""
    history, current, counts = a_history(), replicas, []
    for tick in range(1000):
        now = NOW + 15.0 * tick
        share = demand / max(current, 1)
        load = Load(kv_usage=min(1.0, 0.5 * share), tokens=share, waiting=0.0, rate=share)
        metrics = observe((load,) * current, {"pendingRequests": 0.0, "custom/depth": demand * 2.0})
        counts_now = ReplicaCounts(current, current, current)
        decision = decide(DecisionInput(now, policy, counts_now, metrics, history, learned_capacity=CAPACITY))
        history = decision.next_history
        if decision.desired_replicas != current:
            history = with_rescale(history, policy.behavior, now, current, decision.desired_replicas)
            current = decision.desired_replicas
        counts.append(current)
    assert len(set(counts[-120:])) == 1


@laws
@given(st.integers(1, 30), st.floats(1.06, 30.0))
def test_a_step_in_load_is_answered_at_once_as_far_as_the_rates_allow(ready: int, factor: float) -> None:
    pool = Pool(EVERY_VOTE, (Load(0.5, 1.0, 0.0, 1.0),) * ready, 0, {"pendingRequests": 0.0}, a_history())
    pool = replace(pool, queries={"pendingRequests": ready * factor * PENDING_PER_REPLICA, "custom/depth": 0.0})
    allowed = scale_up_limit(ready, pool.policy.behavior.scale_up, (), NOW)
    wanted = math.ceil(ready * factor * PENDING_PER_REPLICA / PENDING_PER_REPLICA)
    assert decide(pool.decision_input()).desired_replicas == min(wanted, allowed, pool.policy.max_replicas)
