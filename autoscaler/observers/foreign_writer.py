"""Whether somebody other than us has just set a target's count by hand or from a repository.

The API server notes for each field manager which fields it owns and when it last wrote *any* of them. So the time of
an entry that owns the count says nothing of the count: `kubectl apply` of a new image renews the time of an entry that
has owned `replicas` since the target was made. What tells a foreign write is that the count *changed* while we do not
own it: a write that changes the count takes it from its former owner, so as long as we own it nobody else has.
The one exception is an entry for the scale subresource, where there is nothing to write but the count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autoscaler.kubernetes_gateway.watched_target import ReplicasOwner, WatchedTarget

# The entry that a target's creator leaves may carry a time slightly after creationTimestamp.
CREATION_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class CountHistory:
    """What is remembered of a target's count between two looks at it.

    `settled_replicas` was last seen while nobody contested it (None: not yet). `contested_replicas` is a foreign
    count, `contested_since_seconds` when it was first seen.
    """

    uid: str
    settled_replicas: int | None = None
    contested_replicas: int | None = None
    contested_since_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ForeignWrite:
    """Who set the count to what, and how long ago by our own clock."""

    manager: str
    replicas: int
    age_seconds: float


def judge_count(
    history: CountHistory | None,
    target: WatchedTarget,
    replicas: int,
    own_manager: str,
    window_seconds: float,
    now_seconds: float,
) -> tuple[ForeignWrite | None, CountHistory]:
    """A foreign write within the last `window_seconds`, or None; and what to remember for the next look.

    A target that is seen for the first time (or is another object of the same name: its uid differs) is only judged
    by entries of the scale subresource, whose time is that of the count. Afterwards every change of the count that
    is not ours counts from when it was seen. When the window has passed the new count is taken as settled.
    """
    foreign = _foreign_owner(target.owners, own_manager)
    settled = CountHistory(target.uid, settled_replicas=replicas)
    if foreign is None:
        return None, settled
    if history is None or history.uid != target.uid:
        since = _first_sight(foreign, target.created_at_seconds)
    elif history.contested_replicas == replicas:
        since = history.contested_since_seconds
    elif history.settled_replicas == replicas:
        return None, settled
    else:
        since = now_seconds
    if since is None or now_seconds - since >= window_seconds:
        return None, settled
    contested = CountHistory(
        target.uid,
        settled_replicas=history.settled_replicas if history is not None and history.uid == target.uid else None,
        contested_replicas=replicas,
        contested_since_seconds=since,
    )
    return ForeignWrite(foreign.manager, replicas, max(0.0, now_seconds - since)), contested


def _foreign_owner(owners: Sequence[ReplicasOwner], own_manager: str) -> ReplicasOwner | None:
    """The owner of the count that wrote last, unless we (also) own it: a manager that agrees with us is no rival."""
    if not owners or any(owner.manager == own_manager for owner in owners):
        return None
    return max(owners, key=lambda owner: (owner.time_seconds or 0.0, owner.is_scale))


def _first_sight(owner: ReplicasOwner, created_at_seconds: float) -> float | None:
    """When the count was written, where that can be told of a target that was not seen before."""
    if not owner.is_scale or owner.time_seconds is None:
        return None
    return owner.time_seconds if owner.time_seconds > created_at_seconds + CREATION_SECONDS else None
