"""Can the files be written that were asked for, and over nothing that is read? Said before a run that takes long."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def output_problems(outputs: Mapping[str, Path | None], inputs: Iterable[tuple[str, str | Path]]) -> Iterator[str]:
    """What is wrong with each output, by its option; `inputs` are (what it is, file) pairs that must stay as they are.

    Inputs that are no files are left out. Devices and pipes may be given more than once.
    """
    taken = {Path(path).resolve(): what for what, path in inputs if Path(path).is_file()}
    for option, path in outputs.items():
        if path is None:
            continue
        place = path.resolve()
        if place in taken:
            yield f"{option} {path}: this is {taken[place]} already; give another file"
        elif not path.parent.is_dir():
            yield f"{option} {path}: cannot be written: its folder does not exist"
        elif path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            yield f"{option} {path}: cannot be written: {'it is a folder' if path.is_dir() else 'no permission'}"
        if path.is_file() or not path.exists():
            taken.setdefault(place, option)


def write_file(path: Path, content: bytes) -> None:
    """Writes all of it. An OSError names the file, also that of a full disk."""
    with naming(path):
        path.write_bytes(content)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Gives an OSError from within that names no file the name of this one."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
