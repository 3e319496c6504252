"""What a pool has taught its controller, as `.status.learned` shows it to people and to the next controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field, ValidationError

from autoscaler.api.learned_capacity import LearnedCapacityStatus
from policies.bursts import KEPT_BURSTS, Burst
from policies.cold_start import KEPT_STARTS, ColdStart, ObservedStart
from policies.parameter_model import ParameterModel

# 50 starts of three phases, none of more than 99,999 seconds.
MAXIMUM_RECENT_CHARACTERS = 50 * 18
# 24 bursts: a time, at most five digits of seconds, three counts of at most six digits, and per mille.
MAXIMUM_BURSTS_CHARACTERS = 24 * 44
_UNKNOWN = "?"


class LearnedColdStart(ParameterModel):
    """How long the pool's replicas take from being asked for until they are Ready."""

    starts: int = Field(ge=0, description="How many starts it was learned from.")
    l50_seconds: int = Field(ge=0, description="Half of the starts take no longer.")
    l90_seconds: int = Field(ge=0, description="Nine starts in ten take no longer.")
    l95_seconds: int = Field(ge=0, description="Nineteen starts in twenty take no longer.")
    node_seconds: int | None = Field(default=None, ge=0, description="Median until a replica has its nodes.")
    image_seconds: int | None = Field(default=None, ge=0, description="Median from there until its containers run.")
    load_seconds: int | None = Field(default=None, ge=0, description="Median from there until it is Ready.")
    recent: str = Field(
        default="",
        max_length=MAXIMUM_RECENT_CHARACTERS,
        description="The last starts, oldest first, as node+image+load seconds; for the next controller.",
    )


class LearnedStatus(ParameterModel):
    """What is learned of the pool itself."""

    cold_start: LearnedColdStart | None = Field(default=None, description="Null until a start has been seen.")
    capacity: LearnedCapacityStatus | None = Field(default=None, description="Null for a policy without objectives.")
    bursts: str = Field(
        default="",
        max_length=MAXIMUM_BURSTS_CHARACTERS,
        description=(
            "The last day's bursts that were too short for new replicas, oldest first, as "
            "began+lasted+calm+needed+standing+outside: unix time, seconds, replicas that calm took before it and that "
            "it took, replicas that were ready for it, and the per mille of the requests that were outside their "
            "objectives in its worst two minutes (? where not measured)."
        ),
    )


def learned_cold_start(cold_start: ColdStart, starts: Iterable[ObservedStart]) -> LearnedColdStart:
    """The cold start as `.status` shows it, in whole seconds, with the starts that it was learned from."""
    return LearnedColdStart(
        starts=cold_start.starts,
        l50_seconds=round(cold_start.l50_seconds),
        l90_seconds=round(cold_start.l90_seconds),
        l95_seconds=round(cold_start.l95_seconds),
        node_seconds=_whole(cold_start.node_seconds),
        image_seconds=_whole(cold_start.image_seconds),
        load_seconds=_whole(cold_start.load_seconds),
        recent=" ".join(_written(start) for start in starts),
    )


def restore_starts(status: Mapping[str, Any]) -> tuple[ObservedStart, ...]:
    """The starts in a status document, oldest first; empty where there are none or they cannot be read."""
    learned = _read_learned(status)
    words = learned.cold_start.recent.split() if learned.cold_start is not None else []
    starts = [_read(word) for word in words[-KEPT_STARTS:]]
    return tuple(start for start in starts if start is not None)


def written_bursts(bursts: Iterable[Burst]) -> str:
    """The bursts as `.status` keeps them."""
    return " ".join(
        f"{burst.began_at_seconds:.0f}+{min(burst.lasted_seconds, 99_999):.0f}+{burst.calm_replicas}+"
        f"{burst.needed_replicas}+{burst.standing_replicas}+{_per_mille(burst.outside_share)}"
        for burst in bursts
    )


def restore_bursts(status: Mapping[str, Any]) -> tuple[Burst, ...]:
    """The bursts in a status document, oldest first; empty where there are none or they cannot be read."""
    words = _read_learned(status).bursts.split()[-KEPT_BURSTS:]
    return tuple(burst for burst in map(_read_burst, words) if burst is not None)


def _read_learned(status: Mapping[str, Any]) -> LearnedStatus:
    """What a status document says; nothing where it is none of this version's."""
    try:
        return LearnedStatus.model_validate(status.get("learned") or {})
    except ValidationError:
        return LearnedStatus()


def _written(start: ObservedStart) -> str:
    phases = (start.node_seconds, start.image_seconds, start.load_seconds)
    return "+".join(_UNKNOWN if phase is None else str(min(round(phase), 99_999)) for phase in phases)


def _read(word: str) -> ObservedStart | None:
    phases = word.split("+")
    if len(phases) != 3 or not all(phase == _UNKNOWN or _is_whole(phase) for phase in phases):
        return None
    node, image, load = (None if phase == _UNKNOWN else float(phase) for phase in phases)
    return ObservedStart(node, image, load)


def _read_burst(word: str) -> Burst | None:
    *numbers, outside = word.split("+")
    if len(numbers) != 5 or not all(map(_is_whole, numbers)) or not (outside == _UNKNOWN or _is_whole(outside)):
        return None
    began, lasted, calm, needed, standing = map(int, numbers)
    share = None if outside == _UNKNOWN else int(outside) / 1000.0
    return Burst(float(began), float(lasted), calm, needed, standing, share)


def _per_mille(share: float | None) -> str:
    return _UNKNOWN if share is None else f"{1000.0 * share:.0f}"


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _whole(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds)
