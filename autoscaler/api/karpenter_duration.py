"""How long is a duration as Karpenter writes it: 30m, 1h30m, Never?"""

from __future__ import annotations

import re

_PARTS = re.compile(r"([0-9]+)([hms])")
_SECONDS = {"h": 3600, "m": 60, "s": 1}


def duration_seconds(text: str) -> float | None:
    """The seconds; None for Never."""
    if text == "Never":
        return None
    return float(sum(int(count) * _SECONDS[unit] for count, unit in _PARTS.findall(text)))
