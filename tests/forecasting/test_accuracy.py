import numpy as np
import pytest

from forecasting.accuracy import pinball_loss, quantile_accuracy, ratio


@pytest.mark.parametrize(
    ("observed", "quantile", "level", "loss"),
    [
        pytest.param(20.0, 10.0, 0.9, 9.0, id="10 missing at 0.9 cost 9"),
        pytest.param(10.0, 20.0, 0.9, 1.0, id="10 extra at 0.9 cost 1"),
        pytest.param(10.0, 10.0, 0.9, 0.0, id="a hit costs nothing"),
        pytest.param(10.0, 14.0, 0.5, 2.0, id="at the median both sides cost half"),
    ],
)
def test_pinball_loss(observed: float, quantile: float, level: float, loss: float) -> None:
    assert pinball_loss(np.array([observed]), np.array([quantile]), level)[0] == pytest.approx(loss)


def test_accuracy_counts_known_bins_only() -> None:
    observed, quantile = np.array([10.0, 20.0, np.nan, 10.0]), np.array([12.0, 15.0, 5.0, np.nan])
    scored = quantile_accuracy(observed, quantile, 0.9)
    assert scored.bins == 2
    assert scored.coverage == 0.5
    assert scored.pinball_loss == pytest.approx((0.2 + 4.5) / 2)
    assert scored.under_share == pytest.approx(5 / 30)
    assert scored.over_share == pytest.approx(2 / 30)
    assert scored.loss_share == pytest.approx(4.7 / 30)


def test_nothing_known_is_no_number() -> None:
    scored = quantile_accuracy(np.array([np.nan]), np.array([1.0]), 0.9)
    assert scored.bins == 0
    assert np.isnan(scored.pinball_loss)


@pytest.mark.parametrize(
    ("loss", "baseline", "expected"),
    [
        pytest.param(1.0, 2.0, 0.5, id="half the loss"),
        pytest.param(1.0, 0.0, None, id="a baseline that never errs gives no ratio"),
        pytest.param(float("nan"), 2.0, None, id="an unknown loss gives no ratio"),
    ],
)
def test_ratio(loss: float, baseline: float, expected: float | None) -> None:
    assert ratio(loss, baseline) == expected
