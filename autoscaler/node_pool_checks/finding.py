"""Something about nodes that is not right."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """Which object, which field of it, its value, what follows from that, and what to do."""

    object: str
    field: str
    value: str
    consequence: str
    fix: str

    def to_document(self) -> dict[str, Any]:
        """The finding for JSON."""
        return asdict(self)
