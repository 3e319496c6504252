"""Are the replicas still those that were measured? A sum of how far new windows are from what was foretold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from policies.capacity.fit import FittedLaw, foretold
from policies.capacity.samples import LoadSample

# In standard deviations. What a window is off less is no sign of anything, and none says more than the largest.
ORDINARY, LARGEST = 1.5, 4.0
# The sum that is no chance any more: three windows in a row of the largest, or six of 2.5.
CHANGED = 5.0
# The oldest of more are taken for clear.
MAXIMUM_SUSPECTS = 12


@dataclass(frozen=True, slots=True)
class Suspicion:
    """`deviations` is the sum (above 0: steps are shorter than foretold) and `windows` those since it was last 0."""

    deviations: float = 0.0
    windows: tuple[LoadSample, ...] = ()

    @property
    def is_certain(self) -> bool:
        """The windows are those of other replicas than the ones before them."""
        return abs(self.deviations) > CHANGED


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
