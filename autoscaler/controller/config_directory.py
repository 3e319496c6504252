"""InferenceScalers from YAML files, for clusters where no CRD may be installed.

Files are read again when they change. A bad file is named with line and reason, its last good objects stay in force.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler, parse_inference_scaler

logger = logging.getLogger(__name__)

MAXIMUM_FILE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class BadFile:
    """A file that could not be taken over: `problem` names the line where one is known."""

    path: Path
    problem: str


@dataclass(frozen=True, slots=True)
class _ReadFile:
    fingerprint: tuple[int, int, int]
    scalers: tuple[InferenceScaler, ...]


class ConfigDirectory:
    """A folder of `*.yaml` and `*.yml` files; several documents may stand in one file."""

    def __init__(self, directory: Path) -> None:
        if not directory.is_dir():
            raise NotADirectoryError(f"{directory} is not a folder with InferenceScaler YAML files")
        self._directory = directory
        self._files: dict[Path, _ReadFile] = {}
        self._bad_files: dict[Path, BadFile] = {}

    @property
    def bad_files(self) -> tuple[BadFile, ...]:
        """The files that were refused when they were last read."""
        return tuple(self._bad_files.values())

    def scalers(self) -> Sequence[InferenceScaler | InvalidInferenceScaler]:
        """The objects of all files, the last good ones where a file is bad now. Of one name twice, the first file's."""
        paths = sorted(p for p in self._directory.iterdir() if p.suffix in {".yaml", ".yml"} and p.is_file())
        for path in paths:
            self._read_if_changed(path)
        for gone in self._files.keys() - set(paths):
            del self._files[gone]
        for gone in self._bad_files.keys() - set(paths):
            del self._bad_files[gone]
        by_key: dict[tuple[str, str], InferenceScaler] = {}
        for path in paths:
            for scaler in self._files[path].scalers if path in self._files else ():
                by_key.setdefault(scaler.key, scaler)
        return tuple(by_key.values())

    def _read_if_changed(self, path: Path) -> None:
        try:
            stat = path.stat()
        except OSError:
            return  # renamed away between listing and reading: the next tick sees the folder as it is then
        fingerprint = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        known = self._files.get(path)
        if known is not None and known.fingerprint == fingerprint:
            return
        result = _read(path)
        if isinstance(result, BadFile):
            if self._bad_files.get(path) != result:
                logger.error("config file refused", extra={"path": str(path), "problem": result.problem})
            self._bad_files[path] = result
            return
        self._bad_files.pop(path, None)
        self._files[path] = _ReadFile(fingerprint, result)


def _read(path: Path) -> tuple[InferenceScaler, ...] | BadFile:
    try:
        if path.stat().st_size > MAXIMUM_FILE_BYTES:
            return BadFile(path, f"larger than {MAXIMUM_FILE_BYTES} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return BadFile(path, f"cannot be read: {error}")
    scalers: list[InferenceScaler] = []
    try:
        for line, document in _documents(text):
            parsed = _parse(document)
            if isinstance(parsed, str):
                return BadFile(path, f"line {line}: {parsed}")
            if parsed is not None:
                scalers.append(parsed)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return BadFile(path, f"line {line}: not YAML: {error.problem}")
    except yaml.YAMLError as error:
        return BadFile(path, f"not YAML: {error}")
    return tuple(scalers)


def _documents(text: str) -> Iterator[tuple[int, Any]]:
    """(line where the document begins, document) for each document that is not empty."""
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                yield node.start_mark.line + 1, loader.construct_document(node)
    finally:
        loader.dispose()


def _parse(document: Any) -> InferenceScaler | str | None:
    """The scaler; a sentence about what is wrong; None for other kinds of objects (they may share the folder)."""
    if document is None:
        return None
    if not isinstance(document, Mapping):
        return "a Kubernetes object is wanted, with apiVersion, kind, metadata and spec"
    if document.get("kind") != "InferenceScaler":
        return None
    parsed = parse_inference_scaler(dict(document))
    if isinstance(parsed, InvalidInferenceScaler):
        return f"InferenceScaler {parsed.namespace}/{parsed.name}: " + "; ".join(parsed.problems)
    return parsed
