"""Replicas that hold requests and finish none."""

from __future__ import annotations

import pytest

from autoscaler.observers.standstills import (
    TOKENS_BY_REQUEST,
    TOKENS_BY_STEP,
    Patience,
    Progress,
    Standing,
    Standstills,
)

BUSY = (4.0, 50.0)  # requests that were held throughout, and what was done of them per second
STILL = (4.0, 0.0)
IDLE = (0.0, 0.0)
UNKNOWN = (0.0, None)
GONE = None

_Look = tuple[float, float | None] | tuple[float, float | None, bool] | None


PRESUMED = (0.0, 0.0, True)  # it has requests and did nothing, and nobody looked


def standing_after(*looks: tuple[_Look, _Look], patience: Patience = TOKENS_BY_STEP) -> str:
    """How the replicas a and b stand at the last of looks that lie half a minute apart."""
    standstills, standing, now_seconds = Standstills(patience), Standing(), 1000.0
    for look in looks:
        replicas = [Progress(name, *seen) for name, seen in zip("ab", look, strict=True) if seen is not None]
        standing = standstills.look(replicas, now_seconds)
        now_seconds += 30.0
    return " ".join([f"{name} still" for name in standing.still] + [f"{name} wedged" for name in standing.wedged])


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        pytest.param([(BUSY, BUSY)] * 4, "", id="both go on"),
        pytest.param([(STILL, BUSY)] * 2, "a still", id="a standstill may be a long prompt"),
        pytest.param([(STILL, BUSY)] * 3, "a wedged", id="but not one that lasts for a minute more"),
        pytest.param([(STILL, STILL)] * 9, "", id="where nobody goes on it is not the replica"),
        pytest.param([(STILL, IDLE)] * 9, "", id="an idle one proves nothing"),
        pytest.param([(IDLE, BUSY)] * 9, "", id="one that has nothing to do"),
        pytest.param([(UNKNOWN, BUSY)] * 9, "", id="one that is not seen"),
        pytest.param(
            [(STILL, BUSY), (BUSY, BUSY), (STILL, BUSY), (STILL, BUSY)], "a still", id="it counts from its last token"
        ),
        pytest.param([*[(STILL, BUSY)] * 3, (STILL, STILL)], "a wedged", id="it stays so, whatever the other does"),
        pytest.param([*[(STILL, BUSY)] * 3, (UNKNOWN, BUSY)], "a wedged", id="it stays so while it is not seen"),
        pytest.param([*[(STILL, BUSY)] * 3, (BUSY, BUSY)], "", id="it has gone on"),
        pytest.param([*[(STILL, BUSY)] * 3, (IDLE, BUSY)], "", id="its requests were given up"),
        pytest.param([*[(STILL, BUSY)] * 3, (GONE, BUSY), (STILL, BUSY)], "a still", id="a restart ends it"),
        pytest.param([(STILL, STILL)] * 3 + [(STILL, BUSY)], "a wedged", id="both stood still, and one recovered"),
    ],
)
def test_how_replicas_stand(looks: list[tuple[_Look, _Look]], expected: str) -> None:
    assert standing_after(*looks) == expected


@pytest.mark.parametrize(
    ("half_minutes", "expected"),
    [
        pytest.param(10, "", id="long answers may take five minutes"),
        pytest.param(11, "a still", id="then it is no reason to grow any more"),
        pytest.param(20, "a still", id="nor is it for ten"),
        pytest.param(21, "a wedged", id="after ten minutes it is wedged"),
    ],
)
def test_an_engine_that_counts_tokens_when_a_request_has_finished_gets_more_time(
    half_minutes: int, expected: str
) -> None:
    assert standing_after(*[(STILL, BUSY)] * half_minutes, patience=TOKENS_BY_REQUEST) == expected


@pytest.mark.parametrize("patience", [TOKENS_BY_STEP, TOKENS_BY_REQUEST])
@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        pytest.param([(PRESUMED, BUSY)], "a still", id="at the first look"),
        pytest.param([(PRESUMED, BUSY)] * 2 + [(STILL, BUSY)], "a still", id="as soon as it has been watched"),
        pytest.param([(PRESUMED, BUSY), (UNKNOWN, BUSY)], "a still", id="while it is not seen"),
        pytest.param([(PRESUMED, BUSY), (BUSY, BUSY)], "", id="until it goes on"),
        pytest.param([(PRESUMED, BUSY), (IDLE, BUSY)], "", id="until it has nothing to do"),
        pytest.param([(PRESUMED, IDLE)], "", id="not where nobody goes on"),
    ],
)
def test_what_is_presumed_to_stand_still_counts_for_no_growth_from_the_first_look_on(
    looks: list[tuple[_Look, _Look]], expected: str, patience: Patience
) -> None:
    """Whatever the engine: else a queue that nobody serves would order a fleet at each start of the controller."""
    assert standing_after(*looks, patience=patience) == expected
