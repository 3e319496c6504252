"""What moves between nodes of two kinds may never break, over random lives of nodes that one target or several run on.

TOKENSCALER_PLANS sets how many ticks are looked at as it does for plans: by default some thousands.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.accelerator_sharing import AcceleratorAllowance, AcceleratorDemand
from policies.capacity_split import CapacityType, is_split_kept, split_nodes
from policies.decision import ScalingDecision, decide
from policies.history import ScalingHistory, planned_replicas, replaced_within, with_rescale
from policies.node_capacity import NodeCapacityParameters, plan_node_capacity
from policies.node_move import MoveGround, NodeMove, nodes_beyond_floor, plan_move, spot_nodes_beyond_floor
from policies.observation import ReplicaCounts
from policies.signals import Signal
from policies.victims import NodesOfSplit, choose_victims
from tests.builders import NOW, a_decision_input, a_history, a_policy, an_even_signal, an_observation
from tests.policies.node_plant import NodePlant, by_kind

LIVES = max(20, int(os.environ.get("TOKENSCALER_PLANS", "5000")) // 2500)
pytestmark = pytest.mark.timeout(max(300, 2 * LIVES))
ON_DEMAND, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT
TICK_SECONDS = 15.0
MAXIMUM = 14
# A move leaves one node fewer where it should not be, at least; some come to nothing, as a node is slow to come.
MOST_MOVES = 14
CALM_TICKS = 480
POLICY = a_policy(
    signals={"waitingRequests": {"perReplica": 4}},
    behavior={"scaleDown": {"stabilizationWindowSeconds": 30}},
    coldStart={"priorSeconds": 30},
    maxReplicas=MAXIMUM,
)


@dataclass(eq=False)
class Target:
    """One of the targets, and what is remembered of it."""

    owner: int
    needed: int = 1
    held: int = 0  # beyond the count that was decided, for the floor
    history: ScalingHistory = field(default_factory=a_history)

    @property
    def moved(self) -> int:
        memory = self.history.node_move
        return 0 if memory is None else memory.moved_replicas

    @property
    def moves_to(self) -> CapacityType:
        return SPOT if self.history.node_move is None else self.history.node_move.to


class Nodes:
    """Targets on both kinds of nodes, steered by the product's decisions, plans and choice of victims."""

    def __init__(self, seed: int, floor_percent: int, size: int, ceiling_nodes: int | None, targets: int) -> None:
        self.plant = NodePlant(seed)
        self.size = size
        self.parameters = NodeCapacityParameters(
            8, 1, on_demand_floor_percent=floor_percent, ceiling_nodes=ceiling_nodes
        )
        self.targets = [Target(owner) for owner in range(targets)]
        self.ticks = 0
        self.moves = 0
        self.has_lost = False
        for target in self.targets:
            self.plant.scale(None, 1, size, target.owner)

    @property
    def floor_percent(self) -> int:
        return self.parameters.on_demand_floor_percent

    @property
    def now_seconds(self) -> float:
        return NOW + TICK_SECONDS * self.ticks

    @property
    def nodes(self) -> tuple[int, int]:
        """On demand, and on spot."""
        return self.plant.count(ON_DEMAND), self.plant.count(SPOT)

    @property
    def is_kept(self) -> bool:
        return is_split_kept(*self.nodes, self.floor_percent)

    def counts(self, target: Target) -> ReplicaCounts:
        there = self.plant.target(None, target.owner)
        return ReplicaCounts(there.spec, there.spec, there.ready, starting=there.spec - there.ready)

    def tick(self) -> None:
        """Decisions on what stands now, limits, counts, and what Karpenter makes of all that."""
        before = {target.owner: self.counts(target) for target in self.targets}
        offers = self._offers(before)
        standing = {
            target.owner: min(target.moved, replaced_within(target.history, before[target.owner].spec))
            for target in self.targets
        }
        moved_before = {target.owner: (target.moved, target.moves_to) for target in self.targets}
        decided = [(each, self._decide(each, before[each.owner], offers.get(each.owner))) for each in self.targets]
        for target, _ in decided:
            self.moves += target.moved > 0 and moved_before[target.owner][0] == 0
        self._limit(decided, before, standing, moved_before)
        for target, decision in decided:
            self._write(target, before[target.owner], decision.desired_replicas)
        self.plant.tick()
        opened_spot = any(node.kind is SPOT for node in self.plant.opened)
        assert self.is_kept or not opened_spot, "no spot node is added beside too few on demand"
        assert self.is_kept or self.has_lost, "the floor, at every moment, until a node is lost"
        self.ticks += 1

    def _decide(self, target: Target, counts: ReplicaCounts, offer: NodeMove | None) -> ScalingDecision:
        waiting = an_even_signal(4.0 * target.needed, counts.ready)
        metrics = an_observation({Signal.WAITING_REQUESTS: waiting}, ready=counts.ready)
        most = self._most
        decision = decide(
            replace(
                a_decision_input(
                    POLICY, metrics, replicas=counts, history=target.history, now_seconds=self.now_seconds
                ),
                node_move=offer,
                accelerator_allowance=AcceleratorAllowance(most, "the ceiling"),
            )
        )
        assert decision.desired_replicas <= min(MAXIMUM, max(most, counts.spec)), "neither maximum nor accelerators"
        target.history = decision.next_history
        return decision

    @property
    def _most(self) -> int:
        if self.parameters.ceiling_nodes is None:
            return MAXIMUM
        return max(1, self.parameters.ceiling_nodes * (8 // self.size) // len(self.targets))

    def _offers(self, counts: dict[int, ReplicaCounts]) -> dict[int, NodeMove]:
        """To one at a time: to who moves already, else to each in turn."""
        going = self._kept_on_demand
        split = NodesOfSplit(self.floor_percent, self.nodes[0] - going, self.nodes[1])
        to = ON_DEMAND if spot_nodes_beyond_floor(split) else SPOT
        moving = next((each for each in self.targets if each.moved or each.history.replaced_replicas), None)
        if moving is None and not nodes_beyond_floor(split) and not spot_nodes_beyond_floor(split):
            return {}
        chosen = self.targets[self.ticks // 8 % len(self.targets)] if moving is None else moving
        if moving is not None:
            to = moving.moves_to
        left = ON_DEMAND if to is SPOT else SPOT
        empty, room = self.plant.empty(left), self.plant.room(left, self.size)
        ground = MoveGround(
            to=to,
            split=replace(split, on_demand=split.on_demand - empty) if to is SPOT else split,
            can_buy=self.plant.buys[to],
            replicas_per_node=8 // self.size,
            room=room,
            has_room_there=moving is not None or self._has_room(counts, room + 1, to),
            empty=empty,
        )
        offer = plan_move(self.plant.placed(chosen.owner), ground)
        others = [each for each in self.targets if each is not chosen]
        wanted = {each.owner: each.history.last_desired_replicas or 0 for each in others}
        busy = any(
            each > counts[owner].spec or (to is SPOT and each != counts[owner].spec) for owner, each in wanted.items()
        )
        if busy and moving is None:
            offer = replace(offer, surge_replicas=0, waits=True)
        return {chosen.owner: offer}

    @property
    def _kept_on_demand(self) -> int:
        """On-demand nodes that stand only because the floor keeps their replicas from going."""
        kept = 0
        for target in self.targets:
            split = NodesOfSplit(self.floor_percent, self.plant.busy_on_demand - kept, self.nodes[1])
            placed = self.plant.placed(target.owner)
            emptied = choose_victims(placed, target.held, split).emptied_nodes
            on_spot = {replica.node for replica in placed if replica.is_on_spot}
            kept += sum(node not in on_spot for node in emptied)
        return kept

    def _has_room(self, counts: dict[int, ReplicaCounts], replicas: int, kind: CapacityType) -> bool:
        demands = [AcceleratorDemand(str(owner), each.spec, each.spec, 0, self.size) for owner, each in counts.items()]
        demands.append(AcceleratorDemand("more", replicas, 0, 0, self.size, capacity_type=kind))
        plan = plan_node_capacity(replace(self.parameters, slack_nodes=0), demands, self.plant.states())
        return by_kind({each.name: each.limit_nodes for each in plan.node_pools})[kind] > self.plant.count(kind)

    def _limit(
        self,
        decided: list[tuple[Target, ScalingDecision]],
        counts: dict[int, ReplicaCounts],
        standing: dict[int, int],
        moved_before: dict[int, tuple[int, CapacityType]],
    ) -> None:
        """Limits for what is planned, and for what is beside the plan to go on the other kind."""
        plant, parameters, demands = self.plant, self.parameters, []
        for target, decision in decided:
            spec, stands, moved = counts[target.owner].spec, standing[target.owner], target.moved
            planned = decision.desired_replicas - moved
            demands.append(AcceleratorDemand(str(target.owner), planned, spec - stands, 0, self.size))
            if moved or stands:
                to = target.moves_to if moved else moved_before[target.owner][1]
                demands.append(AcceleratorDemand("moved", moved, stands, 0, self.size, capacity_type=to))
                parameters = replace(parameters, slack_nodes=0) if to is SPOT else parameters
        plan = plan_node_capacity(parameters, demands, plant.states())
        limits = dict(by_kind({each.name: each.limit_nodes for each in plan.node_pools}))
        grown = [kind for kind in CapacityType if limits[kind] > plant.count(kind)]
        deleting = sum(plant.count(kind, deleting=True) for kind in CapacityType)
        ceiling = self.parameters.ceiling_nodes
        assert ceiling is None or not grown or sum(limits.values()) + deleting <= ceiling, "the ceiling"
        plant.limits = limits

    def _write(self, target: Target, counts: ReplicaCounts, desired: int) -> None:
        """The count, and who goes where it falls; some of them later."""
        plant, planned_before = self.plant, planned_replicas(target.history, counts.spec)
        serving_before = plant.target(None, target.owner).ready
        target.held = plant.shrink_by_choice(
            desired, self.floor_percent, on_demand_first=planned_before < counts.spec, owner=target.owner
        )
        if desired == planned_before and serving_before >= planned_before:
            assert plant.target(None, target.owner).ready >= planned_before, "a move takes nothing from the plan"
        written = desired + target.held
        plant.scale(None, written, self.size, target.owner)
        if written == counts.spec:
            return
        beside = target.history.replaced_replicas
        beside += min(target.held, max(0, counts.spec - planned_before - beside))
        target.history = with_rescale(
            target.history, POLICY.behavior, self.now_seconds, planned_before, written - beside
        )
        if target.held:
            target.history = replace(target.history, last_seen_replicas=written, replaced_of_seen=beside)


def a_life(chance: random.Random, targets: int) -> Nodes:
    """Loads, droughts and lost nodes by chance, and in the end two hours of calm in which spot can be had."""
    floor_percent, size = chance.choice([0, 20, 50, 70]), chance.choice([8, 4, 2])
    ceiling = chance.choice([None, None, targets + chance.randrange(1, 7)])
    pool = Nodes(chance.randrange(10**6), floor_percent, size, ceiling, targets)
    for _ in range(chance.randrange(2, 12)):
        event = chance.randrange(4)
        if event == 0:
            pool.plant.delete_a_node()
            pool.has_lost = True
        elif event == 1:
            pool.plant.buys[SPOT] = not pool.plant.buys[SPOT]
        else:
            for target in pool.targets:
                target.needed = chance.randrange(1, 11)
        for _ in range(chance.randrange(1, 30)):
            pool.tick()
    pool.plant.buys[SPOT] = True
    moves = pool.moves
    for _ in range(CALM_TICKS * targets):
        pool.tick()
    assert pool.moves - moves <= MOST_MOVES * targets, "it moves on, and not to and fro"
    return pool


def check_life(chance: random.Random, targets: int = 1) -> None:
    pool = a_life(chance, targets)
    before = (pool.nodes, pool.moves)
    for _ in range(40 * targets):
        pool.tick()
    assert (pool.nodes, pool.moves) == before, "it comes to rest"
    if pool.parameters.ceiling_nodes is not None:
        return
    assert [target.held for target in pool.targets] == [0] * targets, "nothing waits for ever"
    assert pool.is_kept, "the floor, whatever was lost"
    all_counts = [pool.counts(target) for target in pool.targets]
    for target, counts in zip(pool.targets, all_counts, strict=True):
        assert counts.ready == counts.spec
        assert target.needed <= counts.ready <= target.needed / 0.9, "as needed, or nearly so: the tolerance"
    if pool.size == 8:
        wanted = split_nodes(sum(counts.spec for counts in all_counts), pool.floor_percent)
        assert before[0] == wanted, "with the most spot that the floor allows"


@pytest.mark.parametrize("seed", range(4))
def test_no_life_of_a_target_on_both_kinds_breaks_a_law(seed: int) -> None:
    chance = random.Random(20261130 + seed)
    for _ in range(LIVES // 4):
        check_life(chance)


@pytest.mark.parametrize("targets", [2, 3])
def test_no_life_of_several_targets_on_the_same_nodes_breaks_a_law(targets: int) -> None:
    chance = random.Random(20261130 + targets)
    for _ in range(LIVES // 4):
        check_life(chance, targets)


@settings(max_examples=max(5, LIVES // 10))
@given(st.randoms(use_true_random=False))
def test_no_life_that_is_looked_for_breaks_a_law(chance: random.Random) -> None:
    check_life(chance)
