"""Which ready replicas hold requests and finish none while others do? To the API server they are as good as any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a replica may do nothing, beyond the minute that is looked back on, until it stands still, and until it
    is wedged.
    """

    still_seconds: float
    wedged_seconds: float


# A long prompt that is alone on a replica takes less than two minutes until its first token.
TOKENS_BY_STEP = Patience(0.0, 60.0)
# Where tokens are counted when their request finishes, a few long answers look like nothing for minutes.
TOKENS_BY_REQUEST = Patience(300.0, 600.0)


@dataclass(frozen=True, slots=True)
class Progress:
    """One ready replica at one look, over the last minute: the fewest requests that ran or waited on it, and the tokens
    and requests that it finished per second (None: not known).

    `is_presumed` where it has requests and did nothing, and nobody looked for most of the minute: it may have stood
    still for hours before this process began.
    """

    name: str
    held_requests: float
    done_per_second: float | None
    is_presumed: bool = False

    @property
    def stands_still(self) -> bool:
        """Whether it has something to do and does nothing."""
        return self.held_requests > 0 and self.done_per_second == 0


@dataclass(frozen=True, slots=True)
class Standing:
    """Names of replicas: those that stand still while another one goes on, and those that have done so for long.

    What has piled up on the former is not the pool's load, so it is no reason to grow; the latter are wedged.
    """

    still: frozenset[str] = frozenset()
    wedged: frozenset[str] = frozenset()


_ALL_GO_ON = Standing()


class Standstills:
    """Remembers since when each replica of a pool does nothing."""

    __slots__ = ("_patience", "_presumed", "_since_seconds", "_wedged")

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._since_seconds: dict[str, float] = {}
        self._presumed: frozenset[str] = frozenset()
        self._wedged: frozenset[str] = frozenset()

    def look(self, replicas: Sequence[Progress], now_seconds: float) -> Standing:
        """Who stands still now. Where nobody goes on it is not the replica.

        One that is taken for wedged stays so until it is seen to go on, to have nothing to do, or not to be ready.
        One that is presumed to stand still is no reason to grow, until it goes on or has nothing to do; it is wedged
        only after having been watched.
        """
        before, remembered = self._since_seconds, self._wedged | self._presumed
        if not before and not remembered and not any(each.stands_still or each.is_presumed for each in replicas):
            return _ALL_GO_ON
        since = {each.name: before.get(each.name, now_seconds) for each in replicas if each.stands_still}
        others_go_on = any(replica.done_per_second for replica in replicas)
        still = {name for name, at in since.items() if now_seconds - at >= self._patience.still_seconds}
        wedged = {name for name in still if now_seconds - since[name] >= self._patience.wedged_seconds}
        presumed = {each.name for each in replicas if each.is_presumed}
        doubtful = presumed | {each.name for each in replicas if each.done_per_second is None}
        kept = doubtful | since.keys()
        self._since_seconds = since
        self._presumed = frozenset(presumed | (kept & self._presumed))
        still |= self._presumed
        self._wedged = frozenset((kept & self._wedged) | (wedged if others_go_on else set()))
        return Standing(frozenset(still) - self._wedged if others_go_on else frozenset(), self._wedged)
