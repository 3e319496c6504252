"""Has a field or a default of the decision record changed without a new schema version?

A record leaves out what has its default, so a line that was written yesterday means something else where a default has
changed since. `autoscaler/record_fields.txt` holds what the present version promises: `make reference` adds new fields
to it, and takes nothing away or back before the version has grown.
"""

from __future__ import annotations

from pathlib import Path

from autoscaler.decision_record import SCHEMA_VERSION
from autoscaler.reference.decision_record import record_fields

PROMISED = Path(__file__).parents[1] / "record_fields.txt"
_HEAD = f"schema version {SCHEMA_VERSION}"


def promised_fields() -> frozenset[str]:
    """What has been promised of this version, a line a field; nothing of a version that is new."""
    head, *lines = PROMISED.read_text(encoding="utf-8").splitlines() if PROMISED.exists() else [""]
    return frozenset(lines) if head == _HEAD else frozenset()


def broken_promises() -> list[str]:
    """Fields that are gone, or whose type or default is another one now."""
    return sorted(promised_fields() - frozenset(record_fields()))


def render_record_fields() -> str:
    """The page `autoscaler/record_fields.txt`: what was promised before, and what is new."""
    return "\n".join([_HEAD, *sorted(promised_fields() | frozenset(record_fields()))]) + "\n"
