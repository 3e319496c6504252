"""Which weights of the features would have forecast best, with recent rows counting more? For all pools at once.

Per pool and step: A = sum of decay^age z z', c = sum of decay^age z r,
weights = prior + (A + penalty)^-1 (c - A prior).
Rows are folded in and the system is solved once an hour, a twelfth of the pools at every 5-minute bin: measured,
an hour's delay costs 0.1 % of accuracy, and the work of a bin stays small and even.
"""

from __future__ import annotations

import numpy as np

from forecasting.arrays import FloatArray, TimeRing


class RecursiveRidge:
    """Weights (pools, steps, features) of a forgetting ridge regression. Bins are numbered from 0 without a break.

    `penalties` (steps, features) pull the weights to `prior` (features,).
    """

    def __init__(
        self, shape: tuple[int, int], penalties: FloatArray, prior: FloatArray, half_life_bins: float, block_bins: int
    ) -> None:
        pools, steps = shape
        features = prior.size
        self._block, self._steps = block_bins, steps
        self._decay = 0.5 ** (1 / half_life_bins)
        self._penalty = np.stack([np.diag(of_step) for of_step in penalties])
        self._prior = prior
        # A is symmetric: of each pair of equal elements one is kept.
        self._first, self._second = np.triu_indices(features)
        self._moments = np.zeros((pools, steps, len(self._first)))
        self._products = np.zeros((pools, steps, features))
        self._rows = TimeRing(block_bins + steps, (pools, steps, features))
        self._targets = TimeRing(block_bins, (pools, steps))
        self.weights = np.tile(prior, (pools, steps, 1))

    def predict(self, bin_number: int, rows: FloatArray) -> FloatArray:
        """Weighted sums (pools, steps) for the origin `bin_number`; keeps `rows` to learn from later."""
        self._rows.write(bin_number, rows)
        weighted: FloatArray = np.einsum("bhp,bhp->bh", rows, self.weights)
        return weighted

    def learn(self, bin_number: int, targets: FloatArray) -> None:
        """Takes what the rows of `bin_number - step` should have given, (pools, steps); NaN where nothing is known."""
        self._targets.write(bin_number, targets)
        group = slice(bin_number % self._block, None, self._block)
        if group.start >= len(self.weights):
            return
        bins = np.arange(bin_number - self._block + 1, bin_number + 1)
        ages = self._decay ** (bin_number - bins).astype(np.float64)
        due = self._targets.rows[bins % self._block, group].astype(np.float64)
        forgotten = self._decay**self._block
        self._moments[group] *= forgotten
        self._products[group] *= forgotten
        steps = np.arange(self._steps)
        origins = (bins[:, None] - steps - 1) % self._rows.length
        rows = self._rows.rows[:, group][origins, :, steps].astype(np.float64).transpose(2, 1, 0, 3)
        target = due.transpose(1, 2, 0)
        known = np.isfinite(target)
        weighted = np.where(known[..., None] & np.isfinite(rows), rows, 0.0)  # pools, steps, bins, features
        aged = weighted * ages[:, None]
        self._moments[group] += (aged.swapaxes(2, 3) @ weighted)[..., self._first, self._second]
        self._products[group] += np.einsum("bskp,bsk->bsp", aged, np.where(known, target, 0.0))
        kept = self._moments[group]
        moments = np.empty((*kept.shape[:2], self._prior.size, self._prior.size))
        moments[..., self._first, self._second] = moments[..., self._second, self._first] = kept
        right = self._products[group] - moments @ self._prior
        self.weights[group] = self._prior + np.linalg.solve(moments + self._penalty, right[..., None])[..., 0]
