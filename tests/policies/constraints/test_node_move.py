"""What is asked for beside the plan so that replicas go to nodes of the other kind, and when that is left."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from policies.accelerator_sharing import AcceleratorAllowance
from policies.capacity_split import CapacityType
from policies.constraints.node_move import LONGEST_REST_SECONDS, LOOKING_SECONDS, REST_SECONDS
from policies.decision import ScalingDecision, decide
from policies.decision_input import DecisionInput
from policies.history import MoveMemory, ScalingHistory, with_rescale
from policies.node_move import NodeMove
from policies.observation import ObservationUnavailable, ReplicaCounts
from policies.reasons import Reason
from policies.signals import Signal
from tests.builders import NOW, a_decision_input, a_history, a_policy, an_even_signal, an_observation

TICK_SECONDS = 15.0
WINDOW_SECONDS = 60.0
PLANNED = 10
SIGNALS = {"waitingRequests": {"perReplica": 4}}
BEHAVIOR = {"scaleDown": {"stabilizationWindowSeconds": int(WINDOW_SECONDS)}}
OFFER = NodeMove(CapacityType.SPOT, can_buy=True, replicas_there=6, nodes_beyond_floor=2, surge_replicas=1)


@dataclass
class Pool:
    """Ten replicas that all serve, of which two could be on spot; every count that is decided is written."""

    offer: NodeMove | None = OFFER
    needed: int = PLANNED
    counts: ReplicaCounts = field(default_factory=lambda: ReplicaCounts(PLANNED, PLANNED, PLANNED))
    history: ScalingHistory = field(default_factory=lambda: a_history())
    now_seconds: float = NOW
    is_seen: bool = True
    allowance: AcceleratorAllowance | None = None
    more: dict[str, object] = field(default_factory=dict)

    def decision_input(self) -> DecisionInput:
        policy = a_policy(signals=SIGNALS, **{"behavior": BEHAVIOR, "coldStart": {"priorSeconds": 30}} | self.more)
        serving = self.counts.serving
        metrics = (
            an_observation({Signal.WAITING_REQUESTS: an_even_signal(4.0 * self.needed, serving)}, ready=serving)
            if self.is_seen
            else ObservationUnavailable(Reason.METRICS_UNAVAILABLE, "down")
        )
        made = a_decision_input(
            policy, metrics, replicas=self.counts, history=self.history, now_seconds=self.now_seconds
        )
        return replace(made, node_move=self.offer, accelerator_allowance=self.allowance)

    def tick(self) -> ScalingDecision:
        decision_input = self.decision_input()
        decision = decide(decision_input)
        self.history = decision.next_history
        if decision.desired_replicas != self.counts.spec:
            behavior = decision_input.parameters.behavior
            planned = decision.desired_replicas - self.history.replaced_replicas
            self.history = with_rescale(self.history, behavior, self.now_seconds, planned, planned)
            self.history = replace(self.history, last_seen_replicas=decision.desired_replicas)
        self.counts = replace(self.counts, spec=decision.desired_replicas, status=decision.desired_replicas)
        self.now_seconds += TICK_SECONDS
        return decision

    def until(self, desired: int, ticks: int = 20) -> ScalingDecision:
        for _ in range(ticks):
            decision = self.tick()
            if decision.desired_replicas == desired:
                return decision
        raise AssertionError(f"{desired} is not asked for within {ticks} ticks")

    def moving(self) -> Pool:
        """One more has been asked for, and starts."""
        self.until(PLANNED + 1)
        self.counts = replace(self.counts, starting=1)
        return self

    def all_serve(self, on_spot: int) -> None:
        assert self.offer is not None
        self.counts = ReplicaCounts(self.counts.spec, self.counts.spec, self.counts.spec)
        self.offer = replace(self.offer, replicas_there=on_spot)


def step_of(decision: ScalingDecision) -> tuple[Reason, str]:
    step = next(step for step in decision.steps if step.name == "nodeMove")
    return step.reason, step.message


def test_one_more_is_asked_for_after_a_calm_window_and_as_many_go_when_it_serves_on_spot() -> None:
    pool = Pool()
    assert [pool.tick().desired_replicas for _ in range(4)] == [10, 10, 10, 10]
    begun = pool.tick()
    assert (begun.desired_replicas, begun.reason) == (11, Reason.RETURNING_TO_SPOT)
    assert "11 asked for: 2 nodes on demand beyond the floor" in begun.message

    pool.counts = replace(pool.counts, starting=1)
    assert [pool.tick().desired_replicas for _ in range(6)] == [11] * 6, "until it serves"
    pool.all_serve(on_spot=7)
    ended = pool.tick()
    assert (ended.desired_replicas, ended.reason) == (10, Reason.RETURNING_TO_SPOT)
    assert "all 11 serve: 1 more on spot takes the place of as many on demand" in ended.message
    assert not [event for event in pool.history.scale_events if event.change], "rate policies saw nothing of it"

    pool.all_serve(on_spot=7)
    pool.offer = replace(OFFER, replicas_there=7, nodes_beyond_floor=1)
    assert [pool.tick().desired_replicas for _ in range(5)] == [10, 10, 10, 10, 11], "the next after another window"


def test_what_leaves_as_many_nodes_on_demand_is_not_done_again_and_again() -> None:
    pool = Pool().moving()
    pool.all_serve(on_spot=7)
    pool.until(PLANNED)
    pool.all_serve(on_spot=7)
    ended_at_seconds = pool.now_seconds
    assert [pool.tick().desired_replicas for _ in range(4)] == [10] * 4
    assert "the last one has left as many nodes on demand" in step_of(pool.tick())[1]
    pool.until(PLANNED + 1, ticks=200)
    assert pool.now_seconds - ended_at_seconds >= REST_SECONDS


def test_victims_that_end_their_requests_first_are_no_new_beginning() -> None:
    pool = Pool().moving()
    pool.all_serve(on_spot=7)
    assert pool.tick().desired_replicas == 10
    for _ in range(10):
        # One is out of the router still, and so the count has not been written.
        pool.counts = replace(pool.counts, spec=11, status=11)
        pool.history = replace(pool.history, last_seen_replicas=11)
        decision = decide(pool.decision_input())
        assert decision.desired_replicas == 10
        pool.history = decision.next_history
        pool.now_seconds += TICK_SECONDS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            {"offer": replace(OFFER, surge_replicas=0, because="no room")}, "no room", id="nodes have no room"
        ),
        pytest.param({"more": {"maxReplicas": 10}}, "the maximum and the accelerators leave 0", id="the maximum"),
        pytest.param(
            {"allowance": AcceleratorAllowance(10, "80 accelerators")}, "leave 0", id="the share of the accelerators"
        ),
    ],
)
def test_a_surge_that_has_no_room_is_refused_and_said(change: dict[str, object], words: str) -> None:
    pool = Pool(**change)  # type: ignore[arg-type]
    for _ in range(10):
        decision = pool.tick()
        assert decision.desired_replicas == 10
    reason, message = step_of(decision)
    assert reason is Reason.RETURN_REFUSED
    assert message.startswith("2 nodes on demand beyond the floor")
    assert words in message


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"counts": ReplicaCounts(10, 10, 9, starting=1)}, id="a replica starts"),
        pytest.param({"counts": ReplicaCounts(10, 11, 10)}, id="a rollout goes on"),
        pytest.param({"counts": ReplicaCounts(10, 10, 10, terminating=1)}, id="a replica ends"),
        pytest.param({"more": {"mode": "ScaleUpOnly"}}, id="nobody may go"),
        pytest.param({"offer": None}, id="nothing is to be moved"),
        pytest.param({"is_seen": False}, id="nothing is seen"),
        pytest.param({"offer": replace(OFFER, surge_replicas=0, waits=True)}, id="an emptied node has not gone yet"),
    ],
)
def test_nothing_is_moved_while_something_else_goes_on(change: dict[str, object]) -> None:
    pool = Pool(**change)  # type: ignore[arg-type]
    counts = pool.counts
    for _ in range(10):
        decision = pool.tick()
        pool.counts = counts
        assert decision.desired_replicas == 10
        assert Reason.RETURN_REFUSED not in {step.reason for step in decision.steps}


def test_growth_takes_what_was_to_move() -> None:
    pool = Pool().moving()
    pool.needed = 14
    grown = pool.tick()
    assert grown.desired_replicas == 14
    assert pool.history.node_move is None
    assert pool.history.replaced_replicas == 0


def test_a_replica_that_leaves_is_replaced_by_what_was_to_move() -> None:
    pool = Pool().moving()
    pool.counts = ReplicaCounts(11, 11, 10, leaving=1, leaving_ready=1)
    decision = pool.tick()
    assert decision.desired_replicas == 11
    assert pool.history.node_move is None


def test_what_does_not_come_is_given_up_and_tried_again_after_a_rest() -> None:
    pool = Pool().moving()
    begun_at_seconds = pool.now_seconds - TICK_SECONDS
    given_up = pool.until(PLANNED, ticks=100)
    limit_seconds = pool.decision_input().cold_start.start_limit_seconds + LOOKING_SECONDS
    assert pool.now_seconds - TICK_SECONDS - begun_at_seconds >= limit_seconds
    assert step_of(given_up)[0] is Reason.RETURN_REFUSED
    assert "the way to spot is given up: after" in step_of(given_up)[1]

    rested_since = pool.now_seconds
    pool.all_serve(on_spot=6)
    assert "tried again in" in step_of(pool.tick())[1]
    pool.until(PLANNED + 1, ticks=200)
    assert pool.now_seconds - rested_since >= REST_SECONDS - 2 * TICK_SECONDS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            {"offer": NodeMove(CapacityType.SPOT, can_buy=False, replicas_there=6)}, "spot cannot be had", id="drought"
        ),
        pytest.param({"counts": ReplicaCounts(11, 11, 10, stuck=1)}, "1 replica stuck", id="it is stuck"),
        pytest.param({"allowance": AcceleratorAllowance(10, "x")}, "leave no room any more", id="another needs them"),
    ],
)
def test_a_way_back_that_cannot_go_on_is_given_up_at_once(change: dict[str, object], words: str) -> None:
    pool = Pool().moving()
    for name, value in change.items():
        setattr(pool, name, value)
    decision = pool.tick()
    assert decision.desired_replicas == PLANNED
    reason, message = step_of(decision)
    assert reason is Reason.RETURN_REFUSED
    assert words in message


def test_what_stands_beside_the_plan_stays_while_nothing_is_seen() -> None:
    pool = Pool().moving()
    pool.is_seen = False
    assert [pool.tick().desired_replicas for _ in range(5)] == [11] * 5
    pool.is_seen = True
    pool.all_serve(on_spot=7)
    pool.until(PLANNED)


def test_whoever_leads_next_goes_on_before_it_has_looked_at_nodes() -> None:
    pool = Pool().moving()
    pool.offer = None
    assert [pool.tick().desired_replicas for _ in range(3)] == [11] * 3
    pool.offer = OFFER
    pool.all_serve(on_spot=7)
    assert pool.tick().desired_replicas == 10


def test_a_count_that_somebody_else_sets_is_a_fact() -> None:
    pool = Pool().moving()
    pool.counts = ReplicaCounts(13, 13, 13)
    pool.tick()
    assert pool.history.node_move is None
    assert pool.history.replaced_replicas == 0


def test_a_write_that_failed_is_asked_for_again() -> None:
    pool = Pool()
    pool.until(PLANNED + 1)
    pool.counts = ReplicaCounts(10, 10, 10)
    pool.history = replace(pool.history, last_seen_replicas=10)
    assert pool.tick().desired_replicas == 11


SHORT = NodeMove(CapacityType.ON_DEMAND, can_buy=True, replicas_there=1, nodes_beyond_floor=5, surge_replicas=1)


def test_a_broken_floor_is_mended_by_one_more_on_demand_and_one_fewer_on_spot() -> None:
    pool = Pool(offer=SHORT)
    begun = pool.until(PLANNED + 1)
    assert begun.reason is Reason.RESTORING_FLOOR
    assert (
        "11 asked for: 5 nodes on spot beyond the floor, so that 1 more on demand takes the place of as many on spot"
    ) in begun.message
    pool.counts = replace(pool.counts, starting=1)
    assert [pool.tick().desired_replicas for _ in range(6)] == [11] * 6, "until it serves"
    pool.counts = ReplicaCounts(11, 11, 11)
    assert pool.tick().desired_replicas == 11, "all serve, and none of them more on demand"
    pool.all_serve(on_spot=2)
    ended = pool.tick()
    assert (ended.desired_replicas, ended.reason) == (10, Reason.RESTORING_FLOOR)


def test_a_broken_floor_waits_for_a_minute_of_calm_and_not_for_a_long_window() -> None:
    window = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 900}}}
    pool = Pool(offer=SHORT, more=window)
    pool.history = replace(pool.history, complete_since_seconds=0.0)
    begun_at_seconds = pool.now_seconds
    pool.until(PLANNED + 1)
    assert pool.now_seconds - begun_at_seconds <= LOOKING_SECONDS + 2 * TICK_SECONDS


def test_a_rest_on_the_way_to_spot_does_not_keep_a_floor_from_being_mended() -> None:
    pool = Pool().moving()
    pool.until(PLANNED, ticks=100)
    pool.all_serve(on_spot=6)
    assert "tried again in" in step_of(pool.tick())[1]
    pool.offer = SHORT
    pool.until(PLANNED + 1)


def rest_after(pool: Pool) -> float:
    """How long nothing is tried after the try that goes on now has come to nothing."""
    pool.until(PLANNED, ticks=100)
    pool.counts = ReplicaCounts(PLANNED, PLANNED, PLANNED)
    since_seconds = pool.now_seconds
    pool.until(PLANNED + 1, ticks=10_000)
    pool.counts = replace(pool.counts, starting=1)
    return pool.now_seconds - since_seconds


def test_what_never_comes_on_spot_is_tried_less_and_less_often_and_that_is_said() -> None:
    pool = Pool(offer=replace(OFFER, replicas_there=0)).moving()
    rests = [rest_after(pool) for _ in range(7)]
    expected = [min(REST_SECONDS * 2**number, LONGEST_REST_SECONDS) for number in range(7)]
    assert rests == pytest.approx(expected, abs=3 * TICK_SECONDS)
    pool.until(PLANNED, ticks=100)
    pool.counts = ReplicaCounts(PLANNED, PLANNED, PLANNED)
    said = step_of(pool.tick())[1]
    assert "did not come 8 times in a row (do its pods select spot nodes, and tolerate their taints?)" in said
    assert "tried again in 1439.8 min" in said


def test_a_floor_that_could_not_be_mended_is_tried_as_often_as_before() -> None:
    pool = Pool(offer=SHORT).moving()
    assert [rest_after(pool) for _ in range(4)] == pytest.approx([REST_SECONDS] * 4, abs=3 * TICK_SECONDS)


def test_a_move_that_comes_off_ends_the_long_rests() -> None:
    pool = Pool().moving()
    assert rest_after(pool) < REST_SECONDS * 1.1
    pool.all_serve(on_spot=7)
    pool.until(PLANNED)
    pool.all_serve(on_spot=7)
    pool.offer = replace(OFFER, replicas_there=7, nodes_beyond_floor=1)
    pool.until(PLANNED + 1)
    pool.counts = replace(pool.counts, starting=1)
    assert rest_after(pool) < REST_SECONDS * 1.1


def test_nobody_goes_while_a_rollout_goes_on() -> None:
    """More replicas stand than are asked for: nobody can say which a smaller count takes."""
    pool = Pool().moving()
    pool.all_serve(on_spot=7)
    pool.counts = replace(pool.counts, status=12)
    decision_input = pool.decision_input()
    assert decide(decision_input).desired_replicas == 11
    pool.counts = replace(pool.counts, status=11)
    assert pool.tick().desired_replicas == 10


SETTLED = MoveMemory(settled_since_seconds=NOW - 60.0)
RESTING = MoveMemory(settled_since_seconds=NOW - 60.0, rests_until_seconds=NOW + 600.0, failures=1)
UNDER_WAY = MoveMemory(moved_replicas=1, begun_at_seconds=NOW - 100.0, there_before=6, nodes_before=2, failures=3)
ELEVEN = ReplicaCounts(11, 11, 10, starting=1)
NO_ROOM = (
    "2 nodes on demand beyond the floor: 3 replicas more for a while would move one to spot, and the maximum and the "
)


def a_look(memory: MoveMemory | None, **change: object) -> Pool:
    """The pool with what is remembered of a move; of one under way, the one more has been written."""
    has_more = memory is not None and memory.moved_replicas > 0
    history = a_history(
        node_move=memory,
        last_desired_replicas=PLANNED + has_more,
        last_seen_replicas=PLANNED + has_more,
        replaced_replicas=int(has_more),
    )
    pool = Pool(history=history, counts=ELEVEN if has_more else ReplicaCounts(PLANNED, PLANNED, PLANNED))
    for name, value in change.items():
        setattr(pool, name, value)
    return pool


@pytest.mark.parametrize(
    ("pool", "count", "reason", "message", "remembered"),
    [
        pytest.param(
            a_look(None, offer=replace(OFFER, nodes_beyond_floor=0)),
            10,
            Reason.NOT_LIMITED,
            "",
            None,
            id="all are where they should be: nothing to remember",
        ),
        pytest.param(
            a_look(SETTLED, offer=None), 10, Reason.NOT_LIMITED, "", None, id="a calm before nothing is forgotten"
        ),
        pytest.param(
            a_look(RESTING, offer=None),
            10,
            Reason.NOT_LIMITED,
            "",
            replace(RESTING, settled_since_seconds=None),
            id="a rest is not",
        ),
        pytest.param(
            a_look(replace(SETTLED, nodes_before=2), counts=ReplicaCounts(10, 10, 9, starting=1)),
            10,
            Reason.NOT_LIMITED,
            "",
            MoveMemory(nodes_before=2),
            id="a replica that starts begins the calm anew",
        ),
        pytest.param(
            a_look(replace(SETTLED, nodes_before=2), needed=14),
            14,
            Reason.NOT_LIMITED,
            "",
            MoveMemory(),
            id="another count makes other nodes: what the last move left tells nothing any more",
        ),
        pytest.param(
            a_look(None, offer=replace(OFFER, waits=True, because="one is empty")),
            10,
            Reason.NOT_LIMITED,
            "2 nodes on demand beyond the floor: one is empty",
            MoveMemory(settled_since_seconds=NOW),
            id="it waits for what passes by itself, and the calm counts",
        ),
        pytest.param(
            a_look(None, offer=replace(OFFER, surge_replicas=0, because="pods of others")),
            10,
            Reason.RETURN_REFUSED,
            "2 nodes on demand beyond the floor: pods of others",
            MoveMemory(settled_since_seconds=NOW),
            id="what cannot be moved is said, and the calm counts",
        ),
        pytest.param(
            a_look(SETTLED, offer=replace(OFFER, surge_replicas=3), more={"maxReplicas": 12}),
            10,
            Reason.RETURN_REFUSED,
            NO_ROOM + "accelerators leave 2",
            SETTLED,
            id="three more with room for two",
        ),
        pytest.param(
            a_look(SETTLED, offer=replace(OFFER, surge_replicas=2), more={"maxReplicas": 12}),
            12,
            Reason.RETURNING_TO_SPOT,
            "12 asked for: 2 nodes on demand beyond the floor, "
            "so that 2 more on spot take the place of as many on demand",
            MoveMemory(moved_replicas=2, begun_at_seconds=NOW, there_before=6, nodes_before=2),
            id="two more with room for two",
        ),
        pytest.param(
            a_look(RESTING, offer=replace(OFFER, replicas_there=0)),
            10,
            Reason.RETURN_REFUSED,
            "2 nodes on demand beyond the floor: what was to move one to spot did not come; tried again in 10 min",
            RESTING,
            id="it rests after one that did not come",
        ),
        pytest.param(
            a_look(replace(RESTING, failures=2), offer=replace(OFFER, replicas_there=0)),
            10,
            Reason.RETURN_REFUSED,
            "2 nodes on demand beyond the floor: what was to move one to spot did not come 2 times in a row "
            "(do its pods select spot nodes, and tolerate their taints?); tried again in 10 min",
            replace(RESTING, failures=2),
            id="after two, and none has ever come",
        ),
        pytest.param(
            a_look(replace(RESTING, failures=2)),
            10,
            Reason.RETURN_REFUSED,
            "2 nodes on demand beyond the floor: what was to move one to spot did not come 2 times in a row; "
            "tried again in 10 min",
            replace(RESTING, failures=2),
            id="after two, and others are there: it may be made for spot",
        ),
        pytest.param(
            a_look(
                replace(RESTING, to=CapacityType.ON_DEMAND, failures=2),
                offer=NodeMove(CapacityType.ON_DEMAND, True, 0, nodes_beyond_floor=1, surge_replicas=1),
            ),
            10,
            Reason.FLOOR_NOT_RESTORED,
            "1 node on spot beyond the floor: what was to move one to on demand did not come 2 times in a row; "
            "tried again in 10 min",
            replace(RESTING, to=CapacityType.ON_DEMAND, failures=2),
            id="a node on demand has no taints to ask for",
        ),
        pytest.param(
            a_look(replace(RESTING, rests_until_seconds=NOW, failures=2)),
            11,
            Reason.RETURNING_TO_SPOT,
            "11 asked for: 2 nodes on demand beyond the floor, "
            "so that 1 more on spot takes the place of as many on demand",
            MoveMemory(moved_replicas=1, begun_at_seconds=NOW, there_before=6, nodes_before=2, failures=2),
            id="a rest ends at its end, and how often it failed is kept until one comes",
        ),
        pytest.param(
            a_look(replace(SETTLED, settled_since_seconds=NOW - 59.0)),
            10,
            Reason.NOT_LIMITED,
            "",
            replace(SETTLED, settled_since_seconds=NOW - 59.0),
            id="a second of calm is missing",
        ),
        pytest.param(
            a_look(SETTLED, more={"behavior": {"scaleDown": {"stabilizationWindowSeconds": 61}}}),
            10,
            Reason.NOT_LIMITED,
            "",
            SETTLED,
            id="to spot the calm is as long as the scale-down window",
        ),
        pytest.param(
            a_look(
                replace(SETTLED, to=CapacityType.ON_DEMAND),
                offer=NodeMove(CapacityType.ON_DEMAND, True, 1, nodes_beyond_floor=5, surge_replicas=1),
                more={"behavior": {"scaleDown": {"stabilizationWindowSeconds": 61}}},
            ),
            11,
            Reason.RESTORING_FLOOR,
            "11 asked for: 5 nodes on spot beyond the floor, "
            "so that 1 more on demand takes the place of as many on spot",
            MoveMemory(
                moved_replicas=1, begun_at_seconds=NOW, there_before=1, nodes_before=5, to=CapacityType.ON_DEMAND
            ),
            id="to on demand it is a minute",
        ),
        pytest.param(
            a_look(replace(SETTLED, nodes_before=2, failures=1)),
            10,
            Reason.RETURN_REFUSED,
            "the way to spot is given up: the last one has left as many nodes on demand",
            MoveMemory(rests_until_seconds=NOW + 2 * REST_SECONDS, failures=2),
            id="the last one has left as many nodes",
        ),
        pytest.param(
            a_look(replace(SETTLED, nodes_before=3, failures=4)),
            11,
            Reason.RETURNING_TO_SPOT,
            "11 asked for: 2 nodes on demand beyond the floor, "
            "so that 1 more on spot takes the place of as many on demand",
            MoveMemory(moved_replicas=1, begun_at_seconds=NOW, there_before=6, nodes_before=2),
            id="the last one has left one node fewer: what failed before it is forgotten",
        ),
        pytest.param(
            a_look(UNDER_WAY, counts=ReplicaCounts(13, 13, 13), needed=13),
            13,
            Reason.NOT_LIMITED,
            "",
            None,
            id="somebody else has set the count",
        ),
        pytest.param(
            a_look(UNDER_WAY, is_seen=False),
            11,
            Reason.NOT_LIMITED,
            "",
            UNDER_WAY,
            id="while nothing is seen it goes on as it is",
        ),
        pytest.param(
            a_look(UNDER_WAY, is_seen=False, counts=ReplicaCounts(11, 11, 10, leaving=1)),
            11,
            Reason.RETURN_REFUSED,
            "the way to spot is left: another count is wanted, or replicas are about to go",
            None,
            id="one that is about to go ends it, seen or not",
        ),
        pytest.param(
            a_look(UNDER_WAY, needed=14),
            14,
            Reason.RETURN_REFUSED,
            "the way to spot is left: another count is wanted, or replicas are about to go",
            None,
            id="growth ends it",
        ),
        pytest.param(
            a_look(UNDER_WAY, more={"maxReplicas": 11}),
            11,
            Reason.RETURNING_TO_SPOT,
            "11 asked for until all serve, so that 1 more on spot takes the place of as many on demand",
            UNDER_WAY,
            id="what has not come yet is waited for, also where the maximum leaves just the room",
        ),
        pytest.param(
            a_look(replace(UNDER_WAY, begun_at_seconds=NOW - 359.0)),
            11,
            Reason.RETURNING_TO_SPOT,
            "11 asked for until all serve, so that 1 more on spot takes the place of as many on demand",
            replace(UNDER_WAY, begun_at_seconds=NOW - 359.0),
            id="a second before a slow start's time is over",
        ),
        pytest.param(
            a_look(replace(UNDER_WAY, begun_at_seconds=NOW - 360.0)),
            10,
            Reason.RETURN_REFUSED,
            "the way to spot is given up: after 6 min they do not all serve on spot",
            MoveMemory(rests_until_seconds=NOW + 8 * REST_SECONDS, failures=4),
            id="it is over",
        ),
        pytest.param(
            a_look(UNDER_WAY, counts=ReplicaCounts(11, 11, 11), offer=None),
            11,
            Reason.RETURNING_TO_SPOT,
            "11 asked for until all serve, so that 1 more on spot takes the place of as many on demand",
            UNDER_WAY,
            id="all serve, and nobody has looked at nodes yet: it is not known where",
        ),
        pytest.param(
            a_look(UNDER_WAY, counts=ReplicaCounts(11, 11, 11), offer=replace(OFFER, replicas_there=7)),
            10,
            Reason.RETURNING_TO_SPOT,
            "all 11 serve: 1 more on spot takes the place of as many on demand",
            MoveMemory(nodes_before=2, failures=3),
            id="it has come: how often it failed is kept until it is known what it was good for",
        ),
    ],
)
def test_one_look_at_a_move(
    pool: Pool, count: int, reason: Reason, message: str, remembered: MoveMemory | None
) -> None:
    decision = decide(pool.decision_input())
    step = next(step for step in decision.steps if step.name == "nodeMove")
    assert (step.after, step.reason, step.message, step.node_move) == (count, reason, message, remembered)
    assert decision.next_history.node_move == remembered


def test_a_pool_of_one_replica_moves_too() -> None:
    pool = a_look(SETTLED, counts=ReplicaCounts(1, 1, 1), needed=1)
    pool.history = replace(pool.history, last_desired_replicas=1, last_seen_replicas=1)
    assert decide(pool.decision_input()).desired_replicas == 2
