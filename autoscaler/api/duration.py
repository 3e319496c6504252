"""How many seconds is a length of time as people write it: 90s, 30m, 1h30m, 2d?"""

from __future__ import annotations

import re

_PART = re.compile(r"([0-9]+)([smhd])")
_WHOLE = re.compile(f"(?:{_PART.pattern})+")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def seconds_of(text: str) -> float | None:
    """The seconds; None for what is none of these ("Never", "1.5h", "30", "")."""
    if _WHOLE.fullmatch(text) is None:
        return None
    return sum(float(count) * _SECONDS[unit] for count, unit in _PART.findall(text))
