"""How did the launches of nodes end? Kept of NodeClaims, and of the events about those that Karpenter gave up.

A NodeClaim for which there is no capacity is deleted within a second or two, and only an event says why. So what every
NodeClaim asked for is noted when it is first seen, and is looked up when its event comes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from autoscaler.api.document import rfc3339_seconds
from autoscaler.api.node_template import NODE_POOL_LABEL
from autoscaler.kubernetes_gateway.watched_kind import WatchedKind
from autoscaler.kubernetes_gateway.watched_objects import (
    CAPACITY_TYPE_LABEL,
    Document,
    limited_resources,
    whole_capacity,
)
from policies.launch_breaker import LaunchResult, Offering, classify_failure

INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
ZONE_LABEL = "topology.kubernetes.io/zone"
ANY = "any"
MOST_REMEMBERED = 4096
# A NodeClaim may leave dozens of types open; a breaker for each of the first ones is enough to know the pool by.
MOST_OFFERINGS = 32
# Why Karpenter gave a NodeClaim up for want of capacity; who sees other events of NodeClaims sees hundreds a minute.
GIVEN_UP = "InsufficientCapacityError"
GIVEN_UP_SELECTION = {"fieldSelector": f"involvedObject.kind=NodeClaim,reason={GIVEN_UP}"}
# Conditions begin as Unknown with this reason: nobody has tried yet.
NOT_TRIED = "AwaitingReconciliation"


@dataclass(frozen=True, slots=True)
class WatchedNodeClaim:
    """A NodeClaim that has had an answer: launched (`reason` empty), or refused so far. `node` None: not there yet."""

    name: str
    node_pool: str
    offerings: tuple[Offering, ...]
    answered_at_seconds: float
    reason: str = ""
    message: str = ""
    capacity: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    is_deleting: bool = False
    node: str | None = None


@dataclass(frozen=True, slots=True)
class GivenUp:
    """An event about a NodeClaim that was given up."""

    node_claim: str
    at_seconds: float
    reason: str
    message: str


class LaunchNotes:
    """Reduces NodeClaims and their events, and tells results by NodePool; used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: OrderedDict[str, tuple[str, tuple[Offering, ...]]] = OrderedDict()

    def reduce_node_claim(self, document: Document) -> WatchedNodeClaim | None:
        """None for one that nobody has answered yet, but what it asks for is noted."""
        metadata = document["metadata"]
        labels = metadata.get("labels") or {}
        name, node_pool = metadata["name"], labels.get(NODE_POOL_LABEL)
        if node_pool is None:
            return None
        asked = _offerings(labels, (document.get("spec") or {}).get("requirements") or ())
        with self._lock:
            self._asked[name] = (node_pool, asked)
            self._asked.move_to_end(name)
            while len(self._asked) > MOST_REMEMBERED:
                self._asked.popitem(last=False)
        conditions: Sequence[Document] = (document.get("status") or {}).get("conditions") or ()
        launched: Document = next((each for each in conditions if each.get("type") == "Launched"), {})
        answered_at_seconds = rfc3339_seconds(launched.get("lastTransitionTime"))
        if answered_at_seconds is None:
            return None
        if launched.get("status") == "True":
            status = document["status"]
            return WatchedNodeClaim(
                name,
                node_pool,
                asked,
                answered_at_seconds,
                capacity=whole_capacity(status),
                allocatable=limited_resources(status.get("allocatable") or {}),
                is_deleting=metadata.get("deletionTimestamp") is not None,
                node=status.get("nodeName"),
            )
        reason = str(launched.get("reason") or "")
        if reason in ("", NOT_TRIED) or metadata.get("deletionTimestamp") is not None:
            return None
        return WatchedNodeClaim(name, node_pool, asked, answered_at_seconds, reason, str(launched.get("message") or ""))

    def results(
        self, node_claims: Iterable[WatchedNodeClaim], given_up: Iterable[GivenUp]
    ) -> Mapping[str, tuple[LaunchResult, ...]]:
        """How launches ended, by NodePool, where one failed.

        Of a NodeClaim that was never seen only the NodePool's name can be told.
        """
        found: dict[str, list[LaunchResult]] = defaultdict(list)
        claims = tuple(node_claims)
        for claim in claims:
            if claim.reason:
                failure = classify_failure(claim.reason, claim.message)
                message = f"{claim.reason}: {claim.message}"
                result = LaunchResult(claim.answered_at_seconds, claim.offerings, failure, message, is_standing=True)
                found[claim.node_pool].append(result)
        for event in given_up:
            with self._lock:
                asked = self._asked.get(event.node_claim)
            node_pool, offerings = asked or (event.node_claim.rpartition("-")[0], (Offering(ANY, ANY, ANY),))
            failure = classify_failure(event.reason, event.message)
            found[node_pool].append(LaunchResult(event.at_seconds, offerings, failure, event.message))
        for claim in claims:
            if not claim.reason and claim.node_pool in found:
                found[claim.node_pool].append(LaunchResult(claim.answered_at_seconds, claim.offerings))
        return {name: tuple(results) for name, results in found.items()}


def read_node_claims(node_claims: WatchedKind[WatchedNodeClaim] | None) -> tuple[WatchedNodeClaim, ...] | None:
    """The NodeClaims as watched; None where they are not, or not yet, or no more."""
    if node_claims is None or not node_claims.has_synced or node_claims.is_absent or node_claims.problems:
        return None
    return node_claims.all()


def reduce_given_up(document: Document) -> GivenUp | None:
    """An event of core/v1. None where it is not of a NodeClaim that was given up."""
    about = document.get("involvedObject") or {}
    if about.get("kind") != "NodeClaim" or document.get("reason") != GIVEN_UP:
        return None
    moments = (document.get("lastTimestamp"), document.get("eventTime"), document["metadata"].get("creationTimestamp"))
    at_seconds = next((found for each in moments if (found := rfc3339_seconds(each)) is not None), 0.0)
    return GivenUp(str(about.get("name")), at_seconds, GIVEN_UP, str(document.get("message") or ""))


def _offerings(labels: Mapping[str, Any], requirements: Iterable[Document]) -> tuple[Offering, ...]:
    """What a NodeClaim has become, by its labels, else all that its requirements allow."""
    allowed = {
        str(each.get("key")): [str(value) for value in each.get("values") or ()]
        for each in requirements
        if each.get("operator") == "In"
    }
    choices = [
        [str(labels[key])] if key in labels else sorted(allowed.get(key, ())) or [ANY]
        for key in (INSTANCE_TYPE_LABEL, ZONE_LABEL, CAPACITY_TYPE_LABEL)
    ]
    return tuple(Offering(*choice) for choice, _ in zip(product(*choices), range(MOST_OFFERINGS), strict=False))
