"""On demand is replaced by spot once that can be had: spot comes first, then as many on demand end their requests."""

from __future__ import annotations

from dataclasses import dataclass, field

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.victim_marker import ChosenVictims, CountFall
from autoscaler.controller.capacity_splits import SplitGround, SplitMemory, splits_of
from autoscaler.controller.replica_wish import ReplicaWish
from autoscaler.controller.split_actuation import write_split
from autoscaler.controller.victim_actuator import VictimActuator
from autoscaler.observers.workload import ScaleTarget, TargetPart
from policies.capacity_split import CapacityType, TargetCounts
from policies.reasons import Reason
from policies.victim_drain import DrainedVictim, next_drain_step

REPLICAS = 10
FLOOR_PERCENT = 20
TICK_SECONDS = 15.0
LOAD_SECONDS = 100.0
# What a replica that is out of the router still has to do.
REQUEST_SECONDS = 70.0
DEADLINE_SECONDS = 600.0
KEY = ("inference", "llama")


@dataclass
class Replica:
    ready_at: float
    drained_at: float | None = None

    def has_requests(self, now: float) -> bool:
        return self.drained_at is None or now - self.drained_at < REQUEST_SECONDS


@dataclass
class Fleet:
    """Two targets whose replicas load a model when they come, and end their requests before they go."""

    now: float = 0.0
    replicas: dict[CapacityType, dict[str, Replica]] = field(
        default_factory=lambda: {
            CapacityType.ON_DEMAND: {f"od-{i}": Replica(0.0) for i in range(REPLICAS)},
            CapacityType.SPOT: {},
        }
    )
    cut_off: list[str] = field(default_factory=list)
    chosen: tuple[str, ...] = ()

    def count(self, kind: CapacityType) -> int:
        return len(self.replicas[kind])

    def serving(self) -> int:
        """Those that a router sends requests to."""
        every = [each for kind in self.replicas.values() for each in kind.values()]
        return sum(each.ready_at <= self.now and each.drained_at is None for each in every)

    def parts(self) -> tuple[TargetPart, ...]:
        return tuple(self._part(kind) for kind in CapacityType)

    def _part(self, kind: CapacityType) -> TargetPart:
        members = self.replicas[kind].values()
        ready = sum(each.ready_at <= self.now for each in members)
        target = ScaleTarget(KEY[0], "Deployment", kind.value, "", "", "")
        return TargetPart(kind, target, TargetCounts(len(members), ready, len(members)))

    # --- a VictimMarker -------------------------------------------------------------------------------------------

    def mark(self, fall: CountFall) -> ChosenVictims:
        assert fall.drain_seconds is not None, "they are drained"
        members = self.replicas[CapacityType(fall.target.name)]
        in_order = sorted(members, key=lambda name: (members[name].drained_at is None, name))
        victims = [self._victim(name, members[name]) for name in in_order[: fall.from_replicas - fall.to_replicas]]
        step = next_drain_step(victims, fall.drain_seconds, self.now)
        for name in step.take_out:
            members[name].drained_at = self.now
        self.chosen = step.may_go
        return ChosenVictims(fall.from_replicas - len(step.may_go), step.may_go, 0, "")

    def _victim(self, name: str, replica: Replica) -> DrainedVictim:
        requests = float(replica.has_requests(self.now))
        return DrainedVictim(name, replica.ready_at <= self.now, True, replica.drained_at, (self.now, requests))

    def note_written(self, target: ScaleTarget, victims: ChosenVictims) -> None:
        pass

    # --- a ReplicaActuator ----------------------------------------------------------------------------------------

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        members = self.replicas[CapacityType(target.name)]
        for name in self.chosen[: from_replicas - to_replicas] if to_replicas < from_replicas else ():
            self.cut_off += [name] if members.pop(name).has_requests(self.now) else []
        for _ in range(from_replicas, to_replicas):
            members[f"{target.name}-{self.now:g}-{len(members)}"] = Replica(self.now + LOAD_SECONDS)
        return Actuated(Reason.SUCCEEDED_RESCALE, "")


def test_no_request_is_cut_off_and_capacity_never_falls_below_what_was_decided() -> None:
    fleet, memory = Fleet(), SplitMemory()
    actuator = VictimActuator(fleet, fleet, (), None, DEADLINE_SECONDS)
    grown: list[int] = []
    for _ in range(100):
        parts, on_spot = fleet.parts(), fleet.count(CapacityType.SPOT)
        current = memory.asked_for(KEY, parts)
        asked_for = sum(part.counts.spec for part in parts) if current is None else current
        assert asked_for == REPLICAS, "what is there twice for a while is not read back as a count"
        wish = ReplicaWish(KEY, "h100", 8, REPLICAS, REPLICAS, asked_for, 1, 0, will_be_written=True, parts=parts)
        ground = SplitGround(FLOOR_PERCENT, None, can_buy_spot=True, spot_nodes=on_spot)
        split = splits_of(ground, [wish])[KEY]
        memory.note(wish, split)
        write_split(parts, split, actuator)
        ready_on_spot = parts[1].counts.ready
        grown.append(fleet.count(CapacityType.SPOT) - on_spot)
        assert grown[-1] <= max(1, ready_on_spot), "by one, two, four"
        assert fleet.serving() >= REPLICAS
        fleet.now += TICK_SECONDS
        assert fleet.serving() >= REPLICAS
    assert (fleet.count(CapacityType.ON_DEMAND), fleet.count(CapacityType.SPOT)) == (2, 8)
    assert fleet.cut_off == []
    assert [step for step in grown if step] == [1, 1, 2, 4]
