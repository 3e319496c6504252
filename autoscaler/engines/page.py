"""What stands on a /metrics page, read as tolerantly as Prometheus' users need: one bad line does not hide the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

_SHOWN_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Page:
    """The samples of a page by metric name, and what was wrong with it as sentences."""

    samples: Mapping[str, tuple[Sample, ...]]
    problems: tuple[str, ...]


def parse_page(text: str) -> Page:
    """Text of the Prometheus or OpenMetrics format -> its samples. An empty body, JSON or HTML: none, and a problem."""
    start = text.lstrip("\ufeff \t\r\n")
    if not start:
        return Page({}, ("The page is empty: the engine answers but has nothing to tell (yet).",))
    if start[0] in "[{":
        return Page(
            {}, ("The page is JSON, not Prometheus text. trtllm-serve: its Prometheus page is /prometheus/metrics.",)
        )
    if start[0] == "<":
        return Page({}, ("The page is HTML, not Prometheus text: another server, a login page, or a wrong path.",))
    samples: dict[str, list[Sample]] = {}
    unreadable: list[str] = []
    for line in text.splitlines():
        for sample in _samples_of(line, unreadable):
            samples.setdefault(sample.name, []).append(sample)
    problems = []
    if unreadable:
        example = unreadable[0].strip()[:_SHOWN_CHARACTERS]
        problems.append(f"{len(unreadable)} lines cannot be read, the first is: {example}")
    return Page({name: tuple(found) for name, found in samples.items()}, tuple(problems))


def _samples_of(line: str, unreadable: list[str]) -> list[Sample]:
    text = line.strip()
    if not text or text.startswith("#"):
        return []
    try:
        # A family of its own for each line: whole pages with a repeated or misplaced TYPE line would be refused.
        return [
            sample for family in text_string_to_metric_families(_without_exemplar(text)) for sample in family.samples
        ]
    except (ValueError, IndexError, KeyError):
        unreadable.append(line)
        return []


def _without_exemplar(line: str) -> str:
    """OpenMetrics allows ` # {...} value` behind a sample; the text format's parser does not know it."""
    end_of_labels = line.rfind("}", 0, line.find(" # {")) if " # {" in line else -1
    if end_of_labels < 0 and " # {" not in line:
        return line
    cut = line.find(" # {", max(end_of_labels, 0))
    return line[:cut] if cut >= 0 else line
