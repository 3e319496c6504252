"""How is a number written as a Kubernetes quantity? In thousandths, finer ones rounded up, in the canonical form."""

from __future__ import annotations

import math
import re

from policies.hpa.metric_proposal import MAXIMUM_INT64

# The HorizontalPodAutoscaler reads thousandths as an int64, and so no quantity is larger than that.
MAXIMUM_MILLI = MAXIMUM_INT64
_SUFFIXES = ("", "k", "M", "G", "T", "P", "E")
_WRITTEN = re.compile(r"([0-9]{1,19})(m|[kMGTPE])?")


def milli_of(value: float) -> int:
    """A number of 0 or more in thousandths, a finer one rounded up: 0.8531 is 854. At most the int64 maximum.

    Raises ValueError for a negative number, NaN and infinity: none of them is a quantity of anything that is served.
    """
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{value} is no quantity")
    thousandths = value * 1000.0
    # 16.1 * 1000 is 16100.000000000002: what is within a billionth of a whole number is that number.
    nearest = round(thousandths)
    rounded = nearest if math.isclose(thousandths, nearest, rel_tol=1e-9) else math.ceil(thousandths)
    return min(rounded, MAXIMUM_MILLI)


def quantity(milli: int) -> str:
    """Thousandths in the canonical form, as the API server would write them: 1500 is "1500m", 2 000 000 is "2k"."""
    if milli % 1000 != 0:
        return f"{milli}m"
    number, power = milli // 1000, 0
    while number != 0 and number % 1000 == 0 and power + 1 < len(_SUFFIXES):
        number, power = number // 1000, power + 1
    return f"{number}{_SUFFIXES[power]}"


def milli_of_quantity(text: str) -> int | None:
    """The thousandths of what `quantity` has written; None for anything else."""
    match = _WRITTEN.fullmatch(text)
    if match is None:
        return None
    if match[2] == "m":
        return int(match[1])
    scale: int = 1000 ** (_SUFFIXES.index(match[2] or "") + 1)
    return int(match[1]) * scale
