"""One line of a benchmark's table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured, and what it should be (empty where there is no goal), each with its unit."""

    name: str
    measured: str
    goal: str = ""
