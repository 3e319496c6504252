"""InferenceScalers from YAML files, for clusters where no CRD may be installed.

Files are read again when they change. A bad file is named with line and reason, its last good objects stay in force.
What a file holds is compared, never its time stamps: those repeat within a few milliseconds, are carried along by
copying tools and go back with a clock that is set. And a change counts when it has been seen twice, so that a file that
is just being written, or replaced by way of its removal, is not taken for what it happens to hold at that moment.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autoscaler.api.document import GROUP
from autoscaler.api.inference_scaler import KIND, InferenceScaler, InvalidInferenceScaler, parse_inference_scaler
from autoscaler.api.yaml_documents import YamlDocument, YamlProblem, read_documents

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
    documents = read_documents(content.text)
    if isinstance(documents, YamlProblem):
        return BadFile(path, documents.text)
    for document in documents:
        scaler = _parse(document)
        if isinstance(scaler, str):
            return BadFile(path, scaler)
        if scaler is None:
            continue
        if scaler.key in scalers:
            name = f"{KIND} {scaler.namespace}/{scaler.name}"
            return BadFile(path, f"line {document.line}: {name} stands here a second time")
        scalers[scaler.key] = scaler
    return tuple(scalers.values())


def _parse(document: YamlDocument) -> InferenceScaler | str | None:
    """The scaler; what is wrong, with its line; None for an empty document or another kind (which may be there)."""
    content = document.content
    if content is None:
        return None
    if not isinstance(content, Mapping) or "kind" not in content:
        return f"line {document.line}: a Kubernetes object is wanted, with apiVersion, kind, metadata and spec"
    kind, group = content["kind"], str(content.get("apiVersion", "")).partition("/")[0]
    if kind != KIND:
        if group == GROUP and kind not in OTHER_KINDS:
            return f"line {document.line_of('kind')}: {GROUP} has no kind {kind}; {KIND} is wanted"
        return None
    try:
        parsed = parse_inference_scaler({str(name): value for name, value in content.items()})
    except (ValueError, RecursionError) as error:  # an object that holds itself
        return f"line {document.line} or after it: not YAML that can be read: {error}"
    if isinstance(parsed, InvalidInferenceScaler):
        name = f"{KIND} {parsed.namespace}/{parsed.name or '(no name)'}"
        return f"line {document.line_of(parsed.problems[0])}: {name}: {'; '.join(parsed.problems)}"
    return parsed
