"""Which replicas go where the counts of several targets fall side by side, so that the floor holds in all that stays?

Each choice leaves out the nodes that others are about to empty. What goes on demand waits for spot nodes that the floor
does not allow without it: emptied ones go soon, and what serves on others moves on demand.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from autoscaler.observers.replica_places import Places
from autoscaler.observers.workload import ScaleTarget
from policies.victims import NodesOfSplit, Victims, choose_victims, going_now

# A choice is repeated every tick while it waits for requests to end, and by then seen in the pods once it is written.
CLAIMED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ChosenFall:
    """Who is to go, and who of them may go by now."""

    wanted: Victims
    now: Victims

    @property
    def held(self) -> int:
        """How many stay for the floor for a while."""
        return len(self.wanted.names) - len(self.now.names)


@dataclass(frozen=True, slots=True)
class _Claim:
    """The nodes that one target's fall is about to empty, and when it was last asked for."""

    at_seconds: float
    nodes: frozenset[str]


class JointFalls:
    """Remembers for a minute which nodes each target's fall is about to empty. Safe to be asked side by side."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str, str], _Claim] = {}
        self._choosing = threading.Lock()

    def choose(
        self, target: ScaleTarget, places: Places, fewer: int, split: NodesOfSplit | None, now_seconds: float
    ) -> ChosenFall:
        """So many victims of a target. Without a split all of them may go."""
        key = (target.namespace, target.kind, target.name)
        with self._choosing:
            others = {
                other: claim
                for other, claim in self._claims.items()
                if other != key and now_seconds - claim.at_seconds < CLAIMED_SECONDS
            }
            if split is not None:
                claimed = frozenset(node for each in others.values() for node in each.nodes)
                going = places.empty_on_demand + len(places.filled_on_demand & claimed)
                split = replace(split, on_demand=split.on_demand - going)
            wanted = choose_victims(places.replicas, fewer, split)
            now = going_now(places.replicas, wanted, split)
            self._claims = others | {key: _Claim(now_seconds, frozenset(wanted.emptied_nodes))}
        return ChosenFall(wanted, now)
