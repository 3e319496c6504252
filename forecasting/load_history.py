"""What load did every pool carry, cleaned of gaps, outages and ghosts of spikes, and what is usual at a time of day?

All rules are causal: a bin's cleaned value depends on it and on earlier bins only.
"""

from __future__ import annotations

import numpy as np

from forecasting import parameters as chosen
from forecasting.arrays import BoolArray, FloatArray, IntArray, TimeRing, known_loads, within
from forecasting.parameters import ForecastingParameters

TINY = 1e-12


def _profile_weights() -> FloatArray:
    weights = []
    for day in chosen.PROFILE_DAYS:
        weight = 2.0 ** (-min(day, 7) / chosen.PROFILE_HALF_LIFE_DAYS)
        weight *= chosen.PROFILE_SAME_WEEKDAY_BONUS if day % 7 == 0 else 1.0
        weights.append(weight * chosen.PROFILE_OLD_WEEK_FACTORS.get(day, 1.0))
    return np.array(weights)


class LoadHistory:
    """Cleaned loads of all pools up to the newest bin. Arrays are (pools,), loads in the caller's unit.

    A missing bin (NaN) is filled with the last value times yesterday's change; it serves as a lag but is never
    learned from. A bin of at most 2 % of its profile on a pool that is hardly ever empty is a suspected outage and
    treated as missing for at most 6 h. Before a pool's first observation everything is NaN.

    `loads` are those of the newest bin as they came in. `profiles` (1 + steps, pools) is the usual load of the newest
    bin and of those after it, NaN where no earlier day is known. `departures` are recent means of
    sqrt(load) - sqrt(profile), a row for each half-life. `scale` is the typical load of each pool, > 0: what loads are
    divided by before the square root.
    """

    def __init__(self, pools: int, parameters: ForecastingParameters) -> None:
        self._parameters = parameters
        day = parameters.day_bins
        self.now = -1
        self.clean = TimeRing(day + 2, (pools,))  # to yesterday, and the bin before
        self.capped = TimeRing(max(chosen.PROFILE_DAYS) * day, (pools,))  # the farthest lag is a little less
        self.loads = np.full(pools, np.nan)
        self.profiles = np.full((parameters.steps + 1, pools), np.nan)
        self.is_missing: BoolArray = np.ones(pools, np.bool_)
        self.in_outage: BoolArray = np.zeros(pools, np.bool_)
        self.latest = np.full(pools, np.nan)
        self.recent_level = np.full(pools, np.nan)
        self.hour_level = np.full(pools, np.nan)
        self.departures = np.full((len(chosen.DEPARTURE_HALF_LIFE_HOURS), pools), np.nan)
        self.mean = np.zeros(pools)
        self.day_maximum = np.full(pools, np.nan)
        self.largest_seen = np.zeros(pools)
        self.scale = np.full(pools, TINY)
        self.observed_bins = np.zeros(pools)
        self._age_bins = np.zeros(pools)
        self._low_run = np.zeros(pools)
        self._low_share = np.zeros(pools)
        self._weights = _profile_weights()[:, None]
        # A day and a week before the newest bin and before those ahead, then the days of the last profile.
        lags_of_day = day - np.arange(parameters.steps + 1)
        profile_lags = np.array(chosen.PROFILE_DAYS) * day - parameters.steps
        self._earlier_lags = np.concatenate([lags_of_day, lags_of_day + 6 * day, profile_lags])
        self.earlier = np.full((2 * (parameters.steps + 1), pools), np.nan)
        self._fill_lags = np.array([1, day, day + 1])
        half_lives = np.array(chosen.DEPARTURE_HALF_LIFE_HOURS)[:, None]
        self._departure_rates = 1 - 0.5 ** (24 / (half_lives * day))

    def accept(self, loads: FloatArray) -> None:
        """Takes the mean loads of the bin that has just closed; NaN, infinite and negative values are missing."""
        self.now += 1
        self.loads = loads = known_loads(loads)
        profile = self.profiles[1]
        self._judge_outage(loads, profile)
        observed = np.where(self.in_outage, np.nan, loads)
        self.is_missing = ~np.isfinite(observed)
        filled = self._fill(observed) if self.is_missing.any() else observed
        self.clean.write(self.now, filled)
        ceiling = chosen.SPIKE_CEILING * np.fmax(profile, self.recent_level)
        self.capped.write(self.now, np.where(np.isfinite(profile), np.minimum(filled, ceiling), filled))
        self.latest = filled
        self._update_levels(observed, filled)
        self._update_departures(filled, profile)
        self.largest_seen = np.fmax(self.largest_seen, loads)
        earlier = self.capped.read_lags(self._earlier_lags, self.now)
        self.earlier, days = earlier[: len(self.earlier)], earlier[len(self.earlier) :]
        self.profiles = np.concatenate([self.profiles[1:], self._last_profile(days)[None]])

    def clean_lags(self, lags: IntArray) -> FloatArray:
        """Cleaned loads (lags, pools) of the bins `lags` before the newest one; NaN where unknown."""
        return self.clean.read_lags(lags, self.now)

    def _judge_outage(self, loads: FloatArray, profile: FloatArray) -> None:
        day = self._parameters.day_bins
        is_known = np.isfinite(loads)
        is_low = is_known & (loads <= chosen.OUTAGE_LEVEL * np.fmax(profile, 0.0))
        self.in_outage = (
            is_low
            & (self._low_share < chosen.OUTAGE_MAXIMUM_SHARE)
            & (self._low_run < chosen.OUTAGE_HOLD_DAYS * day)
            & (self._age_bins > day)
        )
        self._low_run = np.where(is_low, self._low_run + 1, np.where(is_known, 0.0, self._low_run))
        rate = 1 - 0.5 ** (1 / (chosen.OUTAGE_SHARE_HALF_LIFE_DAYS * day))
        self._low_share += rate * ((is_low & ~self.in_outage) - self._low_share)

    def _fill(self, observed: FloatArray) -> FloatArray:
        last, yesterday, before = self.clean_lags(self._fill_lags)
        can_follow = np.isfinite(yesterday) & (before > 0) & np.isfinite(last)
        change = np.where(can_follow, yesterday, 1.0) / np.where(can_follow, np.maximum(before, TINY), 1.0)
        guess = np.where(can_follow, last * within(change, *chosen.FILL_CLIP), np.fmax(last, 0.0))
        started = self.observed_bins > 0
        return np.where(self.is_missing, np.where(started, guess, np.nan), observed)

    def _update_levels(self, observed: FloatArray, filled: FloatArray) -> None:
        day, is_known = self._parameters.day_bins, ~self.is_missing
        self.observed_bins += is_known
        self._age_bins += np.isfinite(filled)
        share = 1 / within(self.observed_bins, 1, chosen.HISTORY_DAYS * day)
        self.mean += np.where(is_known, share * (observed - self.mean), 0.0)
        self.day_maximum = np.fmax(self.day_maximum * 0.5 ** (1 / day), observed)
        self.scale = np.maximum(np.fmax(self.mean, 0.05 * self.day_maximum), TINY)
        newest = np.where(np.isfinite(filled), filled, self.recent_level)
        hour_weight = 2 / (max(3, self._parameters.hour_bins) + 1)
        self.hour_level = _moved(self.hour_level, newest, hour_weight)
        self.recent_level = _moved(self.recent_level, newest, chosen.RECENT_LEVEL_WEIGHT)

    def _update_departures(self, filled: FloatArray, profile: FloatArray) -> None:
        departure = np.sqrt(np.maximum(filled, 0.0)) - np.sqrt(np.maximum(profile, 0.0))
        moved = _moved(self.departures, departure, self._departure_rates)
        self.departures = np.where(np.isfinite(departure), moved, self.departures)

    def _last_profile(self, days: FloatArray) -> FloatArray:
        """The usual load of the last of the bins ahead by that of earlier `days`, with 7 digits as all that is kept."""
        known = np.isfinite(days)
        count = known.sum(axis=0)
        ranked = np.sort(days, axis=0)  # NaN last
        columns = np.arange(days.shape[1])
        lower = ranked[np.maximum(count - 1, 0) // 2, columns]
        median = np.where(count % 2 == 1, lower, 0.5 * (lower + ranked[count // 2, columns]))
        low, high = chosen.PROFILE_CLIP
        weights = self._weights * known
        weighted = (np.where(known, within(days, low * median, high * median), 0.0) * weights).sum(axis=0)
        usual = np.where(count > 0, weighted / np.maximum(weights.sum(axis=0), TINY), np.nan)
        return usual.astype(np.float32).astype(np.float64)


def _moved(level: FloatArray, towards: FloatArray, weight: FloatArray | float) -> FloatArray:
    return np.where(np.isfinite(level), level + weight * (towards - level), towards)
