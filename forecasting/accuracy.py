"""How good were issued quantiles? Pinball loss, coverage, and the load left without or capacity left without load."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecasting.arrays import FloatArray


def pinball_loss(observed: FloatArray, quantile: FloatArray, level: float) -> FloatArray:
    """Loss of a quantile forecast: level x shortfall or (1 - level) x excess; 0.9 of 10 missing costs 9, extra 1.

    Elementwise, in the unit of the load, >= 0; NaN where an input is.
    """
    excess = observed - quantile
    return np.maximum(level * excess, (level - 1) * excess)


@dataclass(frozen=True, slots=True)
class QuantileAccuracy:
    """Accuracy of one quantile of one step over the scored bins; NaN if `bins` is 0.

    `loss_share` is the mean pinball loss over the mean load, `coverage` the share of bins at or below the quantile,
    `under_share` and `over_share` the load above and the capacity unused below it, both over the whole load.
    """

    bins: int
    pinball_loss: float
    loss_share: float
    coverage: float
    under_share: float
    over_share: float


def quantile_accuracy(observed: FloatArray, quantile: FloatArray, level: float) -> QuantileAccuracy:
    """Accuracy over the bins where both the load and the quantile are known."""
    known = np.isfinite(observed) & np.isfinite(quantile)
    observed, quantile = observed[known], quantile[known]
    if observed.size == 0:
        return QuantileAccuracy(0, *[float("nan")] * 5)
    loss, load = float(pinball_loss(observed, quantile, level).mean()), float(observed.sum())
    per_load = 1 / load if load > 0 else float("nan")
    return QuantileAccuracy(
        bins=int(observed.size),
        pinball_loss=loss,
        loss_share=loss * observed.size * per_load,
        coverage=float((observed <= quantile).mean()),
        under_share=float(np.maximum(observed - quantile, 0).sum()) * per_load,
        over_share=float(np.maximum(quantile - observed, 0).sum()) * per_load,
    )


def ratio(loss: float, baseline: float) -> float | None:
    """loss / baseline; None where the baseline is zero or unknown, since nothing can be said then."""
    return loss / baseline if np.isfinite(loss) and np.isfinite(baseline) and baseline > 0 else None
