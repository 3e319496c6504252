"""Replicas of which the truth is known, and what would be measured of them."""

from __future__ import annotations

from dataclasses import replace

from policies.capacity.fit import FittedLaw
from policies.capacity.known_laws import KNOWN_LAWS
from policies.capacity.samples import LoadSample
from policies.capacity.solve import TypicalRequest, load_of
from policies.capacity.step_time import StepTimeLaw

REQUEST = TypicalRequest(
    computed_prompt_tokens=2000.0, cached_prompt_tokens=0.0, generated_tokens=300.0, context_tokens=2300.0
)


def exactly(law: StepTimeLaw) -> FittedLaw:
    """A law that is known to be the pool's own."""
    nothing = (0.0, 0.0, 0.0)
    return FittedLaw(law, (1.0, 1.0, 1.0), (nothing, nothing, nothing), 0.0)


def a_law(speed: float = 1.0, prefill: float = 1.0, context: float = 1.0) -> StepTimeLaw:
    """A replica that is not among the known ones: times are multiplied."""
    known = KNOWN_LAWS[1]
    return replace(
        known,
        name="the truth",
        overhead=known.overhead * speed,
        weights=known.weights * speed,
        per_sequence=known.per_sequence * speed,
        per_decode=known.per_decode * speed * prefill,
        per_prefill=known.per_prefill * speed * prefill,
        per_pair=known.per_pair * speed * prefill,
        per_context=known.per_context * speed * context,
    )


def measured(law: StepTimeLaw, decoding: float, weight: float = 3.0, error: float = 0.0) -> LoadSample:
    """What is measured with so many sequences decoding, its time off by `error`."""
    seconds = exactly(law).seconds(load_of(decoding, REQUEST)) * (1.0 + error)
    generated = decoding / seconds
    return LoadSample(
        weight,
        seconds,
        generated,
        generated / REQUEST.generated_tokens,
        REQUEST.context_tokens,
        REQUEST.computed_prompt_tokens,
        REQUEST.cached_prompt_tokens,
    )
