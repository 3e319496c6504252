"""Which pages are generated, and where do they stand?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from autoscaler.reference.decision_record import render_decision_record
from autoscaler.reference.knobs import render_knobs

# By their place below the top of the source tree.
PAGES: Mapping[Path, Callable[[], str]] = {
    Path("autoscaler/DECISION_RECORD.md"): render_decision_record,
    Path("policies/KNOBS.md"): render_knobs,
}
