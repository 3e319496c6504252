"""What does the decision of one pool ask of its AcceleratorPool?"""

from __future__ import annotations

from dataclasses import dataclass, replace

from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler, ScaleDownVictims
from autoscaler.api.pod_requests import NO_REQUESTS, PodRequests
from autoscaler.controller.actuation import Considered
from autoscaler.observers.metrics import PoolKey
from autoscaler.observers.workload import TargetPart, Workload
from policies.accelerator_sharing import AcceleratorDemand
from policies.capacity_split import CapacityType, ReplicaSplit
from policies.decision_input import DecisionInput
from policies.history import ScalingHistory, replaced_within
from policies.parameters import Mode


@dataclass(frozen=True, slots=True)
class ReplicaWish:
    """What a tick came to for one InferenceScaler that refers to an AcceleratorPool.

    `wanted` is the count before accelerators limit it, `desired` after; `will_be_written` False: the count stays.
    `accelerators_per_replica` None: nobody knows. `parts` are its two targets, where it has two. `moved_replicas` of
    the desired ones are asked for beside the plan, to go on nodes of the kind `moves_to` in place of as many on the
    other; `empties_nodes` says whether it is chosen who goes when the count falls.
    """

    key: PoolKey
    accelerator_pool: str
    accelerators_per_replica: int | None
    wanted: int
    desired: int
    current: int
    minimum: int
    priority: int
    will_be_written: bool
    may_lower: bool = True
    parts: tuple[TargetPart, ...] = ()
    requests: PodRequests = NO_REQUESTS  # of the pod of a replica
    decision_input: DecisionInput | None = None  # from which what is to come can be read
    workload: Workload | None = None
    moved_replicas: int = 0
    moved_standing: int = 0  # of the current ones the same
    moves_to: CapacityType = CapacityType.SPOT
    empties_nodes: bool = False

    @property
    def is_moving(self) -> bool:
        """Whether something stands, or is asked for, beside the plan to go on nodes of the other kind."""
        return self.moved_replicas > 0 or self.moved_standing > 0


def may_refer(scaler: InferenceScaler | InvalidInferenceScaler) -> bool:
    """Whether a scaler refers to an AcceleratorPool, or may do so in a spec that cannot be read now."""
    return isinstance(scaler, InvalidInferenceScaler) or scaler.spec.accelerator_pool_ref is not None


def accelerator_pool_of(scaler: InferenceScaler | InvalidInferenceScaler) -> str | None:
    """The name of the AcceleratorPool that a scaler refers to; None where it refers to none, or cannot be read."""
    if isinstance(scaler, InvalidInferenceScaler) or scaler.spec.accelerator_pool_ref is None:
        return None
    return scaler.spec.accelerator_pool_ref.name


def wish_of(considered: Considered) -> ReplicaWish | None:
    """What a decision means for its AcceleratorPool; None where it has none."""
    pool = accelerator_pool_of(considered.scaler)
    if pool is None:
        return None
    decision = considered.decision
    history, next_history = considered.decision_input.history, decision.next_history
    moves = next_history.node_move if _moved(next_history) else history.node_move
    empties_nodes = considered.scaler.spec.scale_down_victims is ScaleDownVictims.WHOLE_NODES
    before_accelerators = [step.before for step in decision.steps if step.name == "accelerators"]
    return ReplicaWish(
        key=considered.scaler.key,
        accelerator_pool=pool,
        accelerators_per_replica=considered.workload.accelerators_per_replica,
        wanted=before_accelerators[0] if before_accelerators else decision.desired_replicas,
        desired=decision.desired_replicas,
        current=considered.workload.replicas.spec,
        minimum=considered.scaler.spec.min_replicas,
        priority=considered.scaler.spec.priority,
        will_be_written=considered.will_be_written,
        may_lower=considered.scaler.spec.mode is not Mode.SCALE_UP_ONLY,
        parts=considered.workload.parts,
        requests=considered.workload.requests,
        decision_input=considered.decision_input,
        workload=considered.workload,
        moved_replicas=_moved(next_history),
        moved_standing=min(_moved(history), replaced_within(history, considered.workload.replicas.spec)),
        moves_to=CapacityType.SPOT if moves is None else moves.to,
        empties_nodes=empties_nodes and considered.workload.target.kind == "Deployment",
    )


def _moved(history: ScalingHistory) -> int:
    return 0 if history.node_move is None else history.node_move.moved_replicas


def share_demand(wish: ReplicaWish) -> AcceleratorDemand:
    """What it wants of the accelerators that all share, before any share limits it."""
    return replace(demand_of(wish), wanted_replicas=wish.wanted if wish.will_be_written else wish.current)


def node_demands(wish: ReplicaWish, split: ReplicaSplit | None) -> list[AcceleratorDemand]:
    """The places on nodes that it needs: one demand, or one for each of its targets, tied to their kind of node.

    Without a split (none is known) two targets stay as they are. What moves to the other kind has its place there.
    """
    if not wish.parts:
        whole = demand_of(wish)
        if not wish.is_moving:
            return [whole]
        planned = replace(
            whole,
            wanted_replicas=whole.wanted_replicas - wish.moved_replicas,
            current_replicas=whole.current_replicas - wish.moved_standing,
        )
        moved = replace(
            whole,
            scaler=f"{whole.scaler} to {wish.moves_to}",
            wanted_replicas=wish.moved_replicas,
            current_replicas=wish.moved_standing,
            minimum_replicas=0,
            capacity_type=wish.moves_to,
        )
        return [planned, moved]
    counts = {part.capacity_type: part.counts.spec for part in wish.parts}
    wanted = dict(counts)
    if split is not None and wish.will_be_written:
        wanted = {CapacityType.ON_DEMAND: split.on_demand, CapacityType.SPOT: split.spot}
    whole = demand_of(wish)
    return [
        replace(
            whole,
            scaler=f"{whole.scaler} {kind}",
            wanted_replicas=wanted[kind],
            current_replicas=counts[kind],
            capacity_type=kind,
        )
        for kind in counts
    ]


def demand_of(wish: ReplicaWish) -> AcceleratorDemand:
    """Its replicas wherever they run. The accelerators of a replica must be known."""
    assert wish.accelerators_per_replica is not None
    return AcceleratorDemand(
        scaler="/".join(wish.key),
        wanted_replicas=wish.desired if wish.will_be_written else wish.current,
        current_replicas=wish.current,
        minimum_replicas=wish.minimum,
        accelerators_per_replica=wish.accelerators_per_replica,
        priority=wish.priority,
        cpu_millis=wish.requests.cpu_millis,
        memory_bytes=wish.requests.memory_bytes,
    )
