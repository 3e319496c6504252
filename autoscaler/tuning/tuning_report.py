"""Everything that is told about a search."""

from __future__ import annotations

from dataclasses import dataclass

from autoscaler.replay.fleet_description import Fleet
from autoscaler.tuning.dimension import Dimension, Values, told_value
from autoscaler.tuning.figures import Figures
from autoscaler.tuning.objective import Objective
from autoscaler.tuning.policy_text import Change
from autoscaler.tuning.policy_variant import short_path
from autoscaler.tuning.scenes import MISSED_OF_RATES
from autoscaler.tuning.search import SearchOutcome
from autoscaler.tuning.verdict import Judged, Verdict


@dataclass(frozen=True, slots=True)
class TuningReport:
    """A search, what was chosen by it, and the baselines beside it. Without a verdict it was stopped before the end."""

    policy: str
    traces: tuple[str, ...]
    trace_scale: float
    fleet: Fleet
    objective: Objective
    dimensions: tuple[Dimension, ...]
    seeds: tuple[int, ...]
    held_out_seeds: tuple[int, ...]
    hold_out_percent: float
    outcome: SearchOutcome
    given: Judged
    found: Judged
    changes: tuple[Change, ...]
    baselines: tuple[Judged, ...]
    verdict: Verdict | None
    assumptions: tuple[str, ...]
    is_policy_only: bool = False

    @property
    def caution(self) -> str | None:
        """What these figures cannot tell; None where every request was run."""
        return f"{MISSED_OF_RATES}." if self.is_policy_only else None

    @property
    def judged(self) -> tuple[Judged, ...]:
        """All that are on both parts: the given policy, what was found where that is another one, the baselines."""
        found = (self.found,) if self.found.search != self.given.search else ()
        return (self.given, *found, *self.baselines)

    @property
    def loads(self) -> str:
        """The traces, each with how many times its users came where that is not once."""
        times = "" if self.trace_scale == 1 else f" x {self.trace_scale:g}"
        return ", ".join(f"{trace}{times}" for trace in self.traces)

    @property
    def title(self) -> str:
        """What was tuned on what, in a line."""
        fleet = self.fleet
        return (
            f"In simulation: {self.policy} tuned on {self.loads}; {fleet.profile.name}; objectives "
            f"{fleet.objectives.time_to_first_token_seconds:g} s, "
            f"{1000 * fleet.objectives.inter_token_latency_seconds:g} ms; cold start "
            f"{fleet.cold_start.mean_seconds:.0f} s"
        )


def percent(share: float) -> str:
    """A share of requests."""
    return f"{100 * share:.2f} %"


def hours(figures: Figures) -> str:
    """Accelerator-hours."""
    return f"{figures.accelerator_hours:,.2f}"


def shown_values(values: Values) -> str:
    """Values with the end of each path."""
    return ", ".join(f"{short_path(path)} {told_value(value)}" for path, value in values.items()) or "as published"
