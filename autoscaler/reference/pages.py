"""Which pages are generated, and where do they stand?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from autoscaler.reference.decision_record import render_decision_record
from autoscaler.reference.knobs import render_knobs
from autoscaler.reference.record_fields import render_record_fields

# By their place below the top of the source tree.
PAGES: Mapping[Path, Callable[[], str]] = {
    Path("autoscaler/DECISION_RECORD.md"): render_decision_record,
    Path("policies/KNOBS.md"): render_knobs,
    Path("autoscaler/record_fields.txt"): render_record_fields,
}
