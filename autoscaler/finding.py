"""Something that `tokenscaler doctor` has found not to be right, and how it is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console


@dataclass(frozen=True, slots=True)
class Finding:
    """Which object, which field, its value, what follows from that, what to do, and what could be done instead."""

    object: str
    field: str
    value: str
    consequence: str
    fix: str
    other_fixes: tuple[str, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """The finding for JSON."""
        return asdict(self)


def print_findings(findings: Iterable[Finding], console: Console) -> None:
    """A paragraph for each."""
    for finding in findings:
        console.print(f"problem: {finding.object}: {finding.field} is {finding.value}", style="yellow")
        console.print(f"  so {finding.consequence}")
        for fix in (finding.fix, *finding.other_fixes):
            console.print(f"  - {fix}")
