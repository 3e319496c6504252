"""How much do the lengths of a pool's prompts and answers differ? As its engines' histograms show, else as usual."""

from __future__ import annotations

import math
from dataclasses import dataclass

# A normal variable in ten parts, short ones finer: (its value, share of the whole).
_NORMAL_CLASSES = (
    *((-2.4, 0.015), (-1.9, 0.025), (-1.5, 0.05), (-1.15, 0.07), (-0.85, 0.09)),
    *((-0.52, 0.11), (-0.2, 0.14), (0.2, 0.16), (0.6, 0.14), (1.3, 0.2)),
)


@dataclass(frozen=True, slots=True)
class RequestLengths:
    """`prompt_variation` is the deviation of prompts' lengths over their mean. `answers` are classes of answers, each
    as its length over the mean of all and its share of the requests; what is left to 1 are answers without gaps.
    """

    prompt_variation: float
    answers: tuple[tuple[float, float], ...]


def _log_normal(variation: float) -> tuple[tuple[float, float], ...]:
    variance = math.log(1.0 + variation * variation)
    return tuple((math.exp(math.sqrt(variance) * z - variance / 2.0), share) for z, share in _NORMAL_CLASSES)


# Recorded chats and agents have 0.96 (Azure 2023) to 1.43 (ServeGen) for prompts, 0.7 to 1.2 for answers.
USUAL_LENGTHS = RequestLengths(1.3, _log_normal(1.0))
