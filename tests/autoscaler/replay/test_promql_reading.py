from __future__ import annotations

import pytest

from autoscaler.replay.promql_reading import (
    Aggregation,
    Binary,
    Call,
    Expression,
    NotUnderstoodError,
    Number,
    Selector,
    metrics_of,
    read_promql,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1.5e2", Number(150.0), id="a number"),
        pytest.param("up", Selector("up"), id="a metric"),
        pytest.param(
            'vllm:x{a="b", c=~"d.*",}', Selector("vllm:x", (("a", "b"),)), id="matchers, of which equality is kept"
        ),
        pytest.param('{__name__="x"}', Selector("x", (("__name__", "x"),)), id="a metric named by a matcher"),
        pytest.param("rate(x[1m30s])", Call("rate", (Selector("x", (), 90.0),)), id="a range of minutes and seconds"),
        pytest.param("sum by (pod) (x)", Aggregation("sum", ("pod",), Selector("x")), id="by before"),
        pytest.param("sum(x) by (pod, le)", Aggregation("sum", ("pod", "le"), Selector("x")), id="by after"),
        pytest.param(
            "1 + 2 * 3", Binary("+", Number(1.0), Binary("*", Number(2.0), Number(3.0))), id="product before sum"
        ),
        pytest.param("8 - 2 - 1", Binary("-", Binary("-", Number(8.0), Number(2.0)), Number(1.0)), id="to the left"),
        pytest.param(
            "-x > bool 0", Binary(">", Binary("*", Number(-1.0), Selector("x")), Number(0.0), True), id="bool and minus"
        ),
        pytest.param(
            "x or vector(0) # a comment", Binary("or", Selector("x"), Call("vector", (Number(0.0),))), id="or nothing"
        ),
    ],
)
def test_an_expression_is_read_as_prometheus_reads_it(text: str, expected: Expression) -> None:
    assert read_promql(text) == expected


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param("sum(x", "ends too early", id="a parenthesis that is not closed"),
        pytest.param("rate(x)", "from 'rate' on (character 1)", id="a rate of no range"),
        pytest.param("x[5m]", None, id="a range of its own is read, but nothing can be made of it"),
        pytest.param("x offset 5m", "from 'offset' on (character 3)", id="offset"),
        pytest.param("max_over_time(rate(x[1m])[5m:])", "from '[' on (character 26)", id="a subquery"),
        pytest.param("predict_linear(x[1m], 60)", "from 'predict_linear' on (character 1)", id="another function"),
        pytest.param("x * on(pod) y", "from 'on' on (character 5)", id="matching on labels"),
        pytest.param("sum without (pod) (x)", "from 'without' on (character 5)", id="without"),
        pytest.param("x ; y", "from ';' on (character 3)", id="a character that is not PromQL"),
        pytest.param("", "ends too early", id="nothing at all"),
    ],
)
def test_what_is_beyond_the_reader_is_refused_with_its_place(text: str, place: str | None) -> None:
    if place is None:
        assert read_promql(text) == Selector("x", (), 300.0)
        return
    with pytest.raises(NotUnderstoodError) as caught:
        read_promql(text)
    assert place in str(caught.value)


def test_the_metrics_of_an_expression_are_named_in_order() -> None:
    text = "histogram_quantile(0.9, sum by (le) (rate(a_bucket[1m]))) + scalar(b) * c or vector(1)"
    assert list(metrics_of(read_promql(text))) == ["a_bucket", "b", "c"]
