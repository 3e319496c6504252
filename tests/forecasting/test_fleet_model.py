import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from forecasting.fleet_model import FleetModel
from forecasting.forecast import FleetPrediction
from forecasting.parameters import ForecastingParameters
from tests.forecasting.loads import diurnal, trace

HALF_HOURS = ForecastingParameters(bin_seconds=1800)
FIVE_MINUTES = ForecastingParameters()


def feed(loads: NDArray[np.float64], parameters: ForecastingParameters) -> list[FleetPrediction]:
    """What a fleet says after every row of loads (bins, pools)."""
    model = FleetModel(loads.shape[1], parameters)
    return [model.advance(row) for row in loads]


def assert_lawful(said: list[FleetPrediction], loads: NDArray[np.float64]) -> None:
    usable = np.where(np.isfinite(loads) & (loads >= 0), loads, 0.0)
    largest = np.maximum.accumulate(usable, axis=0)
    for origin, each in enumerate(said):
        for quantiles in (each.quantiles, each.window_quantiles):
            assert np.isfinite(quantiles).all()
            assert (quantiles >= 0).all()
            assert (np.diff(quantiles, axis=2) >= 0).all()
            assert (quantiles <= 3 * largest[origin][:, None, None] * (1 + 1e-9)).all()
        assert np.isfinite(each.point).all()
        assert (each.window_quantiles >= each.quantiles).all()
        assert (np.diff(each.window_quantiles, axis=1) >= 0).all()


loads_of_any_kind = st.one_of(
    st.just(float("nan")),
    st.just(0.0),
    st.floats(0, 1e3),
    st.floats(1e-12, 1e-6),
    st.floats(1e9, 1e15),
    st.just(float("inf")),
    st.floats(-1e6, -1e-6),
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    pattern=st.lists(loads_of_any_kind, min_size=1, max_size=60),
    quiet=st.floats(0, 1e6),
    days=st.integers(1, 4),
)
def test_whatever_comes_in_quantiles_are_lawful(pattern: list[float], quiet: float, days: int) -> None:
    loads = np.full(days * HALF_HOURS.day_bins, quiet)
    loads[-len(pattern) :] = pattern[: len(loads)]
    loads = np.concatenate([loads, np.full(HALF_HOURS.day_bins, quiet)])[:, None]
    assert_lawful(feed(loads, HALF_HOURS), loads)


def _edge_inputs() -> dict[str, NDArray[np.float64]]:
    random = np.random.default_rng(7)
    bins = 8 * 288
    noise = random.normal(0, 1, bins)
    return {
        "a constant": np.full(bins, 7.0),
        "zeros only": np.zeros(bins),
        "nothing at all": np.full(bins, np.nan),
        "a day missing, then 50": np.where(np.arange(bins) < 288, np.nan, 50 + noise),
        "three days of zeros, then 80": np.where(np.arange(bins) < 3 * 288, 0.0, 80 + 2 * noise),
        "every third bin missing": np.where(random.random(bins) < 0.3, np.nan, 100 + 5 * noise),
        "huge loads": 1e12 * (1 + 0.1 * noise),
        "tiny loads": 1e-9 * (1 + 0.1 * noise),
        "sparse counts": random.poisson(0.05, bins).astype(float),
        "zeros for good after a step": np.where(np.arange(bins) < 5 * 288, 100 + noise, 0.0),
        "a daily square wave": np.where(np.arange(bins) % 288 < 144, 0.0, 100 + noise),
    }


@pytest.fixture(scope="module")
def edges() -> tuple[dict[str, int], NDArray[np.float64], list[FleetPrediction]]:
    inputs = _edge_inputs()
    loads = np.stack(list(inputs.values()), axis=1)
    return {name: column for column, name in enumerate(inputs)}, loads, feed(loads, FIVE_MINUTES)


Edges = tuple[dict[str, int], NDArray[np.float64], list[FleetPrediction]]


def test_edge_inputs_give_lawful_quantiles(edges: Edges) -> None:
    _, loads, said = edges
    assert_lawful(said, loads)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        pytest.param("a constant", 6.99, 7.3, id="a constant is forecast as itself"),
        pytest.param("zeros only", 0.0, 0.0, id="zeros stay zero"),
        pytest.param("nothing at all", 0.0, 0.0, id="nothing seen is nothing said"),
        pytest.param("a day missing, then 50", 50.0, 54.0, id="a late start is no jump"),
        pytest.param("three days of zeros, then 80", 80.0, 92.0, id="an idle pool that wakes up"),
        pytest.param("zeros for good after a step", 0.0, 1.0, id="zeros that last are believed"),
        pytest.param("huge loads", 1.0e12, 1.4e12, id="huge units"),
        pytest.param("tiny loads", 1.0e-9, 1.4e-9, id="tiny units"),
    ],
)
def test_last_quantile_of_an_edge_input(edges: Edges, name: str, low: float, high: float) -> None:
    columns, _, said = edges
    quantile = said[-1].quantiles[columns[name], :, 1]
    assert (quantile >= low).all()
    assert (quantile <= high).all()


@pytest.mark.parametrize(
    ("name", "least"),
    [
        pytest.param("every third bin missing", 0.85, id="a third of the bins missing"),
        pytest.param("huge loads", 0.85, id="huge units"),
        pytest.param("tiny loads", 0.85, id="tiny units"),
        pytest.param("sparse counts", 0.88, id="sparse counts"),
        pytest.param("a daily square wave", 0.88, id="a daily square wave"),
    ],
)
def test_coverage_of_edge_inputs_in_the_last_four_days(edges: Edges, name: str, least: float) -> None:
    columns, loads, said = edges
    column, first = columns[name], 4 * 288
    for step in range(4):
        quantile = np.array([each.quantiles[column, step, 1] for each in said[first - step - 1 : -step - 1]])
        observed = loads[first:, column]
        known = np.isfinite(observed)
        assert (observed[known] <= quantile[known]).mean() >= least


def test_a_pool_does_not_depend_on_its_neighbours() -> None:
    loads = np.stack([diurnal(3), 1000 * diurnal(3, seed=1)], axis=1)
    together, alone = feed(loads, FIVE_MINUTES), feed(loads[:, :1], FIVE_MINUTES)
    np.testing.assert_allclose(together[-1].quantiles[0], alone[-1].quantiles[0], rtol=1e-6)


def test_only_the_past_is_used() -> None:
    loads = diurnal(3)[:, None]
    changed = loads.copy()
    changed[700:] = 5000.0
    before, after = feed(loads, FIVE_MINUTES), feed(changed, FIVE_MINUTES)
    for origin in range(700):
        np.testing.assert_array_equal(before[origin].quantiles, after[origin].quantiles)
        np.testing.assert_array_equal(before[origin].window_quantiles, after[origin].window_quantiles)


def test_the_window_quantile_covers_the_largest_bin_of_the_window() -> None:
    loads = diurnal(9, noise=8.0)[:, None]
    said = feed(loads, FIVE_MINUTES)
    origins = range(5 * 288, len(loads) - 4)
    covered = [loads[t + 1 : t + 5].max() <= said[t].window_quantiles[0, 3, 1] for t in origins]
    assert 0.87 <= np.mean(covered) <= 0.95
    # The last step alone is no bound for the largest: that is what windows are for.
    by_last_step = [loads[t + 1 : t + 5].max() <= said[t].quantiles[0, 3, 1] for t in origins]
    assert np.mean(by_last_step) < 0.85


EVENT_DAY, EVENT_BIN = 10, 84  # 14:00 of day 10 in 10-minute bins
TEN_MINUTES = ForecastingParameters(bin_seconds=600)


@pytest.fixture(scope="module")
def with_events() -> dict[str, tuple[NDArray[np.float64], list[FleetPrediction]]]:
    """One recorded pool with one event each, on its tenth day at 14:00."""
    # Recorded zeros would be events of their own, so they are made missing here.
    recorded = trace("llm_servegen_client_s31_10min", "input_tokens+output_tokens").values
    usual = np.where(recorded > 0, recorded, np.nan)
    start = EVENT_DAY * 144 + EVENT_BIN
    loads = {name: usual.copy() for name in ("none", "gap", "zeros", "double", "drop", "spike", "clock")}
    loads["gap"][start : start + 72] = np.nan
    loads["zeros"][start : start + 6] = 0.0
    loads["double"][start:] *= 2
    loads["drop"][start:] *= 0.4
    loads["spike"][start : start + 2] *= 5
    loads["clock"][start:-6] = usual[start + 6 :]
    said = feed(np.stack(list(loads.values()), axis=1), TEN_MINUTES)
    return {
        name: (values, [FleetPrediction(*(part[column : column + 1] for part in _parts(each))) for each in said])
        for column, (name, values) in enumerate(loads.items())
    }


def _parts(said: FleetPrediction) -> tuple[NDArray[np.float64], ...]:
    return said.point, said.quantiles, said.window_quantiles


@pytest.mark.parametrize(
    ("event", "first", "last", "least_coverage", "most_under"),
    [
        pytest.param("gap", 72, 84, 0.8, 0.04, id="after a 12-hour gap"),
        pytest.param("zeros", 6, 9, 0.66, 0.05, id="after an hour of zeros the forecast has waited"),
        pytest.param("zeros", 144, 150, 0.66, 0.03, id="the hour of zeros is no hole in tomorrow's forecast"),
        pytest.param("double", 6, 36, 0.65, 0.05, id="a doubled load, one to six hours later"),
        pytest.param("double", 36, 144, 0.83, 0.05, id="a doubled load, later that day"),
        pytest.param("drop", 6, 36, 0.9, 0.02, id="a load that dropped to 0.4"),
        pytest.param("clock", 0, 144, 0.85, 0.05, id="the clock moved by an hour"),
    ],
)
def test_events(
    with_events: dict[str, tuple[NDArray[np.float64], list[FleetPrediction]]],
    event: str,
    first: int,
    last: int,
    least_coverage: float,
    most_under: float,
) -> None:
    loads, said = with_events[event]
    start = EVENT_DAY * 144 + EVENT_BIN
    observed = loads[start + first : start + last]
    quantile = np.array([said[t - 2].quantiles[0, 1, 1] for t in range(start + first, start + last)])
    known = np.isfinite(observed)
    observed, quantile = observed[known], quantile[known]
    assert (observed <= quantile).mean() >= least_coverage
    assert np.maximum(observed - quantile, 0).sum() / observed.sum() <= most_under


def test_a_spike_does_not_return_tomorrow(
    with_events: dict[str, tuple[NDArray[np.float64], list[FleetPrediction]]],
) -> None:
    start = EVENT_DAY * 144 + EVENT_BIN + 144
    usual, spiked = (
        np.array([with_events[event][1][t - 2].quantiles[0, 1, 1] for t in range(start - 1, start + 4)])
        for event in ("none", "spike")
    )
    assert spiked.sum() <= 1.5 * usual.sum()
