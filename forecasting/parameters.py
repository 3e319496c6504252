"""Every number of the forecaster that somebody chose, with its unit and why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

SECONDS_PER_DAY = 86_400


@dataclass(frozen=True)  # without slots, so that what follows from them is worked out once
class ForecastingParameters:
    """Shape of a fleet's forecast: bins, steps ahead and quantile levels."""

    bin_seconds: int = 300
    """Width of a bin. 5 minutes: a start of minutes needs no finer forecast, and 1-minute bins cost 6 times more."""

    steps: int = 4
    """Bins ahead. A start of L seconds yields capacity for step ceil(L / bin_seconds) + 1, so 4 serve 15 minutes."""

    levels: tuple[float, ...] = (0.5, 0.9, 0.95)
    """Quantile levels, ascending."""

    def __post_init__(self) -> None:
        if SECONDS_PER_DAY % self.bin_seconds != 0:
            raise ValueError(f"bin_seconds={self.bin_seconds} does not divide a day; choose e.g. 60, 300, 600 or 1800")
        if not 60 <= self.bin_seconds <= 3600:
            raise ValueError(f"bin_seconds={self.bin_seconds} is outside 60..3600")
        if self.steps < 1 or tuple(sorted(self.levels)) != self.levels or not 0 < self.levels[0] <= self.levels[-1] < 1:
            raise ValueError(f"steps={self.steps}, levels={self.levels}: need >= 1 step and ascending levels in (0, 1)")

    @cached_property
    def day_bins(self) -> int:
        """Bins per day, the season."""
        return SECONDS_PER_DAY // self.bin_seconds

    @cached_property
    def hour_bins(self) -> int:
        """Bins per hour, at least 1."""
        return max(1, self.day_bins // 24)


# History. 14 days suffice, the third week adds the weekday; 22 = 21 days back plus the day under way.
HISTORY_DAYS = 22
PROFILE_DAYS = (1, 2, 3, 4, 5, 6, 7, 14, 21)
PROFILE_HALF_LIFE_DAYS = 4.0
PROFILE_SAME_WEEKDAY_BONUS = 2.0
PROFILE_OLD_WEEK_FACTORS = {14: 0.6, 21: 0.4}
PROFILE_CLIP = (0.5, 2.0)  # times the median of the days: one odd day does not move the profile
SPIKE_CEILING = 2.0  # times max(profile, recent level): a spike does not return tomorrow as a ghost

# Gaps and outages.
FILL_CLIP = (0.2, 5.0)  # times the last value, for a filled bin
OUTAGE_LEVEL = 0.02  # of the profile: below it a bin is suspected to be a failed recording or a dead front door
OUTAGE_MAXIMUM_SHARE = 0.02  # of recent bins: a pool that is often empty is really empty
OUTAGE_SHARE_HALF_LIFE_DAYS = 3.0
OUTAGE_HOLD_DAYS = 0.25  # after 6 h the low level is believed
OUTAGE_SURE_HOLDS = 3  # the first outages of a pool are held whatever they would have cost
OUTAGE_HOLD_PRIOR = 1.0  # loss, in bins of mean load, by which dropping the hold must have been better
OUTAGE_WEIGHT_SLOPE = 2.0  # per bin of mean load
OUTAGE_LEDGER_HALF_LIFE_DAYS = 7.0

# How far the last hours have been from the usual, in square roots: a day that is busy stays so for hours.
DEPARTURE_HALF_LIFE_HOURS = (3.0, 12.0)
LARGEST_DEPARTURE = 0.15  # of the root of the mean load: a load that has just doubled does not fall back for it

# Point forecast: ridge on the square root of load around the last value plus the profile's change.
RIDGE_HALF_LIFE_DAYS = 7.0
RIDGE_PENALTY = 1.0
RIDGE_CONSTANT_PENALTY = 3.0
RESIDUAL_CLIP = 3.0  # times a running 0.8 quantile of |residual|
WARM_UP_FROM_DAYS = 0.25  # of training rows: the ridge begins to speak
WARM_UP_DAYS = 2.0  # and is alone this much later
RECENT_LEVEL_WEIGHT = 0.6
POINT_CEILING = 1.5  # times the day's decayed maximum or the profile

# Interval.
SCALE_HALF_LIFE_DAYS = 7.0
SCALE_PENALTY = 30.0
SCALE_FLOOR_SHARE = 0.01  # of max(forecast, mean load)
SCALE_START_SHARE = 0.15  # of the forecast, before the first residual
RESIDUAL_RING_DAYS = 3
LEVEL_ADAPTATION = 0.002  # per bin
PRIOR_CURVE_WEIGHT = 12.0  # errors
LARGEST_ERROR = 30.0  # in scales
QUANTILE_CEILING = 3.0  # times the largest load ever seen: no forecast leaves the known world

# Baselines of the comparison.
BASELINE_RING_DAYS = 7

# Start.
REPLAYED_DAYS = 3.5  # of a recorded past through the whole model; the ridge is warm after 2.25

# Gate.
GATE_LEVEL = 0.9
GATE_HALF_LIFE_DAYS = 3.0
GATE_OPENS_BELOW = 0.95  # model loss / last value's loss
GATE_CLOSES_ABOVE = 1.0
GATE_MINIMUM_DAYS = 1.0  # of scored bins
