"""Which replicas are known, for a pool of which nothing has been measured yet?

Fitted to published measurements; rounded, since a pool of its own differs from them by more. Sources: closed-loop and
open-loop rows of aiconfigurator's silicon tables (Apache-2.0) and of vLLM's own benchmarks.
"""

from __future__ import annotations

from policies.capacity.step_time import StepTimeLaw

MILLI, MICRO, NANO = 1e-3, 1e-6, 1e-9

KNOWN_LAWS: tuple[StepTimeLaw, ...] = (
    StepTimeLaw(
        name="8B on one fast accelerator",
        overhead=0.8 * MILLI,
        per_sequence=20 * MICRO,
        weights=6 * MILLI,
        per_prefill=24 * MICRO,
        per_decode=18 * MICRO,
        per_context=53 * NANO,
        per_pair=0.7 * NANO,
    ),
    StepTimeLaw(
        name="14B on one fast accelerator",
        overhead=1.1 * MILLI,
        per_sequence=20 * MICRO,
        weights=10.5 * MILLI,
        per_prefill=45 * MICRO,
        per_decode=34 * MICRO,
        per_context=70 * NANO,
        per_pair=1.3 * NANO,
    ),
    StepTimeLaw(
        name="70B on two accelerators",
        overhead=1.0 * MILLI,
        per_sequence=33 * MICRO,
        weights=16 * MILLI,
        per_prefill=86 * MICRO,
        per_decode=64 * MICRO,
        per_context=55 * NANO,
        per_pair=1.3 * NANO,
    ),
    StepTimeLaw(
        name="70B on eight accelerators",
        overhead=3.5 * MILLI,
        per_sequence=55 * MICRO,
        weights=6 * MILLI,
        per_prefill=36 * MICRO,
        per_decode=27 * MICRO,
        per_context=14 * NANO,
        per_pair=0.5 * NANO,
    ),
    StepTimeLaw(
        name="mixture of experts on eight accelerators",
        overhead=5 * MILLI,
        per_sequence=100 * MICRO,
        weights=4 * MILLI,
        per_prefill=37 * MICRO,
        per_decode=28 * MICRO,
        per_context=5 * NANO,
        per_pair=0.4 * NANO,
        experts=15 * MILLI,
        active_expert_share=1 / 32,
    ),
    StepTimeLaw(
        name="mixture of experts on two accelerators",
        overhead=2 * MILLI,
        per_sequence=50 * MICRO,
        weights=2 * MILLI,
        per_prefill=27 * MICRO,
        per_decode=20 * MICRO,
        per_context=3 * NANO,
        per_pair=0.3 * NANO,
        experts=7 * MILLI,
        active_expert_share=1 / 32,
    ),
)
