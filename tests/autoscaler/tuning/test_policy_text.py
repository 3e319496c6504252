"""A user's file with a few values changed."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoscaler.tuning.policy_text import HEAD, Change, changed_text
from autoscaler.tuning.policy_variant import with_values

BEFORE = """\
# Ours.
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: tokenscaler.io/v1alpha1
kind: InferenceScaler
metadata: {name: chat}
spec:
  maxReplicas: 8 # no more nodes
  signals:
    tokensInFlight: {}
    waitingRequests: {perReplica: 4} # a queue
  behavior:
    scaleDown: {policies: [{type: Pods, value: 4, periodSeconds: 60}]}
  forecast:
"""


def body(text: str) -> str:
    return text.split("---\n")[1]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        pytest.param(
            Change("maxReplicas", "8", 9),
            "  maxReplicas: 9 # no more nodes; tuned: maxReplicas 8 -> 9",
            id="a comment that is there stays, and ours follows it",
        ),
        pytest.param(
            Change("signals.waitingRequests.perReplica", "4", 2.5),
            "    waitingRequests: {perReplica: 2.5} # a queue; tuned: waitingRequests.perReplica 4 -> 2.5",
            id="a value inside braces",
        ),
        pytest.param(
            Change("signals.tokensInFlight.perReplica", "not set", 40200.0),
            "    tokensInFlight: {perReplica: 40200} # tuned: tokensInFlight.perReplica not set -> 40200",
            id="a value in braces that were empty, whole without a fraction",
        ),
        pytest.param(
            Change("behavior.scaleDown.policies[0].value", "4", 7),
            "    scaleDown: {policies: [{type: Pods, value: 7, periodSeconds: 60}]} # tuned: policies[0].value 4 -> 7",
            id="an item of a list",
        ),
        pytest.param(
            Change("behavior.scaleDown.stabilizationWindowSeconds", "300 (default)", 120),
            "    scaleDown: {stabilizationWindowSeconds: 120, policies: [{type: Pods, value: 4, periodSeconds: 60}]} "
            "# tuned: scaleDown.stabilizationWindowSeconds 300 (default) -> 120",
            id="a value that was left out comes first in its braces",
        ),
        pytest.param(
            Change("behavior.scaleUp.tolerance", "0.05 (default)", 0.1),
            "    scaleUp: {tolerance: 0.1} # tuned: scaleUp.tolerance 0.05 (default) -> 0.1",
            id="a block that was left out has a line of its own",
        ),
        pytest.param(
            Change("forecast.mode", "Advise (default)", "Off"),
            "  forecast: {mode: 'Off'} # tuned: forecast.mode Advise (default) -> Off",
            id="a block of nothing is filled, and Off is no false",
        ),
        pytest.param(
            Change("schedules[0].minReplicas", "2", 3), None, id="an item that is not there cannot come to be changed"
        ),
    ],
)
def test_one_value(change: Change, line: str | None) -> None:
    if line is None:
        with pytest.raises(AssertionError):
            changed_text(BEFORE, 1, [change], [])
        return
    after = changed_text(BEFORE, 1, [change], ["Said."])
    assert after.startswith(f"{HEAD}\n# Said.\n\n# Ours.\n")
    assert line in body(after).splitlines()
    untouched = [each for each in BEFORE.splitlines() if each.split(":")[0] != line.split(":")[0]]
    assert [each for each in after.splitlines() if each in untouched] == untouched


def test_several_values_on_one_line_share_a_comment() -> None:
    changes = [
        Change("behavior.scaleDown.stabilizationWindowSeconds", "300 (default)", 90),
        Change("behavior.scaleDown.policies[0].value", "4", 7),
    ]
    (line,) = (each for each in changed_text(BEFORE, 1, changes, []).splitlines() if "scaleDown" in each)
    assert line.endswith("# tuned: scaleDown.stabilizationWindowSeconds 300 (default) -> 90, policies[0].value 4 -> 7")


def test_a_policy_that_is_tuned_again_says_only_the_last_time() -> None:
    once = changed_text(BEFORE, 1, [Change("maxReplicas", "8", 9)], ["First."])
    twice = changed_text(once, 1, [Change("maxReplicas", "9", 10)], ["Second."])
    assert "First." not in twice
    assert "  maxReplicas: 10 # no more nodes; tuned: maxReplicas 9 -> 10\n" in twice
    assert changed_text(twice, 1, [Change("maxReplicas", "10", 8)], ["Third."]).count(HEAD) == 1


def test_a_head_of_which_somebody_deleted_the_empty_line_takes_nothing_else_away() -> None:
    once = changed_text("spec: {a: 1}\n", 0, [Change("a", "1", 2)], [])
    again = changed_text(once.replace("\n\n", "\n"), 0, [Change("a", "2", 3)], [])
    assert yaml.safe_load(again) == {"spec": {"a": 3}}


def test_a_file_with_windows_lines_keeps_them() -> None:
    after = changed_text("spec:\r\n  a: 1\r\n  b: 2\r\n", 0, [Change("a", "1", 5)], [])
    assert after.endswith("spec:\r\n  a: 5 # tuned: a 1 -> 5\r\n  b: 2\r\n")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("spec:\n  a: &x 1 # c\n  b: *x\n", id="a value that is used twice"),
        pytest.param('spec: {a: 1, b: "two\n  lines"}\n', id="a line that ends in the middle of a text"),
    ],
)
def test_where_a_value_has_no_place_of_its_own_the_documents_are_written_anew(text: str) -> None:
    after = changed_text(text, 0, [Change("a", "1", 5)], [])
    assert yaml.safe_load(after) == {"spec": {**yaml.safe_load(text)["spec"], "a": 5}}
    assert "# The comments of the file are lost" in after
    assert "# a 1 -> 5" in after


NAMES = st.sampled_from(["a", "b", "c"])
LEAVES = st.one_of(st.none(), st.integers(-9, 9), st.sampled_from(["Off", "x: y", "# no", "two\nlines", ""]))
BLOCKS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.dictionaries(NAMES, inner, max_size=3), st.lists(inner, max_size=2)),
    max_leaves=8,
)
VALUES = st.one_of(st.integers(0, 10**6), st.floats(0.001, 1e9), st.booleans(), st.none(), st.just("Off"))


@settings(suppress_health_check=[HealthCheck.too_slow])  # on a busy machine drawing them may take its time
@given(
    spec=st.dictionaries(NAMES, BLOCKS, max_size=3),
    paths=st.lists(st.lists(NAMES, min_size=1, max_size=3).map(".".join), min_size=1, max_size=3, unique=True),
    value=VALUES,
    is_flow=st.sampled_from([True, False, None]),
)
def test_whatever_the_text_it_reads_as_the_changed_document(
    spec: dict[str, object], paths: list[str], value: int | float | str | None, is_flow: bool | None
) -> None:
    if any(one != other and other.startswith(f"{one}.") for one in paths for other in paths):
        return  # a value cannot be a block as well
    if not all(is_leaf_or_missing(spec, path.split(".")) for path in paths):
        return
    text = yaml.safe_dump({"spec": spec, "kind": "x"}, default_flow_style=is_flow)
    after = changed_text(text, 0, [Change(path, "?", value) for path in paths], ["Said."])
    assert yaml.safe_load(after) == with_values({"spec": spec, "kind": "x"}, dict.fromkeys(paths, value))


def is_leaf_or_missing(block: object, names: list[str]) -> bool:
    """Whether a parameter could stand there: schemas know what is a block and what a value."""
    for name in names:
        if block is None:
            return True
        if not isinstance(block, dict):
            return False
        if name not in block:
            return True
        block = block[name]
    return not isinstance(block, dict | list)
