from __future__ import annotations

import re
from html.parser import HTMLParser

from autoscaler.replay.clairvoyant import planned_policy
from autoscaler.replay.comparison import PolicyOutcome, Stage
from autoscaler.replay.fleet_description import Fleet, fleet_from
from autoscaler.replay.report_html import report_page
from autoscaler.replay.report_json import Report
from autoscaler.replay.trace import RequestTrace, shipped_trace
from autoscaler.replay.trace_load import trace_load


def a_page(**changes: object) -> str:
    fleet, trace = fleet_from("llama-3.1-8b-bf16-1xa100-vllm"), shipped_trace("azure_conversation_2023")
    assert isinstance(fleet, Fleet)
    assert isinstance(trace, RequestTrace)
    load = trace_load(trace, 3.0, 0.0, 300.0, 0)
    stage = Stage(fleet, load)
    counts = (2,) * 5 + (4,) * 5 + (3,) * 10
    result = stage.run(planned_policy("<mine>", counts), load.draw(1), 1)
    given = {"assumptions": ("an assumption & more",)} | changes
    return report_page(
        Report(fleet, load, "trace.csv", (1,), (PolicyOutcome("<mine>", (result,)),), None, **given)  # type: ignore[arg-type]
    )


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        if tag not in {"meta", "path", "line"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_fetches_nothing() -> None:
    page, tags = a_page(), Tags()
    tags.feed(page)
    assert tags.open == []
    assert "script" not in tags.found
    assert not re.search(r"(src|href)\s*=|url\(|@import", page)
    assert tags.found.count("svg") == 3


def test_every_decision_is_told_where_the_pointer_rests() -> None:
    page = a_page()
    assert "<title>&lt;mine&gt;, 1.2 min: 2 -&gt; 4 Planned\n4: planned beforehand</title>" in page
    assert page.count("<circle") == 2


def test_axes_name_round_values_and_no_part_of_a_replica() -> None:
    words = re.findall(r"<text [^>]*>([^<]*)</text>", a_page())
    assert " 5 min 0 1 2 3 4 0 min 1 min 2 min 3 min 4 min 5 min " in " ".join(words)


def test_names_and_assumptions_are_text_and_no_markup() -> None:
    page = a_page()
    assert "<mine>" not in page
    assert "an assumption &amp; more" in page


def test_a_run_that_was_stopped_says_so() -> None:
    assert "Stopped before the end" in a_page(was_stopped=True)
    assert "Stopped before the end" not in a_page()
