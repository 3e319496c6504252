"""What is remembered of a pool's capacity from one tick to the next, and over a restart?"""

from __future__ import annotations

from dataclasses import dataclass, field

from policies.capacity.change import Suspicion
from policies.capacity.fit import FittedLaw
from policies.capacity.learned_capacity import LearnedCapacity
from policies.capacity.samples import LoadSample


@dataclass(frozen=True, slots=True)
class SmoothedRates:
    """The mean ready replica over about the last minute and a half: tokens and requests per second."""

    at_seconds: float
    prompt_tokens: float
    generated_tokens: float
    requests: float
    context_tokens: float | None  # of one running sequence; None until one was seen


@dataclass(frozen=True, slots=True)
class CapacityMemory:
    """All that the next tick needs to know.

    `template` identifies what a replica is made of, None: not told. `begun_because` says why it began anew, "" for a
    pool that is new itself. The lower half is of the last minutes only and not kept over a restart.
    """

    begun_at_seconds: float
    begun_because: str = ""
    template: str | None = None
    trim: float = 1.0  # of the safe utilisation, by what was outside the objectives
    samples: tuple[LoadSample, ...] = ()

    capacity: LearnedCapacity | None = None
    laws: tuple[FittedLaw, ...] = ()  # those that may be the pool's, the likeliest first
    suspicion: Suspicion = field(default_factory=Suspicion)  # that the replicas are not what they were
    rates: SmoothedRates | None = None
    ready_replicas: int = 0
    steady_since_seconds: float | None = None  # since when no replica has become ready
    measured_at_seconds: float = 0.0  # of the latencies that were taken up last
