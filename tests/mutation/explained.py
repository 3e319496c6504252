"""Why can no test find a fault that was missed?"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.mutation.faults import Fault

FILE = Path(__file__).with_name("explained.toml")


class Explanations:
    """The reasons that are written down, by function and faulty line, and those that hold everywhere."""

    def __init__(self, file: Path = FILE) -> None:
        self._by_place: dict[str, dict[str, str]] = tomllib.loads(file.read_text(encoding="utf-8"))

    def of(self, fault: Fault) -> str | None:
        """The reason; None where the fault should be found."""
        written = self._by_place.get(fault.place, {}).get(fault.after)
        return written or _reason_everywhere(fault)


def _reason_everywhere(fault: Fault) -> str | None:
    if _without_strict(fault.before) == _without_strict(fault.after):
        return "both sequences are as long, and strict says so"
    if fault.after.replace("None", "False") == fault.before.replace("None", "False"):
        return "None is as false as False, and mypy refuses it"
    return None


def _without_strict(line: str) -> str:
    return re.sub(r",? *(strict=\w+)?\)", ")", line)
