"""Which taints do nodes have, and which of them does a pod put up with?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

HARD_EFFECTS = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a NodePool's nodes."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Toleration:
    """What a pod puts up with; an empty key tolerates all, an empty effect every effect."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """Whether the pod may run beside this taint, as the scheduler sees it."""
        if self.effect and self.effect != taint.effect:
            return False
        if not self.key:
            return self.operator == "Exists"
        return self.key == taint.key and (self.operator == "Exists" or self.value == taint.value)


def tolerates_all(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> bool:
    """Whether none of the taints keeps off a pod with these tolerations; what is merely preferred keeps nobody off."""
    tolerated = tuple(tolerations)
    hard = [taint for taint in taints if taint.effect in HARD_EFFECTS]
    return all(any(toleration.tolerates(taint) for toleration in tolerated) for taint in hard)


def read_taints(documents: Iterable[Mapping[str, Any]] | None) -> tuple[Taint, ...]:
    """The taints of a node or a NodePool; a value that is left out is empty."""
    return tuple(
        Taint(str(each.get("key")), str(each.get("value") or ""), str(each.get("effect"))) for each in documents or ()
    )


def read_tolerations(documents: Iterable[Mapping[str, Any]] | None) -> tuple[Toleration, ...]:
    """The tolerations of a pod; an operator that is left out is Equal."""
    return tuple(
        Toleration(
            str(each.get("key") or ""),
            str(each.get("operator") or "Equal"),
            str(each.get("value") or ""),
            str(each.get("effect") or ""),
        )
        for each in documents or ()
    )
