"""What is a limit? A pure function from the situation and the count so far to the count that it lets through."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from policies.reasons import Reason

if TYPE_CHECKING:
    from policies.history import MoveMemory
    from policies.situation import Situation  # it holds the bounds and parameters that limits declare


class Limited(NamedTuple):
    """What a limit makes of a count, why, and a sentence. `NotLimited` where it had nothing to do.

    `node_move` is what the next decision is to remember of a move to other nodes; None: nothing.
    """

    replicas: int
    reason: Reason
    message: str
    node_move: MoveMemory | None = None


class Constraint(Protocol):
    """One limit; `policies/decision.py` has the tables of them in their order."""

    def __call__(self, situation: Situation, replicas: int) -> Limited:
        """The count that is let through, which may be the one that came."""
        ...
