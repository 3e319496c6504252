from __future__ import annotations

import pytest

from policies.victim_drain import DrainedVictim, next_drain_step

NOW = 1000.0
DEADLINE_SECONDS = 60.0


def victim(**more: object) -> DrainedVictim:
    return DrainedVictim("a", **({"is_ready": True, "can_be_drained": True} | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(victim(), "take_out", id="one that serves is taken out first"),
        pytest.param(victim(is_ready=False), "may_go", id="one that does not serve goes at once"),
        pytest.param(
            victim(is_ready=False, in_flight=(NOW - 5, 3.0)),
            "take_out",
            id="one that is not Ready and has requests ends them too",
        ),
        pytest.param(
            victim(is_ready=False, in_flight=(NOW - 60, 3.0)), "may_go", id="what a crashed one had is lost already"
        ),
        pytest.param(
            victim(is_ready=False, drained_at_seconds=NOW - 5, in_flight=(NOW - 5, 0.0)),
            "may_go",
            id="not Ready and without requests it goes at once",
        ),
        pytest.param(
            victim(drained_at_seconds=NOW - 30, in_flight=(NOW - 5, 3.0)),
            "waiting",
            id="one with requests is waited for",
        ),
        pytest.param(
            victim(drained_at_seconds=NOW - 30, in_flight=(NOW - 5, 0.0)), "may_go", id="one without requests goes"
        ),
        pytest.param(
            victim(drained_at_seconds=NOW - 30, in_flight=(NOW - 25, 0.0)),
            "waiting",
            id="a sample from before routers had heard says nothing",
        ),
        pytest.param(
            victim(drained_at_seconds=NOW - 30), "waiting", id="one of which nobody knows has until the deadline"
        ),
        pytest.param(
            victim(drained_at_seconds=NOW - 60, in_flight=(NOW, 3.0)),
            "cut_off",
            id="at the deadline it goes all the same",
        ),
        pytest.param(
            victim(drained_at_seconds=NOW - 90, in_flight=(NOW, 0.0)),
            "may_go",
            id="after the deadline without requests nothing is cut off",
        ),
        pytest.param(victim(can_be_drained=False), "undrained", id="one that nothing takes out goes as ever"),
    ],
)
def test_the_step_of_a_victim(given: DrainedVictim, expected: str) -> None:
    step = next_drain_step([given], DEADLINE_SECONDS, NOW)
    told = {name for name in ("take_out", "waiting", "may_go", "undrained", "cut_off") if getattr(step, name)}
    assert told == ({expected, "may_go"} if expected in ("undrained", "cut_off") else {expected})


def test_who_is_done_first_may_go_first() -> None:
    busy = DrainedVictim("busy", True, True, NOW - 30, (NOW, 2.0))
    idle = DrainedVictim("idle", True, True, NOW - 20, (NOW, 0.0))
    step = next_drain_step([busy, idle, victim()], DEADLINE_SECONDS, NOW)
    assert (step.may_go, step.waiting, step.take_out) == (("idle",), ("busy",), ("a",))
