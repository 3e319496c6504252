"""What do a classic histogram's buckets tell about a quantile, and what do they only seem to tell?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quantile:
    """An estimate between the edges of one bucket. Censored: it lies beyond the last finite edge, which is `value`."""

    value: float
    is_censored: bool


def quantile(share: float, buckets: Mapping[float, float]) -> Quantile | None:
    """The `share` quantile (0-1) of cumulative counts or rates by upper edge (`math.inf` for the last).

    Interpolates inside a bucket as PromQL's histogram_quantile does. None without any observation (PromQL: NaN).
    """
    found = _bucket_of(share, buckets)
    if found is None:
        return None
    lower, upper, position = found
    if math.isinf(upper):
        return Quantile(lower, is_censored=True) if lower > 0 or len(buckets) > 1 else None
    return Quantile(lower + (upper - lower) * position, is_censored=False)


def share_above(limit: float, buckets: Mapping[float, float]) -> float | None:
    """The share (0-1) of observations above `limit`, interpolated inside its bucket; None without any observation.

    Of the open last bucket all counts as above. With an edge at the limit nothing is interpolated.
    """
    edges = sorted(edge for edge, count in buckets.items() if math.isfinite(count) and not math.isnan(edge))
    total = max((buckets[edge] for edge in edges), default=0.0)
    if total <= 0:
        return None
    below, lower = 0.0, 0.0
    for edge in edges:
        count = max(buckets[edge], below)
        if edge > limit:
            inside = 0.0 if math.isinf(edge) else (count - below) * (limit - lower) / (edge - lower)
            return max(0.0, 1.0 - (below + inside) / total)
        below, lower = count, edge
    return 0.0


def evenness_floor(buckets: Mapping[float, float]) -> float | None:
    """The ratio p99 / p50 that perfectly even values would show: interpolation spreads them over the median's bucket.

    (lower + 0.99 width) / (lower + 0.50 width): 1.98 for a median between 0 and 10 ms, 1.42 for 10-25 ms, 1.33 for
    25-50 ms. Only a larger ratio says anything. None without observations or where the median is censored.
    """
    found = _bucket_of(0.5, buckets)
    if found is None or math.isinf(found[1]):
        return None
    lower, upper, _ = found
    width = upper - lower
    return (lower + 0.99 * width) / (lower + 0.50 * width)


def _bucket_of(share: float, buckets: Mapping[float, float]) -> tuple[float, float, float] | None:
    """(lower edge, upper edge, position 0-1 inside it) of the bucket that holds the quantile."""
    # Rows that are no number, and counts that seem to sink (a replica's buckets read at two moments), are repaired.
    edges = sorted(edge for edge, count in buckets.items() if math.isfinite(count) and not math.isnan(edge))
    total = max((buckets[edge] for edge in edges), default=0.0)
    if total <= 0:
        return None
    rank, below, lower = share * total, 0.0, 0.0
    for edge in edges:
        count = max(buckets[edge], below)
        if count >= rank and count > below:
            return lower, edge, (rank - below) / (count - below)
        below, lower = count, edge
    return lower, math.inf, 0.0
