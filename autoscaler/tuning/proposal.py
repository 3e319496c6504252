"""Which values are tried next? Optuna's tree-structured Parzen estimator proposes, for both aims at once.

What is proposed follows from what has been tried and from the seed alone, so that a search that was stopped goes on as
if it had not been.
"""

from __future__ import annotations

from collections.abc import Sequence

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from autoscaler.tuning.dimension import Dimension, NumberRange, Tried, Value, Values

# Before so many tries the proposals are drawn evenly.
FIRST_TRIES = 10


def propose(
    dimensions: Sequence[Dimension], tried: Sequence[Tried], count: int, seed: int
) -> tuple[dict[str, Value], ...]:
    """So many values to try, good ones and new ones. The same arguments give the same values."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    distributions = {each.path: _distribution(each) for each in dimensions}
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=FIRST_TRIES)
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    for values, aims in tried:
        if all(each.path in values and each.holds(values[each.path]) for each in dimensions):
            study.add_trial(_trial(values, aims, distributions))
    asked = [study.ask(distributions).params for _ in range(count)]
    return tuple({each.path: _rounded(each, params[each.path]) for each in dimensions} for params in asked)


def _trial(
    values: Values, aims: tuple[float, float] | None, distributions: dict[str, BaseDistribution]
) -> optuna.trial.FrozenTrial:
    params = {name: values[name] for name in distributions}
    if aims is None:
        return create_trial(state=TrialState.FAIL, params=params, distributions=distributions)
    return create_trial(params=params, distributions=distributions, values=aims)


def _distribution(dimension: Dimension) -> BaseDistribution:
    if not isinstance(dimension, NumberRange):
        return CategoricalDistribution(dimension.values)
    if dimension.is_whole:
        return IntDistribution(int(dimension.low), int(dimension.high), log=dimension.is_log)
    return FloatDistribution(dimension.low, dimension.high, log=dimension.is_log)


def _rounded(dimension: Dimension, value: Value) -> Value:
    if isinstance(dimension, NumberRange) and isinstance(value, int | float):
        return dimension.rounded(value)
    return value
