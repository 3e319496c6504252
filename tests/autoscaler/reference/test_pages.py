"""The generated pages are what the types say, and say of each knob what a user must know."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoscaler.api.accelerator_pool import AcceleratorPoolSpec
from autoscaler.api.inference_scaler import InferenceScalerSpec
from autoscaler.api.structural_schema import structural_schema
from autoscaler.reference.knobs import Knob, knobs
from autoscaler.reference.pages import PAGES
from autoscaler.reference.record_fields import broken_promises, promised_fields

ROOT = Path(__file__).parents[3]
KNOBS = [
    pytest.param(knob, id=f"{spec.__name__}.{knob.path}")
    for spec in (InferenceScalerSpec, AcceleratorPoolSpec)
    for knob in knobs(structural_schema(spec))
]


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_the_page_is_what_the_types_say(path: Path) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == PAGES[path](), "`make reference` writes it anew"


def test_a_field_or_default_of_the_record_changes_only_with_its_schema_version() -> None:
    assert broken_promises() == [], "old records mean something else now: raise SCHEMA_VERSION (decision_record.py)"


@pytest.mark.parametrize(
    "promise",
    [
        "ReplicaCounts.ready: whole number, required",
        "ReplicaCounts.starting: whole number, `0`",
        "LearnedCapacity.safeUtilization: number, `0.7`",
        "ScaleDownRules.stabilizationWindowSeconds: whole number, `300`",
        "KVCacheParameters.headroomPercent: number, `15`",
    ],
)
def test_a_record_promises_its_defaults_and_the_policys(promise: str) -> None:
    assert promise in promised_fields()


@pytest.mark.parametrize("knob", KNOBS)
def test_a_knob_says_what_it_is_in_which_bounds_and_its_default(knob: Knob) -> None:
    schema = knob.schema
    description = schema.get("description", "")
    assert description.endswith(".")
    if schema["type"] in ("integer", "number"):
        assert knob.unit
        assert "minimum" in schema
        assert "maximum" in schema
    default = schema.get("default")
    if isinstance(default, bool):
        assert f"{str(default).capitalize()} (default)" in description
    elif isinstance(default, int | float):
        assert f"Default {default:g}" in description
    elif isinstance(default, str) and len(schema.get("enum", (1, 2))) > 1:
        assert f"{default} (default)" in description or f"Default {default}" in description


def test_a_number_of_which_nothing_says_the_unit_is_refused() -> None:
    schema = {"type": "object", "properties": {"speed": {"type": "number", "minimum": 0, "maximum": 9}}}
    with pytest.raises(ValueError, match="speed: neither its name nor UNITS says in which unit"):
        list(knobs(schema))


def test_every_type_in_a_record_is_explained_once() -> None:
    page = PAGES[Path("autoscaler/DECISION_RECORD.md")]()
    headings = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    assert len(set(headings)) == len(headings)
    assert {"DecisionInput", "PoolSignal", "ScalingHistory", "RecordedVote", "RecordedStep", "Reason"} <= set(headings)
    for heading in headings:
        assert f"## {heading}\n\n" in page
