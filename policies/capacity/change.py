"""Are the replicas still those that were measured? A sum of how far new windows are from what was foretold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from policies.capacity.fit import FittedLaw, fit, foretold
from policies.capacity.samples import LoadSample

# In standard deviations. What a window is off less is no sign of anything, and none says more than the largest.
ORDINARY, LARGEST = 1.5, 4.0
# The sum that is no chance any more: three windows in a row of the largest, or six of 2.5.
GREAT = 5.0
# How many times as far off a law of old and new windows is, at least, if the replicas have changed.
CONTRADICTION = 1.25
# The oldest of more are taken for clear.
MAXIMUM_SUSPECTS = 12


@dataclass(frozen=True, slots=True)
class Suspicion:
    """`deviations` is the sum (above 0: steps are shorter than foretold) and `windows` those since it was last 0."""

    deviations: float = 0.0
    windows: tuple[LoadSample, ...] = ()

    @property
    def is_great(self) -> bool:
        """The windows were foretold so badly that the laws or the replicas are others than was thought."""
        return abs(self.deviations) > GREAT


def suspicion_after(
    before: Suspicion, laws: Sequence[FittedLaw], window: LoadSample
) -> tuple[Suspicion, tuple[LoadSample, ...]]:
    """With one more window, of which `laws` have not heard: a two-sided cumulative sum; and which windows are clear.

    A window counts by its distance from the foretold step, over the deviation of windows and of the laws at its load:
    where the laws know little, as at a load that was never seen, a surprise is none.
    """
    seconds, error = foretold(laws, window.load)
    surprise = (seconds / window.step_seconds - 1.0) / error
    total = before.deviations + min(max(surprise, -LARGEST), LARGEST)
    rest = abs(total) - ORDINARY
    if rest <= 0.0:
        return Suspicion(), (*before.windows, window)
    if total * before.deviations < 0.0:
        return Suspicion(math.copysign(rest, total), (window,)), before.windows
    windows = (*before.windows, window)
    return Suspicion(math.copysign(rest, total), windows[-MAXIMUM_SUSPECTS:]), windows[:-MAXIMUM_SUSPECTS]


def contradict(laws: Sequence[FittedLaw], samples: tuple[LoadSample, ...], windows: tuple[LoadSample, ...]) -> bool:
    """Whether no law brings the windows together with the samples about as well as `laws` do the samples alone.

    Then the replicas have changed. Else the laws were wrong at a load that was new, and the windows complete them.
    """
    return fit((*samples, *windows))[0].window_error > CONTRADICTION * laws[0].window_error


def slowdown(laws: Sequence[FittedLaw], windows: tuple[LoadSample, ...]) -> float:
    """How many times as long as foretold the steps of the windows are, as a geometric mean."""
    logarithms = [math.log(window.step_seconds / foretold(laws, window.load)[0]) for window in windows]
    return math.exp(sum(logarithms) / len(logarithms))
