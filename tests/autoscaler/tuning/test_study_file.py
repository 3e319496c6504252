"""What has been run stays run, and nothing else is taken for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoscaler.tuning.figures import RunFigures
from autoscaler.tuning.study_file import RunKey, StudyFile, StudyRefused, open_study

SUBJECT = {"policy": "a", "fleet": "b"}
KEY = RunKey("search", '["policy",{}]', "day", 1)
FIGURES = RunFigures("day", 1, 1.0, 100, 3, 2.5, 4, 2, 3)


def opened(path: Path, subject: dict[str, str] | None = None) -> StudyFile:
    study = open_study(path, SUBJECT if subject is None else subject)
    assert isinstance(study, StudyFile), study
    return study


def a_study(path: Path) -> Path:
    with opened(path) as study:
        study.add(KEY, FIGURES)
    return path


def test_what_was_run_is_found_again(tmp_path: Path) -> None:
    path = a_study(tmp_path / "s.study")
    with opened(path) as study:
        assert study.runs == {KEY: FIGURES}


def test_a_run_is_in_the_file_as_soon_as_it_is_added(tmp_path: Path) -> None:
    path = tmp_path / "s.study"
    with opened(path) as study:
        study.add(KEY, FIGURES)
        study.add(KEY, FIGURES)
        assert len(path.read_bytes().splitlines()) == 2


def test_a_line_that_was_not_written_to_its_end_is_done_again(tmp_path: Path) -> None:
    path = a_study(tmp_path / "s.study")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"part":"search","contend')
    with opened(path) as study:
        assert study.runs == {KEY: FIGURES}
    assert path.read_bytes() == whole


@pytest.mark.parametrize("content", [b"", b'{"tokenscaler_st'], ids=["an empty file", "half a first line"])
def test_a_study_of_nothing_begins_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.study"
    path.write_bytes(content)
    with opened(path) as study:
        assert not study.runs


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"kind: Deployment\n", "line 1: this is no study of tokenscaler tune", id="another file"),
        pytest.param(b'{"tokenscaler_study":99}\n', "in a format that this version does not read", id="a later format"),
        pytest.param(
            b'{"tokenscaler_study":1,"policy":"x","fleet":"b"}\n', "a study of another policy;", id="another policy"
        ),
        pytest.param(
            b'{"tokenscaler_study":1}\n', "a study of another policy and another fleet;", id="another everything"
        ),
        pytest.param(
            b'{"tokenscaler_study":1,"policy":"a","fleet":"b"}\n{"part":1}\n', "line 2: not a run", id="no run"
        ),
        pytest.param(b'{"tokenscaler_study":1,"policy":"a","fleet":"b"}\nnothing\n', "line 2: not a run", id="no JSON"),
    ],
)
def test_what_is_refused_stays_as_it_is(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "s.study"
    path.write_bytes(content)
    study = open_study(path, SUBJECT)
    assert isinstance(study, StudyRefused)
    assert problem in study.problem
    assert "give another --study" in study.problem
    assert path.read_bytes() == content


def test_two_searches_never_share_a_study(tmp_path: Path) -> None:
    path = tmp_path / "s.study"
    with opened(path):
        study = open_study(path, SUBJECT)
        assert isinstance(study, StudyRefused)
        assert "another process is working on this study" in study.problem
    opened(path).__exit__(None, None, None)
