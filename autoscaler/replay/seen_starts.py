"""Which starts of a simulated pool have ended, and what do they teach of the next one?"""

from __future__ import annotations

from policies.cold_start import KEPT_STARTS, ColdStart, ObservedStart, learn_cold_start


class SeenStarts:
    """The last starts, oldest first. What they teach is worked out anew only after another one."""

    def __init__(self) -> None:
        self.starts: tuple[ObservedStart, ...] = ()
        self._learned: dict[float, ColdStart] = {}  # by the prior

    def add(self, start: ObservedStart) -> None:
        """One more has ended."""
        self.starts = (*self.starts, start)[-KEPT_STARTS:]
        self._learned = {}

    def learned(self, prior_seconds: float) -> ColdStart:
        """The cold start by them; the prior alone while there are none."""
        if prior_seconds not in self._learned:
            self._learned[prior_seconds] = learn_cold_start(self.starts, prior_seconds)
        return self._learned[prior_seconds]
