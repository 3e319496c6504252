"""Is the policy that the search found better where it was not searched, and what does it change?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.tuning.dimension import Dimension, NumberRange, Values, shown_value
from autoscaler.tuning.figures import Figures
from autoscaler.tuning.objective import Objective
from autoscaler.tuning.policy_text import Change
from autoscaler.tuning.policy_variant import FORECAST_MODE, effective_value, is_set
from policies.recommenders.forecast import ForecastMode

# A value so near to the end of its range, as a share of it, may be there for want of more.
NEAR_END = 0.01


@dataclass(frozen=True, slots=True)
class Judged:
    """One policy on both parts; `held_out` is None where it was stopped before."""

    name: str
    values: Values
    search: Figures
    held_out: Figures | None = None
    front: tuple[Figures, ...] = ()  # of its own search, where there was one


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the given policy is kept, and why, in a sentence."""

    keeps_given: bool
    reason: str


def judge(given: Judged, found: Judged, objective: Objective) -> Verdict | None:
    """By the held-out part alone; None where one of the two was not run there."""
    if given.held_out is None or found.held_out is None:
        return None
    if found.search == given.search:
        return Verdict(True, f"nothing that was tried is better than the given policy{_missed(given, objective)}")
    after, before = (objective.rank(each, given.held_out) for each in (found.held_out, given.held_out))
    compared = f"{shown_figures(found.held_out)} against {shown_figures(given.held_out)} of the given policy"
    if after < before:
        missed = _missed(found, objective)
        return Verdict(False, f"on the held-out part it is better: {compared}{missed}")
    return Verdict(True, f"on the held-out part what was found is no better: {compared}{_missed(given, objective)}")


def _missed(chosen: Judged, objective: Objective) -> str:
    """Where what was asked for is not reached after all."""
    assert chosen.held_out is not None
    return "" if objective.is_met(chosen.held_out) else f"; {objective.short()} is not reached there"


def changes(scaler: InferenceScaler, content: Mapping[str, Any], values: Values) -> Iterator[Change]:
    """What the values change in a policy; a forecast's parameters only where it forecasts."""
    is_off = values.get(FORECAST_MODE) == ForecastMode.OFF
    for path, value in values.items():
        before = effective_value(scaler, path)
        if value == before and isinstance(value, bool) == isinstance(before, bool):
            continue
        if is_off and path.startswith("forecast.") and path != FORECAST_MODE:
            continue
        yield Change(path, _was(content, path, before), value)


def at_ends(values: Values, dimensions: Sequence[Dimension]) -> Iterator[str]:
    """The ranges at whose end a value lies: what is best may lie beyond."""
    for each in dimensions:
        value = values.get(each.path)
        if not isinstance(each, NumberRange) or not isinstance(value, int | float):
            continue
        if min(value - each.low, each.high - value) <= NEAR_END * (each.high - each.low):
            yield f"{each.path} {shown_value(value)} lies at the end of what was searched ({each.shown()})"


def _was(content: Mapping[str, Any], path: str, before: Any) -> str:
    if is_set(content, path):
        return shown_value(before)
    return "not set" if before is None else f"{shown_value(before)} (default)"


def shown_figures(figures: Figures) -> str:
    """`99.62 % within the objectives at 12.31 accelerator-hours`."""
    return (
        f"{100 * figures.attainment:.2f} % within the objectives at {figures.accelerator_hours:,.2f} accelerator-hours"
    )
