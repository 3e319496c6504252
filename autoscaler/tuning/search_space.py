"""Which parameters are searched, over which values, and is the policy valid at their ends?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autoscaler.tuning.dimension import Dimension, Values, shown_value
from autoscaler.tuning.policy_variant import parse_variant
from autoscaler.tuning.search_range import read_range


@dataclass(frozen=True, slots=True)
class SearchRefused:
    """What is wrong with a search, one sentence a problem."""

    problems: tuple[str, ...]


def read_search(texts: Sequence[str], content: Mapping[str, Any]) -> tuple[Dimension, ...] | SearchRefused:
    """The dimensions that were asked for of the policy in `content`, or everything that is wrong with them."""
    found = [read_range(text) for text in texts]
    problems = [each for each in found if isinstance(each, str)]
    dimensions = tuple(each for each in found if not isinstance(each, str))
    repeated = [path for path, count in Counter(each.path for each in dimensions).items() if count > 1]
    problems += [f"--search {path}: it is given more than once" for path in repeated]
    if not problems:
        problems += _refused_ends(dimensions, content)
    return SearchRefused(tuple(problems)) if problems else dimensions


def combinations(dimensions: Sequence[Dimension]) -> float:
    """How many policies there are to be tried; infinite where a dimension has no end of values."""
    return math.prod(each.size for each in dimensions)


def _refused_ends(dimensions: Sequence[Dimension], content: Mapping[str, Any]) -> Iterator[str]:
    """Of every end that is refused whatever the other dimensions have, the first problem.

    The others stand as the policy has them, all at their first end, or all at their last one.
    """
    for dimension in dimensions:
        others = [each for each in dimensions if each is not dimension]
        surroundings: tuple[Values, ...] = (
            {},
            {each.path: each.ends[0] for each in others},
            {each.path: each.ends[-1] for each in others},
        )
        for end in dimension.ends:
            tried = [parse_variant(content, {**around, dimension.path: end}) for around in surroundings]
            refusals = [each for each in tried if isinstance(each, tuple)]
            if len(refusals) == len(tried):
                value = shown_value(end)
                yield f"--search {dimension.shown()}: with {value} the policy is refused: {refusals[0][0]}"
                break
