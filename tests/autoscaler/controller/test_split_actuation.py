from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.controller.split_actuation import write_split
from autoscaler.observers.workload import ScaleTarget, TargetPart
from policies.capacity_split import CapacityType, ReplicaSplit, TargetCounts
from policies.reasons import Reason


@dataclass
class FakeScale:
    """An actuator that refuses targets by name."""

    refuses: str = ""
    written: list[tuple[str, int, int]] = field(default_factory=list)

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        if target.name == self.refuses:
            return ActuationFailed(Reason.CONFLICT, f"{target.name} refused")
        self.written.append((target.name, from_replicas, to_replicas))
        return Actuated(Reason.SUCCEEDED_RESCALE, f"{target.name}: {from_replicas} -> {to_replicas}")


def parts(on_demand: int, spot: int) -> tuple[TargetPart, ...]:
    return tuple(
        TargetPart(
            kind, ScaleTarget("inference", "Deployment", kind.value, "", "", ""), TargetCounts(count, count, count)
        )
        for kind, count in ((CapacityType.ON_DEMAND, on_demand), (CapacityType.SPOT, spot))
    )


@pytest.mark.parametrize(
    ("before", "after", "written"),
    [
        pytest.param((1, 4), (2, 8), [("on-demand", 1, 2), ("spot", 4, 8)], id="on demand grows first"),
        pytest.param((2, 8), (1, 4), [("spot", 8, 4), ("on-demand", 2, 1)], id="and shrinks last"),
        pytest.param((8, 2), (2, 8), [("spot", 2, 8), ("on-demand", 8, 2)], id="what grows comes before what shrinks"),
        pytest.param((2, 8), (6, 4), [("on-demand", 2, 6), ("spot", 8, 4)], id="also the other way round"),
        pytest.param((2, 8), (2, 8), [], id="what is as wanted is not written"),
    ],
)
def test_the_order_of_two_writes(
    before: tuple[int, int], after: tuple[int, int], written: list[tuple[str, int, int]]
) -> None:
    scale = FakeScale()
    result = write_split(parts(*before), ReplicaSplit(*after, Reason.SPLIT_KEPT, "as told"), scale)
    assert scale.written == written
    assert isinstance(result, Actuated)
    assert result.reason is (Reason.SUCCEEDED_RESCALE if written else Reason.READY_FOR_NEW_SCALE)
    assert "as told" in result.message


def test_where_the_first_write_fails_the_second_is_not_tried() -> None:
    scale = FakeScale(refuses="on-demand")
    result = write_split(parts(1, 4), ReplicaSplit(2, 8, Reason.SPLIT_KEPT, ""), scale)
    assert isinstance(result, ActuationFailed)
    assert (result.reason, result.message, scale.written) == (Reason.CONFLICT, "on-demand refused", [])


def test_without_a_split_nothing_is_written() -> None:
    scale = FakeScale()
    result = write_split(parts(1, 4), None, scale)
    assert isinstance(result, ActuationFailed)
    assert result.reason is Reason.ACCELERATORS_UNKNOWN
    assert scale.written == []


class DrainingScale(FakeScale):
    """An actuator that lets one replica less than is asked for go now, or none where there is but one."""

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        if to_replicas >= from_replicas:
            return super().scale(target, from_replicas, to_replicas)
        if from_replicas - to_replicas == 1:
            return Actuated(Reason.DRAINING, f"{target.name} drains", 1)
        super().scale(target, from_replicas, to_replicas + 1)
        return Actuated(Reason.SUCCEEDED_RESCALE, f"{target.name} drains", 1, emptied_nodes=2)


@pytest.mark.parametrize(
    ("before", "after", "reason", "kept"),
    [
        pytest.param((2, 4), (1, 3), Reason.DRAINING, 2, id="nothing is written yet, and both have more than decided"),
        pytest.param((1, 4), (2, 3), Reason.SUCCEEDED_RESCALE, 1, id="one has grown while the other drains"),
        pytest.param((2, 8), (2, 4), Reason.SUCCEEDED_RESCALE, 1, id="it has shrunk by those that are done"),
    ],
)
def test_what_is_kept_while_it_drains_is_told(
    before: tuple[int, int], after: tuple[int, int], reason: Reason, kept: int
) -> None:
    result = write_split(parts(*before), ReplicaSplit(*after, Reason.SPLIT_KEPT, ""), DrainingScale())
    assert isinstance(result, Actuated)
    assert (result.reason, result.kept_replicas) == (reason, kept)
    assert result.emptied_nodes == 2 * (after == (2, 4))
