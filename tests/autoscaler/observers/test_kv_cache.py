from __future__ import annotations

from math import nan

import pytest

from autoscaler.observers.kv_cache import KVCache, kv_cache_of
from autoscaler.observers.prometheus_rows import ONLY_ENGINE, EngineKey

FIRST: EngineKey = ("0", *ONLY_ENGINE[1:])
SECOND: EngineKey = ("1", *ONLY_ENGINE[1:])


@pytest.mark.parametrize(
    ("usages", "capacities", "used", "capacity", "expected"),
    [
        pytest.param([(FIRST, 0.5)], {FIRST: 1000.0}, None, None, KVCache(0.5, 500.0, 1000.0), id="one engine"),
        pytest.param(
            [(FIRST, 0.9), (SECOND, 0.1)],
            {FIRST: 10_000.0, SECOND: 30_000.0},
            None,
            None,
            KVCache(0.3, 12_000.0, 40_000.0),
            id="engines weigh by size: 90 % of 10,000 and 10 % of 30,000 are 30 %",
        ),
        pytest.param(
            [(FIRST, 0.5), (SECOND, 0.5)],
            {ONLY_ENGINE: 1000.0},
            None,
            None,
            KVCache(0.5, 1000.0, 2000.0),
            id="an older release has no engine label on its size: all have that size",
        ),
        pytest.param(
            [(FIRST, 0.2), (SECOND, 0.4)],
            {FIRST: 1000.0, SECOND: nan},
            None,
            None,
            KVCache(0.3, nan, nan),
            id="one size that cannot be told: the plain mean, and no tokens",
        ),
        pytest.param([(FIRST, 0.5)], {}, None, None, KVCache(0.5, nan, nan), id="sizes without this engine"),
        pytest.param([(FIRST, 0.5)], None, None, None, KVCache(0.5, None, None), id="no size is exposed"),
        pytest.param([(FIRST, 0.5)], None, 40.0, 80.0, KVCache(0.5, 40.0, 80.0), id="tokens that the engine counts"),
        pytest.param(
            [(FIRST, 0.9), (SECOND, 0.1)], None, 20.0, 80.0, KVCache(0.25, 20.0, 80.0), id="and several engines"
        ),
        pytest.param([], None, 40.0, 80.0, KVCache(None, 40.0, 80.0), id="no share"),
    ],
)
def test_the_kv_cache_of_a_pod(
    usages: list[tuple[EngineKey, float]],
    capacities: dict[EngineKey, float] | None,
    used: float | None,
    capacity: float | None,
    expected: KVCache,
) -> None:
    found = kv_cache_of(usages, capacities, used, capacity)
    for name in ("usage", "used_tokens", "capacity_tokens"):
        number = getattr(expected, name)
        assert getattr(found, name) == (None if number is None else pytest.approx(number, nan_ok=True)), name
