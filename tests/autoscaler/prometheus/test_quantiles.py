from __future__ import annotations

from math import inf, nan

import pytest

from autoscaler.prometheus.quantiles import Quantile, evenness_floor, quantile, share_above

VLLM_EDGES = (0.01, 0.025, 0.05, 0.075, 0.1, inf)


def all_at(value: float, edges: tuple[float, ...] = VLLM_EDGES, count: float = 100.0) -> dict[float, float]:
    return {edge: count if value <= edge else 0.0 for edge in edges}


@pytest.mark.parametrize(
    ("share", "buckets", "expected"),
    [
        pytest.param(0.5, all_at(0.008), Quantile(0.005, False), id="even gaps of 8 ms seem to have a median of 5 ms"),
        pytest.param(0.99, all_at(0.008), Quantile(0.0099, False), id="and a 99th percentile of 9.9 ms"),
        pytest.param(0.5, all_at(0.012), Quantile(0.0175, False), id="even gaps of 12 ms seem to be 17.5 ms"),
        pytest.param(0.99, all_at(0.012), Quantile(0.02485, False), id="and 24.85 ms at the end"),
        pytest.param(
            0.99,
            {0.02: 13.0, 0.04: 97.0, 0.06: 123.0, 0.08: 138.0, 0.1: 140.0},
            Quantile(0.086, False),
            id="a page without a bucket to infinity",
        ),
        pytest.param(0.5, {0.1: 2.0, 30.0: 2520.0, inf: 11008.0}, Quantile(30.0, True), id="beyond the last edge"),
        pytest.param(0.1, {0.1: 0.0, 30.0: 50.0, inf: 100.0}, Quantile(6.08, False), id="below it"),
        pytest.param(0.5, {}, None, id="no buckets"),
        pytest.param(0.5, {0.1: 0.0, inf: 0.0}, None, id="no observations"),
        pytest.param(0.5, {inf: 7.0}, None, id="only the bucket to infinity tells nothing"),
        pytest.param(0.5, {0.1: nan, inf: nan}, None, id="NaN is no observation"),
        pytest.param(0.9, {0.1: 10.0, 0.2: 8.0, inf: 10.0}, Quantile(0.09, False), id="a sinking count is repaired"),
    ],
)
def test_quantiles(share: float, buckets: dict[float, float], expected: Quantile | None) -> None:
    found = quantile(share, buckets)
    if expected is None or found is None:
        assert found == expected
    else:
        assert (found.value, found.is_censored) == (pytest.approx(expected.value), expected.is_censored)


@pytest.mark.parametrize(
    ("buckets", "floor"),
    [
        pytest.param(all_at(0.008), 1.98, id="a median below 10 ms"),
        pytest.param(all_at(0.012), 1.42, id="a median between 10 and 25 ms"),
        pytest.param(all_at(0.030), 1.327, id="a median between 25 and 50 ms"),
        pytest.param(all_at(5.0), None, id="a median beyond the last edge"),
        pytest.param({}, None, id="nothing"),
    ],
)
def test_the_ratio_that_even_values_would_show(buckets: dict[float, float], floor: float | None) -> None:
    found = evenness_floor(buckets)
    assert found == (None if floor is None else pytest.approx(floor, abs=0.005))


@pytest.mark.parametrize(
    ("limit", "buckets", "expected"),
    [
        pytest.param(0.05, {0.025: 90.0, 0.05: 98.0, 0.1: 100.0, inf: 100.0}, 0.02, id="an edge at the limit is exact"),
        pytest.param(0.075, {0.05: 98.0, 0.1: 100.0, inf: 100.0}, 0.01, id="inside a bucket it is interpolated"),
        pytest.param(0.2, {0.05: 98.0, 0.1: 99.0, inf: 100.0}, 0.01, id="of the open bucket all count"),
        pytest.param(0.2, {0.05: 98.0, 0.1: 100.0, inf: 100.0}, 0.0, id="nothing in the open bucket"),
        pytest.param(0.2, {0.05: 0.0, inf: 0.0}, None, id="no observation"),
        pytest.param(0.2, {}, None, id="no bucket"),
        pytest.param(0.05, {0.05: nan, 0.1: 5.0, inf: 10.0}, 0.75, id="a row that is no number is left out"),
    ],
)
def test_the_share_above_a_limit(limit: float, buckets: dict[float, float], expected: float | None) -> None:
    found = share_above(limit, buckets)
    assert found == (None if expected is None else pytest.approx(expected))
