"""What has been run already? A file with one line a finished run, so that a search that was stopped goes on.

The first line says what the study is of: the policy, the loads, the fleet. A run is found again by its part, its
contender, its load and its seed, so that a search asked for once more repeats nothing.
"""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from io import BufferedRandom
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from autoscaler.tuning.figures import RunFigures

FORMAT = 1
_FIGURES = {field.name for field in fields(RunFigures)}


@dataclass(frozen=True, slots=True)
class StudyRefused:
    """Why a study cannot be gone on with, and what to do."""

    problem: str


@dataclass(frozen=True, slots=True)
class RunKey:
    """Which run it is; `contender` is `contender_key`."""

    part: str
    contender: str
    load: str
    seed: int


class Study:
    """What has been run, kept in memory alone."""

    def __init__(self, runs: dict[RunKey, RunFigures] | None = None) -> None:
        self._runs = {} if runs is None else runs

    @property
    def runs(self) -> Mapping[RunKey, RunFigures]:
        """All that has been run."""
        return self._runs

    def add(self, key: RunKey, figures: RunFigures) -> None:
        """Keeps one run."""
        self._runs[key] = figures


class StudyFile(Study):
    """An open study in a file. It belongs to this process alone until it is closed."""

    def __init__(self, lines: BufferedRandom, runs: dict[RunKey, RunFigures]) -> None:
        """Made by `open_study`."""
        super().__init__(runs)
        self._lines = lines

    def add(self, key: RunKey, figures: RunFigures) -> None:
        """Keeps one run; it is in the file when this returns."""
        if key not in self._runs:
            super().add(key, figures)
            self._lines.write(orjson.dumps({"part": key.part, "contender": key.contender, **asdict(figures)}) + b"\n")
            self._lines.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.close()


def open_study(path: Path, subject: Mapping[str, str]) -> StudyFile | StudyRefused:
    """The study at `path` of `subject` (what it is of, by a word for each), begun anew where there is no file.

    A last line that was not written to its end is left out, and that run is done again. Raises OSError where the file
    cannot be read or written. A refused file is left as it is.
    """
    lines = path.open("a+b")
    refused = _lock(path, lines)
    if refused is None:
        lines.seek(0)
        content = lines.read()
        whole = content.rfind(b"\n") + 1
        read = _read(path, content[:whole], subject)
        if not isinstance(read, StudyRefused):
            lines.truncate(whole)
            if not whole:
                lines.write(orjson.dumps({"tokenscaler_study": FORMAT, **subject}) + b"\n")
                lines.flush()
            return StudyFile(lines, read)
        refused = read
    lines.close()
    return refused


def _lock(path: Path, lines: BufferedRandom) -> StudyRefused | None:
    try:
        fcntl.flock(lines, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return StudyRefused(f"{path}: another process is working on this study; wait for it or give another --study")
    return None


def _read(path: Path, content: bytes, subject: Mapping[str, str]) -> dict[RunKey, RunFigures] | StudyRefused:
    lines = content.splitlines()
    if not lines:
        return {}
    elsewhere = "give another --study, or remove it"
    head = _document(lines[0])
    if head is None or "tokenscaler_study" not in head:
        return StudyRefused(f"{path}, line 1: this is no study of tokenscaler tune; {elsewhere}")
    if head["tokenscaler_study"] != FORMAT:
        return StudyRefused(f"{path}, line 1: a study in a format that this version does not read; {elsewhere}")
    different = [name for name, value in subject.items() if head.get(name) != value]
    if different:
        return StudyRefused(f"{path}: this is a study of {_listed(different)}; {elsewhere}")
    runs: dict[RunKey, RunFigures] = {}
    for number, line in enumerate(lines[1:], start=2):
        document = _document(line)
        if document is None or document.keys() != _FIGURES | {"part", "contender"}:
            return StudyRefused(f"{path}, line {number}: not a run of a study; {elsewhere}")
        part, contender = document.pop("part"), document.pop("contender")
        figures = RunFigures(**document)
        runs[RunKey(part, contender, figures.load, figures.seed)] = figures
    return runs


def _document(line: bytes) -> dict[str, Any] | None:
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def _listed(words: list[str]) -> str:
    return " and ".join(f"another {word}" for word in words)
