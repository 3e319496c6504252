"""InferenceScalers from YAML files, for clusters where no CRD may be installed.

Files are read again when they change. A bad file is named with line and reason, its last good objects stay in force.
What a file holds is compared, never its time stamps: those repeat within a few milliseconds, are carried along by
copying tools and go back with a clock that is set. And a change counts when it has been seen twice, so that a file that
is just being written, or replaced by way of its removal, is not taken for what it happens to hold at that moment.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from autoscaler.api.document import GROUP
from autoscaler.api.inference_scaler import KIND, InferenceScaler, InvalidInferenceScaler, parse_inference_scaler

logger = logging.getLogger(__name__)

MAXIMUM_FILE_BYTES = 4 * 1024 * 1024
# Kinds of our own group that may stand in the folder and are not read from it.
OTHER_KINDS = frozenset({"AcceleratorPool"})


@dataclass(frozen=True, slots=True)
class BadFile:
    """A file that is not in force, wholly or in part: `problem` names the line where one is known."""

    path: Path
    problem: str


@dataclass(frozen=True, slots=True)
class _Content:
    """What was found at a path: a text, a reason why there is none, or no file at all."""

    text: str | None = None
    problem: str | None = None


_NO_FILE = _Content()


class ConfigDirectory:
    """A folder of `*.yaml` and `*.yml` files (not of its sub-folders); several documents may stand in one file."""

    def __init__(self, directory: Path) -> None:
        """Reads the folder for the first time at the first `scalers()`. Raises NotADirectoryError."""
        if not directory.is_dir():
            raise NotADirectoryError(f"{directory} is not a folder with InferenceScaler YAML files")
        self._directory = directory
        self._taken: dict[Path, _Content] = {}
        self._waiting: dict[Path, _Content] = {}
        self._scalers: dict[Path, tuple[InferenceScaler, ...]] = {}
        self._refused: dict[Path, BadFile] = {}
        self._bad_files: tuple[BadFile, ...] = ()
        self._is_first_reading = True

    @property
    def bad_files(self) -> tuple[BadFile, ...]:
        """What is wrong in the folder, as of the last reading: refused files, names that come twice."""
        return self._bad_files

    def scalers(self) -> Sequence[InferenceScaler | InvalidInferenceScaler]:
        """The objects of all files, the last good ones where a file is bad now. Of one name twice, the first file's."""
        try:
            listed = {path for path in self._directory.iterdir() if path.suffix in {".yaml", ".yml"} and path.is_file()}
        except OSError as error:
            # A folder that cannot be read is no folder without files: everything stays in force.
            scalers, twice = self._in_force()
            self._tell((BadFile(self._directory, f"cannot be read: {error.strerror}"), *self._refused.values(), *twice))
            return scalers
        for path in sorted(listed | self._taken.keys() | self._waiting.keys()):
            self._look_at(path, _content(path) if path in listed else _NO_FILE)
        self._is_first_reading = False
        scalers, twice = self._in_force()
        self._tell((*self._refused.values(), *twice))
        return scalers

    def _look_at(self, path: Path, content: _Content) -> None:
        is_new = content != self._taken.get(path, _NO_FILE)
        was_seen_before = self._is_first_reading or self._waiting.pop(path, None) == content
        if is_new and was_seen_before:
            self._take_over(path, content)
        elif is_new:
            self._waiting[path] = content

    def _take_over(self, path: Path, content: _Content) -> None:
        if content == _NO_FILE:
            for files in (self._taken, self._scalers, self._refused):
                files.pop(path, None)
            return
        self._taken[path] = content
        result = _read(path, content)
        if isinstance(result, BadFile):
            self._refused[path] = result
        else:
            self._refused.pop(path, None)
            self._scalers[path] = result

    def _in_force(self) -> tuple[tuple[InferenceScaler, ...], tuple[BadFile, ...]]:
        """The scalers, one of each name, and the files that repeat a name of another file."""
        found: dict[tuple[str, str], tuple[Path, InferenceScaler]] = {}
        twice = []
        for path in sorted(self._scalers):
            for scaler in self._scalers[path]:
                first, _ = found.setdefault(scaler.key, (path, scaler))
                if first != path:
                    name = f"{KIND} {scaler.namespace}/{scaler.name}"
                    twice.append(BadFile(path, f"{name} stands in {first.name} too, and that one is in force"))
        return tuple(scaler for _, scaler in found.values()), tuple(twice)

    def _tell(self, bad_files: tuple[BadFile, ...]) -> None:
        for bad in bad_files:
            if bad not in self._bad_files:
                logger.error("config file refused", extra={"path": str(bad.path), "problem": bad.problem})
        for path in {bad.path for bad in self._bad_files} - {bad.path for bad in bad_files}:
            logger.info("config file is right again or gone", extra={"path": str(path)})
        self._bad_files = bad_files


def _content(path: Path) -> _Content:
    try:
        with path.open("rb") as file:
            content = file.read(MAXIMUM_FILE_BYTES + 1)
    except FileNotFoundError:
        return _NO_FILE
    except OSError as error:
        return _Content(problem=f"cannot be read: {error.strerror}")
    if len(content) > MAXIMUM_FILE_BYTES:
        return _Content(problem=f"larger than {MAXIMUM_FILE_BYTES} bytes")
    try:
        return _Content(text=content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return _Content(problem=f"line {line}: not UTF-8")


def _read(path: Path, content: _Content) -> tuple[InferenceScaler, ...] | BadFile:
    """All scalers of the file, or the first thing that is wrong with it: a file is taken over whole or not at all."""
    if content.text is None:
        return BadFile(path, content.problem or "cannot be read")
    scalers: dict[tuple[str, str], InferenceScaler] = {}
    line = 1
    try:
        for node, document in _documents(content.text):
            line = node.start_mark.line + 1
            scaler = _parse(document, node)
            if isinstance(scaler, _Problem):
                return BadFile(path, f"line {scaler.line}: {scaler.text}")
            if scaler is None:
                continue
            if scaler.key in scalers:
                return BadFile(path, f"line {line}: {KIND} {scaler.namespace}/{scaler.name} stands here a second time")
            scalers[scaler.key] = scaler
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else line
        return BadFile(path, f"line {line}: not YAML: {error.problem or error.context}")
    except yaml.YAMLError as error:
        return BadFile(path, f"line {line}: not YAML: {' '.join(str(error).split())}")
    except (ValueError, RecursionError) as error:
        # What PyYAML lets through: a date like 2026-13-01, lists ten thousand deep, an object that holds itself.
        return BadFile(path, f"line {line} or after it: not YAML that can be read: {error}")
    return tuple(scalers.values())


def _documents(text: str) -> Iterator[tuple[yaml.Node, Any]]:
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                yield node, loader.construct_document(node)
    finally:
        loader.dispose()


@dataclass(frozen=True, slots=True)
class _Problem:
    text: str
    line: int


def _parse(document: Any, node: yaml.Node) -> InferenceScaler | _Problem | None:
    """The scaler; what is wrong; None for an empty document and for other kinds (they may share the folder)."""
    if document is None:
        return None
    if not isinstance(document, Mapping) or "kind" not in document:
        return _Problem("a Kubernetes object is wanted, with apiVersion, kind, metadata and spec", _line_of("", node))
    kind, group = document["kind"], str(document.get("apiVersion", "")).partition("/")[0]
    if kind != KIND:
        if group == GROUP and kind not in OTHER_KINDS:
            return _Problem(f"{GROUP} has no kind {kind}; {KIND} is wanted", _line_of("kind", node))
        return None
    parsed = parse_inference_scaler({str(name): value for name, value in document.items()})
    if isinstance(parsed, InvalidInferenceScaler):
        text = f"{KIND} {parsed.namespace}/{parsed.name or '(no name)'}: {'; '.join(parsed.problems)}"
        return _Problem(text, _line_of(parsed.problems[0], node))
    return parsed


def _line_of(problem: str, node: yaml.Node) -> int:
    """The line of the field that a sentence begins with, or of the nearest field around it that the document has."""
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
