"""How does a user's file read with a few values changed? As before, but for these values and a comment beside each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from autoscaler.api.yaml_documents import YamlDocument, YamlProblem, read_documents
from autoscaler.tuning.dimension import Value, shown_value
from autoscaler.tuning.policy_variant import NoSuchItem, path_parts, short_path, with_values

# The first line of what stands above a tuned policy, up to the first empty line.
HEAD = "# Tuned by tokenscaler tune, in simulation."
_OLD_MARK = re.compile(r"(?:\s+#|;) tuned: [^#;]*$")


@dataclass(frozen=True, slots=True)
class Change:
    """A parameter's value before and after; `was` in words, such as "300 (default)"."""

    path: str
    was: str
    value: Value

    def shown(self) -> str:
        """`scaleDown.stabilizationWindowSeconds 300 (default) -> 120`."""
        return f"{short_path(self.path)} {self.was} -> {shown_value(self.value)}"


@dataclass(frozen=True, slots=True)
class _Edit:
    """Characters from `start` to `end` of the text are replaced."""

    start: int
    end: int
    text: str


def changed_text(text: str, place: int, changes: Sequence[Change], head: Sequence[str]) -> str:
    """The text with values changed in its document number `place`, and `head` as comments above everything.

    Whatever else stands in it stays as it is. Where a value cannot be put into the text (it comes from an anchor), the
    documents are written anew, without their comments, and the head says so.
    """
    text = _without_head(text)
    documents = read_documents(text)
    assert not isinstance(documents, YamlProblem)
    values = {change.path: change.value for change in changes}
    wanted = [document.content for document in documents]
    changed = with_values(documents[place].content, values)
    assert not isinstance(changed, NoSuchItem)
    wanted[place] = changed
    edited = _edited(text, documents[place], changes)
    if edited is None or _contents(edited) != wanted:
        edited = yaml.safe_dump_all([_plain(each) for each in wanted], sort_keys=False, width=120)
        note = "The comments of the file are lost: a changed value has no place of its own in it."
        head = [*head, note, *(change.shown() for change in changes)]
    comments = "".join(f"# {line}\n" for line in head)
    return f"{HEAD}\n{comments}\n{edited}"


def _contents(text: str) -> list[Any] | None:
    documents = read_documents(text)
    return None if isinstance(documents, YamlProblem) else [document.content for document in documents]


def _without_head(text: str) -> str:
    if not text.startswith(HEAD):
        return text
    lines = text.splitlines(keepends=True)
    comments = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(lines[comments:]).removeprefix("\r").removeprefix("\n")


def _edited(text: str, document: YamlDocument, changes: Sequence[Change]) -> str | None:
    """The text with the changes in place; None where a value has no place of its own."""
    edits: list[_Edit] = []
    additions: dict[int, _Addition] = {}  # by the node that lacks something
    marks: dict[int, list[str]] = {}  # what is said at the end of a line, by the place of its end
    for change in changes:
        node, missing = _nearest(document.node, ("spec", *path_parts(change.path)))
        names = tuple(part for part in missing if isinstance(part, str))
        if len(names) < len(missing):
            return None
        if names:
            addition = additions.setdefault(id(node), _Addition(node))
            addition.put(names, change)
        else:
            edits.append(_Edit(node.start_mark.index, node.end_mark.index, _flow(change.value)))
        if not names or not addition.has_lines_of_its_own:
            marks.setdefault(_line_end(text, node.end_mark.index), []).append(change.shown())
    edits += [addition.edit() for addition in additions.values()]
    # Of what begins at one place the mark stands last in the line, so it is put in first.
    edits = [_mark(text, end, words) for end, words in marks.items()] + edits
    for edit in sorted(edits, key=lambda each: each.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


@dataclass(frozen=True, slots=True)
class _Addition:
    """Fields that a node lacks: at the beginning of a mapping, or in the place of a null."""

    node: yaml.Node
    fields: dict[str, Any] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)

    @property
    def has_lines_of_its_own(self) -> bool:
        return isinstance(self.node, yaml.MappingNode) and not self.node.flow_style

    def put(self, names: tuple[str, ...], change: Change) -> None:
        block = self.fields
        for name in names[:-1]:
            block = block.setdefault(name, {})
        block[names[-1]] = change.value
        self.words.append(change.shown())

    def edit(self) -> _Edit:
        start, end = self.node.start_mark.index, self.node.end_mark.index
        inside = _flow(self.fields)
        if self.has_lines_of_its_own:
            lines = [f"{name}: {_flow(value)}" for name, value in self.fields.items()]
            lines[-1] += f" # tuned: {', '.join(self.words)}"
            column = " " * self.node.start_mark.column
            return _Edit(start, start, "".join(f"{line}\n{column}" for line in lines))
        if isinstance(self.node, yaml.MappingNode):
            return _Edit(start + 1, start + 1, inside[1:-1] + (", " if self.node.value else ""))
        # A null may be nothing at all behind a colon.
        return _Edit(start, end, inside if end > start else f" {inside}")


def _nearest(node: yaml.Node, parts: tuple[str | int, ...]) -> tuple[yaml.Node, tuple[str | int, ...]]:
    """The node at a path, or the last one on the way to it, with the part of the path that is missing in it."""
    for number, part in enumerate(parts):
        if isinstance(node, yaml.MappingNode):
            found = next((value for key, value in node.value if key.value == part), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            found = node.value[part]
        else:
            found = None
        if found is None:
            return node, parts[number:]
        node = found
    return node, ()


def _mark(text: str, end: int, words: Sequence[str]) -> _Edit:
    begin = text.rfind("\n", 0, end) + 1
    line = text[begin:end].rstrip()
    old = _OLD_MARK.search(line)
    start = begin + (old.start() if old else len(line))
    is_comment = " #" in text[begin:start]
    return _Edit(start, end, f"{';' if is_comment else ' #'} tuned: {', '.join(words)}")


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return end - 1 if text[end - 1 : end] == "\r" else end


def _flow(value: Any) -> str:
    dumped = yaml.safe_dump(_plain(value), default_flow_style=True, sort_keys=False, width=10_000)
    return dumped.removesuffix("...\n").strip()


def _plain(value: Any) -> Any:
    """Whole numbers without a fraction, as people write them."""
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
