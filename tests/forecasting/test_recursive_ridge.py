import numpy as np

from forecasting.recursive_ridge import RecursiveRidge


def test_weights_equal_those_of_a_weighted_ridge_over_all_rows() -> None:
    random = np.random.default_rng(3)
    bins, half_life, penalty, prior = 48, 20.0, np.array([1.0, 3.0]), np.array([0.5, 0.0])
    rows, targets = random.normal(size=(bins, 1, 2, 2)), random.normal(size=(bins, 1, 2))
    targets[10] = np.nan
    ridge = RecursiveRidge((1, 2), np.tile(penalty, (2, 1)), prior, half_life, block_bins=6)
    for now in range(bins):
        ridge.learn(now, targets[now])
        ridge.predict(now, rows[now])
    last = 42  # the pool's group is due at multiples of 6
    for step in range(2):
        moments, products = np.diag(penalty), np.zeros(2)
        for now in range(step + 1, last + 1):
            row, target = rows[now - step - 1, 0, step], targets[now, 0, step]
            if np.isfinite(target):
                weight = 0.5 ** ((last - now) / half_life)
                moments = moments + weight * np.outer(row, row)
                products = products + weight * row * (target - row @ prior)
        np.testing.assert_allclose(ridge.weights[0, step], prior + np.linalg.solve(moments, products), rtol=1e-4)


def test_without_data_the_prior_speaks() -> None:
    ridge = RecursiveRidge((3, 1), np.ones((1, 2)), np.array([2.0, 1.0]), 10.0, block_bins=4)
    ridge.learn(0, np.full((3, 1), np.nan))
    np.testing.assert_allclose(ridge.predict(0, np.ones((3, 1, 2))), 3.0)


def test_a_new_relation_is_learned_and_the_old_one_forgotten() -> None:
    ridge = RecursiveRidge((1, 1), np.ones((1, 1)), np.zeros(1), half_life_bins=20.0, block_bins=4)
    for now in range(400):
        ridge.learn(now, np.full((1, 1), 1.0 if now < 200 else -1.0))
        ridge.predict(now, np.ones((1, 1, 1)))
    assert ridge.weights[0, 0, 0] < -0.9
