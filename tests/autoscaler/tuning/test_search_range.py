"""What `--search PARAM=RANGE` may say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.tuning.dimension import Choice, NumberRange, Value
from autoscaler.tuning.search_range import read_range

WINDOW = "behavior.scaleDown.stabilizationWindowSeconds"
RATE = "signals.tokenRate.perReplicaPerSecond"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"{WINDOW}=60..900", NumberRange(WINDOW, 60, 900, True, True), id="a wide range is logarithmic"),
        pytest.param(f"{WINDOW}=60..300", NumberRange(WINDOW, 60, 300, True), id="a narrow one is linear"),
        pytest.param(f"{WINDOW}=0..900", NumberRange(WINDOW, 0, 900, True), id="a range from 0 has no logarithm"),
        pytest.param(f"{WINDOW}=60..900:linear", NumberRange(WINDOW, 60, 900, True), id="a scale may be asked for"),
        pytest.param(f"{RATE}=100k..0.3M", NumberRange(RATE, 1e5, 3e5), id="thousands and millions may be shortened"),
        pytest.param(f" {RATE} = 1e5..3e5:log ", NumberRange(RATE, 1e5, 3e5, False, True), id="spaces do no harm"),
        pytest.param(
            "behavior.scaleDown.policies[0].value=1..4",
            NumberRange("behavior.scaleDown.policies[0].value", 1, 4, True),
            id="an item of a list has its place in brackets",
        ),
        pytest.param("forecast.mode={Off,Active}", Choice("forecast.mode", ("Off", "Active")), id="words in braces"),
        pytest.param(
            "forecast.mode=Off, Active", Choice("forecast.mode", ("Off", "Active")), id="words without braces"
        ),
        pytest.param(
            "forecast.quantilePercent=null,50,90",
            Choice("forecast.quantilePercent", (None, 50.0, 90.0)),
            id="what may be left out may be null",
        ),
        pytest.param(
            "schedules[1].readyBy=true,false", Choice("schedules[1].readyBy", (True, False)), id="true and false"
        ),
    ],
)
def test_what_is_asked_for(text: str, expected: object) -> None:
    assert read_range(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(WINDOW, "PARAM=RANGE is wanted, such as", id="no range"),
        pytest.param(f"{WINDOW}=", "PARAM=RANGE is wanted, such as", id="an empty range"),
        pytest.param("=1..2", "PARAM=RANGE is wanted, such as", id="no parameter"),
        pytest.param(f"{WINDOW}=60..4000", "may be 0 to 3 600 (seconds), not 4000", id="beyond the parameter's bounds"),
        pytest.param(f"{RATE}=0..5", "may be above 0 to 1 000 000 000 000", id="at a bound that is not allowed"),
        pytest.param(f"{WINDOW}=900..60", "900 is not below 60", id="the wrong way round"),
        pytest.param(f"{WINDOW}=60..60", "60 is not below 60", id="a single value"),
        pytest.param(f"{WINDOW}=60.5..90", "is a whole number", id="a fraction of a whole number"),
        pytest.param(f"{WINDOW}=60..", "60.. is no range; LOW..HIGH is wanted", id="no upper end"),
        pytest.param(f"{WINDOW}=0..60:log", "begins above 0", id="a logarithm of nothing"),
        pytest.param(f"{WINDOW}=60", "a range LOW..HIGH or several values", id="one value is no search"),
        pytest.param(f"{WINDOW}={{60,90", "lacks a brace", id="what a shell left of braces"),
        pytest.param(f"{WINDOW}=60,soon", "may be 0 to 3 600 (seconds), not soon", id="a word for a number"),
        pytest.param(f"{WINDOW}=null,60", "not null", id="null where something must be"),
        pytest.param("forecast.mode=Off..Active", "is no number; give its values", id="a range of words"),
        pytest.param("forecast.mode=Off,Aktive", "may be Off or Advise or Active, not Aktive", id="an unknown word"),
        pytest.param("signals.tokenRate=1..2", f"is a block; name a field of it: {RATE}", id="a block"),
        pytest.param("behavior.scaleUp.policies=1..2", "is a list; name one of its items", id="a list"),
        pytest.param("scaleDown.stabilizationWindowSeconds=1..2", "did you mean behavior.scaleUp", id="half a path"),
        pytest.param("signals.tokenRat.perReplicaPerSecond=1..2", f"did you mean {RATE}?", id="a slip"),
        pytest.param("mode=DryRun,Scale", "is nothing that a replay can judge", id="who may write"),
        pytest.param("scaleTargetRef.name=a,b", "is nothing that a replay can judge", id="whose replicas"),
        pytest.param("signals.pendingRequests.query=a,b", "is no parameter", id="a text"),
    ],
)
def test_what_is_wrong_is_said_with_the_parameter_and_what_is_allowed(text: str, problem: str) -> None:
    found = read_range(text)
    assert isinstance(found, str)
    assert found.startswith(f"--search {text}: ")
    assert problem in found


@given(st.text(max_size=60))
def test_whatever_stands_behind_the_sign_is_a_dimension_or_a_sentence(asked: str) -> None:
    found = read_range(f"{WINDOW}={asked}")
    if isinstance(found, NumberRange):
        assert 0 <= found.low < found.high <= 3600
    elif isinstance(found, Choice):
        assert all(isinstance(value, int) and 0 <= value <= 3600 for value in found.values)
    else:
        assert found.startswith("--search")


@given(st.text(max_size=60))
def test_whatever_is_asked_for_never_raises(text: str) -> None:
    read_range(text)


@given(
    ends=st.tuples(st.floats(1e-6, 1e9), st.floats(1e-6, 1e9)).filter(lambda pair: pair[0] < pair[1]),
    share=st.floats(0, 1),
    is_whole=st.booleans(),
)
def test_a_rounded_value_stays_in_its_range_and_near_itself(
    ends: tuple[float, float], share: float, is_whole: bool
) -> None:
    low, high = (float(round(end)) for end in ends) if is_whole else ends
    if low >= high:
        return
    dimension = NumberRange("x", low, high, is_whole)
    value = low + share * (high - low)
    rounded: Value = dimension.rounded(value)
    assert dimension.holds(rounded)
    assert isinstance(rounded, int) is is_whole
    assert abs(float(str(rounded)) - value) <= max(0.005 * value, 0.5 * is_whole)


def test_a_range_that_is_shown_is_read_as_the_same_range() -> None:
    for text in (f"{WINDOW}=60..900:log", f"{RATE}=100000..300000", "forecast.mode=Off,Active"):
        found = read_range(text)
        assert not isinstance(found, str)
        assert found.shown() == text
        assert read_range(found.shown()) == found
