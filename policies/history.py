"""All that is remembered of a pool between two decisions; every field is bounded by the rules' windows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimedRecommendation:
    """A recommendation before stabilization, and when it was made (unix seconds)."""

    at_seconds: float
    replicas: int


@dataclass(frozen=True, slots=True)
class ScaleEvent:
    """A change of the count by us that was seen to have happened: positive up, negative down."""

    at_seconds: float
    change: int


@dataclass(frozen=True, slots=True)
class ScalingHistory:
    """What the next decision needs to know of the earlier ones.

    `complete_since_seconds` is the time since which every recommendation is in `recommendations`; a restart without
    a saved history sets it to the start. `None` fields: it has not happened yet.
    """

    complete_since_seconds: float
    recommendations: tuple[TimedRecommendation, ...] = ()
    scale_events: tuple[ScaleEvent, ...] = ()
    last_desired_replicas: int | None = None
    blind_since_seconds: float | None = None
    consecutive_good_readings: int = 0
    is_in_fallback: bool = False
    low_coverage_since_seconds: float | None = None
    last_low_coverage_step_seconds: float | None = None
    is_scaled_to_zero: bool = False
