"""Which of several outcomes is the best one?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from autoscaler.tuning.figures import Figures

DEFAULT_OBJECTIVE = "attainment>=99.5"
WANTED = (
    "attainment>=PERCENT or cost:miss=NUMBER,hour=NUMBER is wanted, such as attainment>=99.5 or cost:miss=10,hour=1"
)
_ATTAINMENT = re.compile(r"attainment\s*>=\s*(\d+(?:\.\d+)?)\s*%?")
_COST = re.compile(r"cost:\s*miss=(\d+(?:\.\d+)?)\s*,\s*hour=(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class AttainmentAtLeast:
    """The fewest accelerator-hours among what reaches a share of met requests; where nothing does, what is nearest."""

    share: float

    def rank(self, figures: Figures, given: Figures) -> tuple[float, ...]:
        """The smaller, the better."""
        return (max(0.0, self.share - figures.attainment), figures.accelerator_hours)

    def is_met(self, figures: Figures) -> bool:
        """Whether what is asked for is reached."""
        return figures.attainment >= self.share

    def short(self) -> str:
        """What is asked for, in a word or two."""
        return f"{100 * self.share:g} %"

    def shown(self) -> str:
        """In words."""
        return f"the fewest accelerator-hours at {100 * self.share:g} % of the requests within the objectives"


@dataclass(frozen=True, slots=True)
class Cost:
    """The least of hour x accelerator-hours (1 is what the given policy needs) + miss x share of missed requests.

    With miss=10, hour=1 one missed request in a hundred is worth a tenth of the accelerator-hours.
    """

    miss: float
    hour: float

    def rank(self, figures: Figures, given: Figures) -> tuple[float, ...]:
        """The smaller, the better."""
        relative = figures.accelerator_hours / given.accelerator_hours if given.accelerator_hours else 0.0
        return (self.hour * relative + self.miss * figures.missed_share,)

    def is_met(self, figures: Figures) -> bool:
        """Always: a cost asks for no bound."""
        return True

    def short(self) -> str:
        """What is asked for, in a word or two."""
        return "a small cost"

    def shown(self) -> str:
        """In words."""
        return (
            f"the least of {self.hour:g} x accelerator-hours (of the given policy's) + {self.miss:g} x share of missed "
            "requests"
        )


Objective: TypeAlias = AttainmentAtLeast | Cost


def read_objective(text: str) -> Objective | str:
    """What `--objective` says, or what is wrong with it."""
    attainment = _ATTAINMENT.fullmatch(text.strip())
    if attainment is not None:
        percent = float(attainment[1])
        if not 0 < percent <= 100:
            return f"--objective {text}: a share of requests is above 0 and at most 100 percent"
        return AttainmentAtLeast(percent / 100.0)
    cost = _COST.fullmatch(text.strip())
    if cost is None:
        return f"--objective {text}: {WANTED}"
    if float(cost[2]) == 0:
        return f"--objective {text}: with hours at no cost the largest fleet is the best; give hour more than 0"
    return Cost(float(cost[1]), float(cost[2]))
