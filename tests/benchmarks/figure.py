"""What is one line of a benchmark's table?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, and what it should be (empty where there is no goal), each with its unit."""

    name: str
    measured: str
    goal: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A named step of a tick: its share of the tick's time, and that time (waiting for others included)."""

    name: str
    share: float
    seconds: float
