"""When nodes may be taken away."""

from __future__ import annotations

import pytest

from policies.disruption_hold import HoldMemory, HoldStep, next_hold_step

NOTHING, CLOSE, REOPEN = HoldStep
MINUTE = 60.0


def steps_of(growing_minutes: set[int], minutes: int, *, held_since: float | None = None) -> dict[int, HoldStep]:
    """The steps that are carried out, minute by minute; each is seen at the next."""
    memory, held, found = HoldMemory(), held_since, {}
    for minute in range(minutes):
        now_seconds = minute * MINUTE
        step, memory = next_hold_step(minute in growing_minutes, held, memory, now_seconds)
        if step is not NOTHING:
            found[minute] = step
            held = now_seconds if step is CLOSE else None
    return found


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(steps_of(set(), 30), {}, id="a pool at rest"),
        pytest.param(steps_of({3}, 30), {3: CLOSE, 8: REOPEN}, id="closed with the growth, open five minutes after it"),
        pytest.param(steps_of({3, 6, 9}, 30), {3: CLOSE, 14: REOPEN}, id="growth in steps is one closing"),
        pytest.param(
            steps_of(set(range(3, 200)), 150),
            {3: CLOSE, 63: REOPEN, 123: CLOSE},
            id="a pool that always grows is open every other hour",
        ),
        pytest.param(steps_of(set(), 30, held_since=-600.0), {5: REOPEN}, id="taken over from one that has crashed"),
        pytest.param(steps_of({0, 2}, 30, held_since=-600.0), {7: REOPEN}, id="in the middle of a ramp"),
        pytest.param(steps_of(set(), 30, held_since=-7200.0), {0: REOPEN}, id="and hours after"),
    ],
)
def test_steps(steps: dict[int, HoldStep], expected: dict[int, HoldStep]) -> None:
    assert steps == expected
