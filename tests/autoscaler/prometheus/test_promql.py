from __future__ import annotations

import pytest

from autoscaler.prometheus.promql import is_self_contained, one_of, quoted


@pytest.mark.parametrize(
    ("values", "matcher"),
    [
        pytest.param(["a"], 'ns="a"', id="one value is matched exactly"),
        pytest.param(["b", "a"], 'ns=~"a|b"', id="several are alternatives in a fixed order"),
        pytest.param(["a.b", "c"], 'ns=~"a\\\\.b|c"', id="signs of regular expressions are taken literally"),
        pytest.param([f"namespace-{n}" for n in range(500)], 'ns!=""', id="very many are not listed"),
    ],
)
def test_matchers(values: list[str], matcher: str) -> None:
    assert one_of("ns", values) == matcher


def test_quotes_and_backslashes_are_escaped() -> None:
    assert quoted('a"b\\c\nd') == '"a\\"b\\\\c\\nd"'


@pytest.mark.parametrize(
    ("promql", "expected"),
    [
        pytest.param('sum(rate(x{a=")"}[5m]))', True, id="a bracket inside a string is text"),
        pytest.param("up # ) comment", True, id="a bracket inside a comment is text"),
        pytest.param("up # it's", True, id="an apostrophe inside a comment is text"),
        pytest.param("x{a=`\\`}", True, id="a backslash in raw quotes escapes nothing"),
        pytest.param('x{a="\\""}', True, id="an escaped quote does not end a string"),
        pytest.param("up) or (vector(1)", False, id="reaching out of the parentheses"),
        pytest.param("sum(up", False, id="an open bracket"),
        pytest.param("(up]", False, id="the wrong bracket closes"),
        pytest.param('x{a="', False, id="an open string"),
        pytest.param(" \n", False, id="nothing"),
    ],
)
def test_which_expressions_stay_inside_their_parentheses(promql: str, expected: bool) -> None:
    assert is_self_contained(promql) is expected
