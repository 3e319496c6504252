"""Whether somebody other than us has just set a target's count by hand or from a repository.

The API server notes for each field manager which fields it owns and when it last wrote *any* of them, and for writes
through the scale subresource it notes no time at all. So the times say nothing of the count: `kubectl apply` of a new
image renews the time of an entry that has owned `replicas` since the target was made. What tells a foreign write is
that the count *changed* while we do not own it: a write that changes the count takes it from its former owner, so as
long as we own it nobody else has changed it.

After a count was zero, the server notes no owner for what is written through the scale subresource. Where nobody owns
the count, it is ours if it is the one that we have written.
"""

from __future__ import annotations

from dataclasses import dataclass

from autoscaler.kubernetes_gateway.watched_target import WatchedTarget

# A count that was taken out of an applied file falls back to its default, and then nobody owns it.
NO_OWNER = "unknown (nobody owns the count: it was left out of what was applied)"


@dataclass(frozen=True, slots=True)
class CountHistory:
    """What is remembered of a target's count between two looks at it.

    `settled_replicas` was last seen while nobody contested it (None: not known). `contested_replicas` is a foreign
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


def is_ours(target: WatchedTarget, replicas: int, own_manager: str, written: int | None) -> bool | None:
    """Whether the count that stands was written by us; None where nobody can tell.

    `written` is the count that we last wrote, None where that is not known.
    """
    if target.owners:
        return own_manager in target.owners
    return True if replicas == written and target.owners is not None else None


def judge_count(
    history: CountHistory,
    target: WatchedTarget,
    replicas: int,
    own_manager: str,
    window_seconds: float,
    now_seconds: float,
    written: int | None = None,
) -> tuple[ForeignWrite | None, CountHistory]:
    """A foreign write within the last `window_seconds`, or None; and what to remember for the next look.

    A target of which no count is known yet, and one that was made anew (its uid differs), is taken as it is.
    Afterwards every change of the count that is not ours counts from when it was seen. When the window has passed,
    or the count is back where it was, it is settled. `written` is the count that we last wrote, as far as is known.
    """
    settled = CountHistory(target.uid, settled_replicas=replicas)
    if target.owners is None or is_ours(target, replicas, own_manager, written):
        # Also where somebody else owns it with us: a manager that agrees with us is no rival.
        return None, settled
    if history.uid != target.uid or history.settled_replicas in (None, replicas):
        return None, settled
    is_known = history.contested_replicas == replicas
    since = history.contested_since_seconds if is_known else now_seconds
    if now_seconds - since >= window_seconds:
        return None, settled
    contested = CountHistory(target.uid, history.settled_replicas, replicas, since)
    manager = target.owners[-1] if target.owners else NO_OWNER
    return ForeignWrite(manager, replicas, max(0.0, now_seconds - since)), contested
