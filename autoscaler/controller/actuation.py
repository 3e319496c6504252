"""What comes of one decision: is it written, by whom, and what is to be remembered of that?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autoscaler.actuators.actuator import Actuated, ActuationFailed, ReplicaActuator
from autoscaler.actuators.victim_marker import VictimMarker
from autoscaler.api.inference_scaler import InferenceScaler, ScaleDownVictims
from autoscaler.controller.pool_report import Decided
from autoscaler.controller.split_actuation import write_split
from autoscaler.controller.victim_actuator import VictimActuator
from autoscaler.decision_record import ActuationOutcome
from autoscaler.observers.workload import CompetingWriter, Workload
from policies.bursts import NO_BURSTS, BurstMemory
from policies.capacity.memory import CapacityMemory
from policies.capacity_split import ReplicaSplit
from policies.decision import ScalingDecision
from policies.decision_input import DecisionInput
from policies.history import ScalingHistory, planned_replicas, with_rescale
from policies.parameters import Mode
from policies.reasons import Reason
from policies.victims import NodesOfSplit


@dataclass(frozen=True, slots=True)
class Considered:
    """A decision that nothing has come of yet."""

    scaler: InferenceScaler
    workload: Workload
    decision_input: DecisionInput
    decision: ScalingDecision
    capacity: CapacityMemory | None = None  # what is remembered of a replica's capacity
    bursts: BurstMemory = NO_BURSTS

    @property
    def rivals(self) -> tuple[CompetingWriter, ...]:
        """Who else steers the target. In mode ExternalMetric an autoscaler that reads our count is wanted there."""
        writers = self.workload.competing_writers
        if self.scaler.spec.mode is not Mode.EXTERNAL_METRIC:
            return writers
        return tuple(each for each in writers if each.reason is Reason.COMPETING_SCALER)

    @property
    def is_read_by_nobody(self) -> bool:
        """In mode ExternalMetric: no HorizontalPodAutoscaler has the target, so nobody acts on the count."""
        writers = self.workload.competing_writers
        is_external = self.scaler.spec.mode is Mode.EXTERNAL_METRIC
        return is_external and not any(each.reason is Reason.COMPETING_AUTOSCALER for each in writers)

    @property
    def will_be_written(self) -> bool:
        """Whether the target is to get the count, by us or by an HorizontalPodAutoscaler that reads it."""
        return self.scaler.spec.mode is not Mode.DRY_RUN and not self.rivals and not self.is_read_by_nobody


def carry_out(
    considered: Considered,
    actuators: Mapping[Mode, ReplicaActuator],
    split: ReplicaSplit | None = None,
    marker: VictimMarker | None = None,
    nodes: NodesOfSplit | None = None,
) -> Decided:
    """Writes the count by the actuator of the pool's mode, where it changes and nobody else steers the target.

    `split` says how two targets share it; without one a pool with two targets is left alone. `marker` marks those that
    are to go where the policy wants whole nodes emptied, with `nodes` in view where one target has both kinds of them.
    """
    actuator = actuators[considered.scaler.spec.mode]
    is_marked = considered.scaler.spec.scale_down_victims is ScaleDownVictims.WHOLE_NODES
    if marker is not None and is_marked and considered.will_be_written:
        workload = considered.workload
        # During a rollout nobody can say which pods a smaller count takes: there is more than one ReplicaSet.
        drain_seconds = None if workload.is_rolling_out else considered.scaler.spec.scale_down_drain_seconds
        nodes = None if workload.parts or nodes is None else _for_fall(nodes, considered)
        actuator = VictimActuator(actuator, marker, workload.pods, nodes, drain_seconds)
    outcome, next_history = _outcome(considered, actuator, split)
    return Decided(
        considered.scaler,
        considered.decision_input.now_seconds,
        considered.workload,
        considered.decision_input,
        considered.decision,
        outcome,
        next_history,
        considered.capacity,
        considered.bursts,
    )


def _for_fall(nodes: NodesOfSplit, considered: Considered) -> NodesOfSplit:
    """What stands beside the plan came on spot, or in place of what is gone: it is not what goes again."""
    current = considered.workload.replicas.spec
    is_beside_plan = planned_replicas(considered.decision_input.history, current) < current
    return replace(nodes, on_demand_first=is_beside_plan)


def _outcome(
    considered: Considered, actuator: ReplicaActuator, split: ReplicaSplit | None
) -> tuple[ActuationOutcome, ScalingHistory]:
    """What came of the decision, and the history with the rescale in it if there was one."""
    scaler, workload, history = considered.scaler, considered.workload, considered.decision.next_history
    current, desired = workload.replicas.spec, considered.decision.desired_replicas
    if considered.is_read_by_nobody:
        return ActuationOutcome(Reason.NO_AUTOSCALER, _nobody_reads(scaler)), history
    if considered.rivals:
        who = " and ".join(each.who for each in considered.rivals)
        steer = "steers" if len(considered.rivals) == 1 else "steer"
        unwritten = f", so {current} -> {desired} is not written" if desired != current else ""
        return ActuationOutcome(considered.rivals[0].reason, f"{who} {steer} it too{unwritten}"), history
    result: Actuated | ActuationFailed
    if workload.parts:
        result = write_split(workload.parts, split, actuator)
    elif desired == current:
        return ActuationOutcome(Reason.READY_FOR_NEW_SCALE, "the count is as wanted"), history
    else:
        result = actuator.scale(workload.target, current, desired)
    if isinstance(result, Actuated) and result.reason is Reason.SUCCEEDED_RESCALE and desired != current:
        history = _with_rescale(history, considered, result.kept_replicas)
    emptied_nodes = result.emptied_nodes if isinstance(result, Actuated) else 0
    return ActuationOutcome(result.reason, result.message, emptied_nodes), history


def _with_rescale(history: ScalingHistory, considered: Considered, kept_replicas: int) -> ScalingHistory:
    """The history after the count was written, `kept_replicas` of it only until their requests have ended.

    What stands beside the plan is no growth of the pool, and its end no shrinking: rate policies do not count it. Of
    those that are kept the ones that stood beside the plan before still do.
    """
    current, behavior = considered.workload.replicas.spec, considered.scaler.spec.parameters.behavior
    planned = planned_replicas(considered.decision_input.history, current)
    beside = history.replaced_replicas
    beside += min(kept_replicas, max(0, current - planned - beside))
    written = considered.decision.desired_replicas + kept_replicas
    history = with_rescale(history, behavior, considered.decision_input.now_seconds, planned, written - beside)
    if kept_replicas == 0:
        return history
    return replace(history, last_seen_replicas=written, replaced_of_seen=beside)


def _nobody_reads(scaler: InferenceScaler) -> str:
    reference = scaler.spec.first_target_ref
    return (
        f"no HorizontalPodAutoscaler has {reference.kind} {scaler.namespace}/{reference.name}: "
        f"`tokenscaler hpa {scaler.namespace}/{scaler.name}` prints one"
    )
