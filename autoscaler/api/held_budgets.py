"""How are a NodePool's own disruption budgets kept while they are closed, and what is written back?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

ANNOTATION = "tokenscaler.io/held-budgets"
CLOSED: dict[str, Any] = {"nodes": "0"}
"""No node for any reason. It stands before the user's own budgets: the smallest of all that apply counts."""
# Karpenter allows so many; one of them is ours.
MOST_BUDGETS = 50


@dataclass(frozen=True, slots=True)
class HeldBudgets:
    """The user's budgets as they stood, and since when they are closed (unix seconds)."""

    budgets: tuple[dict[str, Any], ...]
    since_seconds: float


def write_held(budgets: Sequence[dict[str, Any]], now_seconds: float) -> str:
    """The annotation's text."""
    return orjson.dumps({"budgets": list(budgets), "sinceSeconds": round(now_seconds)}).decode()


def read_held(text: str | None) -> HeldBudgets | None:
    """What the annotation says; None where there is none, or nobody can read it."""
    if text is None:
        return None
    try:
        document = orjson.loads(text)
        return HeldBudgets(tuple(dict(each) for each in document["budgets"]), float(document["sinceSeconds"]))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None


def closed_over(budgets: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The budgets with the one that closes them in front."""
    return [CLOSED, *budgets[: MOST_BUDGETS - 1]]


def reopened(present: Sequence[dict[str, Any]], held: HeldBudgets) -> list[dict[str, Any]]:
    """What is written back: what was held; where somebody has changed the budgets since, theirs without ours."""
    if list(present) == closed_over(held.budgets):
        return list(held.budgets)
    return list(present[1:] if present and present[0] == CLOSED else present)
