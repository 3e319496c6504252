"""Marks the pods that a ReplicaSet is to take when its count falls, so that whole nodes become empty.

The annotation is the only word that a ReplicaSet hears on this. It is written where a count is about to fall and at no
other time; what an earlier choice left on pods that stay is taken away with the next one. Where the policy says so,
those that are to go are first taken out of the router, and the count falls by those that have ended their requests.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from autoscaler.actuators.joint_falls import ChosenFall, JointFalls
from autoscaler.actuators.pod_drain import PodDrain
from autoscaler.actuators.victim_marker import ChosenVictims, CountFall
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, NotFound
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.kubernetes_gateway.label_selector import LabelSelector
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.kubernetes_gateway.watched_objects import DELETION_COST_ANNOTATION as ANNOTATION
from autoscaler.kubernetes_gateway.watched_objects import SERVING_LABEL, WatchedPod
from autoscaler.observers.replica_places import InFlight, Places, ReplicaPlaces
from autoscaler.observers.workload import LivePod, ScaleTarget
from policies.reasons import Reason
from policies.victim_drain import DrainedVictim, DrainStep, next_drain_step
from policies.victims import emptied_nodes
from policies.wording import counted, joined

logger = logging.getLogger(__name__)

# Of ours the first to go has the lowest. Karpenter takes a pod of -134 217 728 and less for one that costs nothing.
HIGHEST_COST, LOWEST_COST = -1000, -1999
MOST_MARKED = HIGHEST_COST - LOWEST_COST


class PodDeletionCosts:
    """Chooses victims by what the watches say of pods and nodes, and marks them.

    `note_emptied` is told how many nodes a fall of a target's count leaves empty.
    """

    def __init__(
        self,
        connection: ApiConnection,
        cluster: WatchedCluster,
        fence: Callable[[], bool],
        in_flight: InFlight,
        drain: PodDrain,
        note_emptied: Callable[[ScaleTarget, int], None] = lambda *_: None,
    ) -> None:
        self._connection = connection
        self._cluster = cluster
        self._fence = fence
        self._in_flight = in_flight
        self._places = ReplicaPlaces(cluster, in_flight)
        self._drain = drain
        self._note_emptied = note_emptied
        self._falls = JointFalls()

    def mark(self, fall: CountFall) -> ChosenVictims:
        """Marks the pods that are to go by the smaller count. Where that fails they go as ever."""
        own, places = self._look(fall.target, fall.pods)
        if fall.drain_seconds is not None:
            return self._drained(fall, fall.drain_seconds, own, places)
        chosen = self._choose(fall, places, fall.from_replicas - fall.to_replicas)
        to_replicas = min(fall.from_replicas, fall.to_replicas + chosen.held)
        if chosen.held and to_replicas == fall.from_replicas:
            return ChosenVictims(to_replicas, (), 0, _held_note(chosen), Reason.ON_DEMAND_FLOOR)
        return self._marked(own, places, chosen.now.names, to_replicas, (_held_note(chosen),))

    def _drained(
        self, fall: CountFall, deadline_seconds: float, own: Sequence[WatchedPod], places: Places
    ) -> ChosenVictims:
        """Takes victims out of the router, and marks those that have ended their requests or whose time is over.

        The count that is given back is lower by these alone. Where pods may not be patched they go as ever.
        """
        from_replicas, to_replicas = fall.from_replicas, fall.to_replicas
        fewer = max(0, len(own) - to_replicas)
        chosen = self._choose(fall, places, fewer)
        names = chosen.now.names
        if _foreign(own) is not None:
            return self._marked(own, places, names, to_replicas)
        by_name = {pod.name: pod for pod in own}
        selector = self._selector_of(fall.target)
        victims = [self._victim(by_name[name], selector) for name in names]
        step = next_drain_step(victims, deadline_seconds, self._drain.now_seconds())
        taken = self._drain.take_out([by_name[name] for name in step.take_out])
        self._drain.want_out(by_name[name] for name in names)
        may_go = names if taken.is_refused else step.may_go
        count = min(from_replicas, to_replicas + fewer - len(may_go))
        notes = (*_drain_notes(step, deadline_seconds), _held_note(chosen), taken.problem)
        if count == from_replicas:
            reason = Reason.DRAINING if names else Reason.ON_DEMAND_FLOOR
            return ChosenVictims(count, (), 0, joined(notes), reason)
        return self._marked(own, places, may_go, count, notes)

    def note_written(self, target: ScaleTarget, victims: ChosenVictims) -> None:
        """The count was written by which these go."""
        self._note_emptied(target, victims.emptied_nodes)
        self._drain.let_go(target.namespace, victims.names)

    def _selector_of(self, target: ScaleTarget) -> LabelSelector | None:
        """By which a Deployment has its pods; None where that is not known."""
        deployments = self._cluster.target_kind("apps/v1", target.kind).objects
        found = None if deployments is None else deployments.get((target.namespace, target.name))
        return None if found is None or found.scale is None else found.scale.selector

    def _victim(self, pod: WatchedPod, selector: LabelSelector | None) -> DrainedVictim:
        # A pod that leaves its own Deployment's selector by the label would be replaced, and left to itself.
        stays = selector is not None and selector.matches({**pod.labels, SERVING_LABEL: "false"})
        is_labelled = pod.labels.get(SERVING_LABEL) == "true" or pod.drained_at_seconds is not None
        return DrainedVictim(
            name=pod.name,
            is_ready=pod.is_ready,
            can_be_drained=stays and is_labelled,
            drained_at_seconds=pod.drained_at_seconds,
            in_flight=self._in_flight(pod.namespace, pod.name),
        )

    def _look(self, target: ScaleTarget, pods: Sequence[LivePod]) -> tuple[list[WatchedPod], Places]:
        own = self._places.pods_of(target, pods)
        return own, self._places.places(own)

    def _choose(self, fall: CountFall, places: Places, fewer: int) -> ChosenFall:
        """The floor is held for what stands when the falls of all other targets are done too."""
        return self._falls.choose(fall.target, places, fewer, fall.split, self._drain.now_seconds())

    def _marked(
        self,
        own: Sequence[WatchedPod],
        places: Places,
        names: tuple[str, ...],
        to_replicas: int,
        notes: Sequence[str] = (),
    ) -> ChosenVictims:
        foreign = _foreign(own)
        if foreign is not None:
            problem = f"somebody else sets {ANNOTATION} ({foreign}): it is left alone"
            return ChosenVictims(to_replicas, (), 0, joined([*notes, problem]))
        problem = self._write(own, names)
        emptied = emptied_nodes(places.replicas, names)
        return ChosenVictims(to_replicas, names, len(emptied), joined([_saved(emptied), *notes, problem]))

    def _write(self, own: Sequence[WatchedPod], names: Sequence[str]) -> str:
        wanted = {name: str(LOWEST_COST + rank) for rank, name in enumerate(names[:MOST_MARKED])}
        for pod in own:
            cost = wanted.get(pod.name)
            if cost == pod.deletion_cost:
                continue
            if not self._fence():
                return "the pods were not marked: this process does not hold the lease"
            result = self._connection.patch(pod.path, {"metadata": {"annotations": {ANNOTATION: cost}}})
            if isinstance(result, ApiFailure) and not isinstance(result, NotFound):
                logger.warning("a pod was not marked", extra={"pod": pod.name, "problem": result.message})
                return f"the pods were not marked: {result.message}"
        return ""


def _foreign(own: Iterable[WatchedPod]) -> str | None:
    """A pod whose cost somebody else has set; None where there is none."""
    foreign = (pod.name for pod in own if pod.deletion_cost is not None and not _is_ours(pod.deletion_cost))
    return min(foreign, default=None)


def _saved(nodes: Sequence[str]) -> str:
    """The nodes that become empty, in words; what a fall of the count saves is nodes, not replicas."""
    named = f": {', '.join(nodes[:5])}{', ...' if len(nodes) > 5 else ''}" if nodes else ""
    return f"{counted(len(nodes), 'node')} will be empty{named}"


def _held_note(chosen: ChosenFall) -> str:
    if not chosen.held:
        return ""
    who = f"{counted(chosen.held, 'replica')} {'stays' if chosen.held == 1 else 'stay'}"
    return f"{who} for the floor on demand until fewer nodes stand on spot, or others serve on demand"


def _drain_notes(step: DrainStep, deadline_seconds: float) -> list[str]:
    """What is told of those that do not go yet, and of those that go otherwise than they should."""
    notes = []
    out = len(step.take_out) + len(step.waiting)
    if out:
        who = f"{counted(out, 'replica')} {'is' if out == 1 else 'are'}"
        notes.append(f"{who} out of the router until the requests there have ended, {deadline_seconds:g} s at most")
    if step.cut_off:
        notes.append(f"time was over for {counted(len(step.cut_off), 'replica')} before all requests had ended")
    if step.undrained:
        names = ", ".join(step.undrained[:5])
        notes.append(
            f'not drained, as the label {SERVING_LABEL}: "true" is missing or their Deployment selects by it: {names}'
        )
    return notes


def _is_ours(cost: str) -> bool:
    digits = cost.removeprefix("-")
    return digits.isdigit() and LOWEST_COST <= int(cost) <= HIGHEST_COST
