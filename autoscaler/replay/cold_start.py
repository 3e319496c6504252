"""How long does a new replica take until it serves? Phases, each with a distribution of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

# The phases with these names happen once a node, where nodes are simulated: its launch, and the pull of the image.
NODE_PHASE, IMAGE_PHASE = "node", "image"


@dataclass(frozen=True, slots=True)
class ColdStartPhase:
    """One phase, log-normal: half of all starts take less than the median; `spread` is the logarithm's deviation."""

    name: str
    median_seconds: float
    spread: float

    @property
    def mean_seconds(self) -> float:
        """Of a log-normal duration: its median times exp(spread^2 / 2)."""
        return self.median_seconds * math.exp(self.spread**2 / 2)

    def at_its_mean(self) -> ColdStartPhase:
        """The same without chance."""
        return ColdStartPhase(self.name, self.mean_seconds, 0.0)


@dataclass(frozen=True, slots=True)
class ColdStart:
    """The phases of a start, one after the other."""

    phases: tuple[ColdStartPhase, ...]

    @property
    def mean_seconds(self) -> float:
        """The mean duration of a start."""
        return sum(phase.mean_seconds for phase in self.phases)

    def draw_seconds(self, generator: np.random.Generator) -> float:
        """The duration of one start; 0.0 without phases."""
        return sum(seconds for _, seconds in self.draw_phases(generator))

    def draw_phases(self, generator: np.random.Generator) -> tuple[tuple[str, float], ...]:
        """Name and duration of each phase of one start."""
        return tuple(
            (phase.name, float(generator.lognormal(np.log(phase.median_seconds), phase.spread)))
            for phase in self.phases
        )

    def at_its_mean(self) -> ColdStart:
        """The same phases without chance."""
        return ColdStart(tuple(phase.at_its_mean() for phase in self.phases))

    def without(self, name: str) -> ColdStart:
        """The same without the phase of that name."""
        return ColdStart(tuple(phase for phase in self.phases if phase.name != name))

    def phase(self, name: str) -> ColdStartPhase | None:
        """The phase of that name; None where there is none."""
        return next((phase for phase in self.phases if phase.name == name), None)


# A small model on a node that is there: pull of a streamed image, weights from a near store, compilation cached.
WARM_NODE = ColdStart(
    (ColdStartPhase("image", 15.0, 0.3), ColdStartPhase("weights", 35.0, 0.2), ColdStartPhase("engine", 40.0, 0.15))
)
# A large model on a node that has to be provisioned first.
NEW_NODE = ColdStart(
    (
        ColdStartPhase("node", 90.0, 0.25),
        ColdStartPhase("image", 40.0, 0.3),
        ColdStartPhase("weights", 60.0, 0.2),
        ColdStartPhase("engine", 70.0, 0.15),
    )
)
