"""Which documents stand in a YAML text, and on which line does a problem with one of them stand?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document as PyYAML's safe loader reads it, None for an empty one, and its nodes with their lines."""

    content: Any
    node: yaml.Node

    @property
    def line(self) -> int:
        """Where it begins, counted from 1."""
        line: int = self.node.start_mark.line
        return line + 1

    def line_of(self, problem: str) -> int:
        """The line of the field that a sentence begins with, or of the nearest field around it that there is."""
        return _line_of(problem, self.node)


@dataclass(frozen=True, slots=True)
class YamlProblem:
    """Why a text is no YAML, and on which line."""

    line: int
    text: str


def read_documents(text: str) -> tuple[YamlDocument, ...] | YamlProblem:
    """All documents in order; never raises."""
    found: list[YamlDocument] = []
    try:
        found.extend(_documents(text))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else _last_line(found)
        return YamlProblem(line, f"line {line}: not YAML: {error.problem or error.context}")
    except yaml.YAMLError as error:
        line = _last_line(found)
        return YamlProblem(line, f"line {line}: not YAML: {' '.join(str(error).split())}")
    except (ValueError, RecursionError) as error:
        # What PyYAML lets through: a date like 2026-13-01, lists ten thousand deep, an object that holds itself.
        line = _last_line(found)
        return YamlProblem(line, f"line {line} or after it: not YAML that can be read: {error}")
    return tuple(found)


def _documents(text: str) -> Iterator[YamlDocument]:
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                yield YamlDocument(loader.construct_document(node), node)
    finally:
        loader.dispose()


def _last_line(found: list[YamlDocument]) -> int:
    return found[-1].line if found else 1


def _line_of(problem: str, node: yaml.Node) -> int:
    place = problem.partition(" ")[0].rstrip(":").replace("[", ".").replace("]", "")
    line: int = node.start_mark.line + 1
    for part in place.split("."):
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == part), None)
            if found is None:
                return line
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and part.isdigit() and int(part) < len(node.value):
            node = node.value[int(part)]
            line = node.start_mark.line + 1
        else:
            return line
    return line
