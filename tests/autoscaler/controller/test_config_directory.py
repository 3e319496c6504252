"""A folder of YAML: what is in force after each change, and what is said about what is not."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.controller.config_directory import MAXIMUM_FILE_BYTES, ConfigDirectory

LOGGER = "autoscaler.controller.config_directory"


def a_document(name: str = "llama", namespace: str = "inference", maximum: object = 32) -> str:
    return f"""\
apiVersion: tokenscaler.io/v1alpha1
kind: InferenceScaler
metadata:
  name: {name}
  namespace: {namespace}
spec:
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}
  engine: vllm
  maxReplicas: {maximum}
  signals:
    kvCache: {{headroomPercent: 15}}
"""


def in_force(directory: ConfigDirectory) -> dict[str, int]:
    """Names and maxReplicas of what a tick sees."""
    return {
        f"{scaler.namespace}/{scaler.name}": scaler.spec.max_replicas
        for scaler in directory.scalers()
        if isinstance(scaler, InferenceScaler)
    }


def after_two_ticks(directory: ConfigDirectory) -> dict[str, int]:
    in_force(directory)
    return in_force(directory)


def problems(directory: ConfigDirectory) -> list[str]:
    return [f"{bad.path.name}: {bad.problem}" for bad in directory.bad_files]


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [str(vars(record).get("problem", record.message)) for record in caplog.records if record.name == LOGGER]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, {}, id="an empty folder has no objects"),
        pytest.param({"a.yaml": a_document()}, {"inference/llama": 32}, id="a file is in force at the first tick"),
        pytest.param(
            {"a.yml": a_document("one") + "---\n" + a_document("two")},
            {"inference/one": 32, "inference/two": 32},
            id="two documents stand in one file",
        ),
        pytest.param(
            {"a.yaml": "---\n---\n" + a_document() + "---\n# only a comment\n"},
            {"inference/llama": 32},
            id="empty documents are passed over",
        ),
        pytest.param({"a.yaml": ""}, {}, id="an empty file has no objects"),
        pytest.param({"a.yaml": "\ufeff" + a_document()}, {"inference/llama": 32}, id="a byte order mark is no fault"),
        pytest.param(
            {"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n" + a_document()},
            {"inference/llama": 32},
            id="objects of other kinds may share the file",
        ),
        pytest.param(
            {"a.yaml": "apiVersion: tokenscaler.io/v1alpha1\nkind: AcceleratorPool\nmetadata: {name: x}\n"},
            {},
            id="our own other kind may share the folder",
        ),
        pytest.param({"notes.txt": "kind: [", "a.yaml~": "kind: ["}, {}, id="other files are not read"),
    ],
)
def test_what_a_folder_holds_is_in_force(tmp_path: Path, files: dict[str, str], expected: dict[str, int]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    directory = ConfigDirectory(tmp_path)
    assert in_force(directory) == expected
    assert problems(directory) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(
            b"kind: [\n", "line 2: not YAML: expected the node content, but found '<stream end>'", id="not YAML"
        ),
        pytest.param(
            a_document().encode() + b"\tx: 1\n",
            "line 12: not YAML: found character '\\t' that cannot start any token",
            id="a tab in the last line",
        ),
        pytest.param(b"a: \x00\n", "line 1: not YAML: ", id="a byte that no text has"),
        pytest.param(b"# fine\n# fine\na: \xff\n", "line 3: not UTF-8", id="not UTF-8"),
        pytest.param(b"a: 2026-13-01\n", "line 1 or after it: not YAML that can be read: month", id="a month 13"),
        pytest.param(b"[" * 20_000, "line 1 or after it: not YAML that can be read: maximum recursion", id="too deep"),
        pytest.param(
            a_document().replace("spec:", "spec: &spec\n  missingData: *spec").encode(),
            "line 1 or after it: not YAML that can be read: ",
            id="an object that holds itself",
        ),
        pytest.param(b"- 1\n", "line 1: a Kubernetes object is wanted", id="a list"),
        pytest.param(b"just words\n", "line 1: a Kubernetes object is wanted", id="a text"),
        pytest.param(b"spec: {}\n", "line 1: a Kubernetes object is wanted", id="no kind"),
        pytest.param(
            b"apiVersion: tokenscaler.io/v1alpha1\nkind: InferenceScalar\n",
            "line 2: tokenscaler.io has no kind InferenceScalar; InferenceScaler is wanted",
            id="a misspelt kind of our own",
        ),
        pytest.param(
            a_document(maximum="many").encode(),
            "line 9: InferenceScaler inference/llama: spec.maxReplicas is",
            id="a field of the wrong type is named with its line",
        ),
        pytest.param(
            (a_document("one") + "---\n" + a_document("two").replace("headroomPercent", "headroom")).encode(),
            "line 23: InferenceScaler inference/two: spec.signals.kvCache.headroom is not a known field; did you mean",
            id="an unknown field of the second document is named with its line",
        ),
        pytest.param(
            a_document().replace("  maxReplicas: 32\n", "").encode(),
            "line 6: InferenceScaler inference/llama: spec.maxReplicas is missing",
            id="a missing field is named with the line of what should hold it",
        ),
        pytest.param(
            (a_document() + "---\n" + a_document()).encode(),
            "line 13: InferenceScaler inference/llama stands here a second time",
            id="the same name twice in one file",
        ),
        pytest.param(b"#" * (MAXIMUM_FILE_BYTES + 1), "larger than 4194304 bytes", id="a file that is too large"),
    ],
)
def test_a_bad_file_is_named_with_line_and_reason_and_its_last_good_objects_stay_in_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes, problem: str
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(a_document(maximum=7))
    (tmp_path / "b.yaml").write_text(a_document("other"))
    directory = ConfigDirectory(tmp_path)
    in_force(directory)
    path.write_bytes(content)
    assert after_two_ticks(directory) == {"inference/llama": 7, "inference/other": 32}
    assert [bad.path for bad in directory.bad_files] == [path]
    assert directory.bad_files[0].problem.startswith(problem)
    assert "\n" not in directory.bad_files[0].problem
    assert logged(caplog) == [directory.bad_files[0].problem]


def test_a_file_that_was_bad_from_the_start_has_nothing_in_force_and_stops_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: [")
    (tmp_path / "b.yaml").write_text(a_document())
    directory = ConfigDirectory(tmp_path)
    assert in_force(directory) == {"inference/llama": 32}
    assert len(directory.bad_files) == 1


def test_an_unchanged_bad_file_is_neither_parsed_nor_logged_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("kind: [")
    directory = ConfigDirectory(tmp_path)
    in_force(directory)
    first = directory.bad_files
    for _ in range(5):
        path.touch()
        in_force(directory)
    assert len(logged(caplog)) == 1
    assert directory.bad_files[0] is first[0]


def test_a_bad_file_that_is_bad_in_another_way_is_logged_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("kind: [")
    directory = ConfigDirectory(tmp_path)
    in_force(directory)
    path.write_text("# a line more\nkind: [")
    after_two_ticks(directory)
    assert [problem[:6] for problem in logged(caplog)] == ["line 1", "line 2"]


def test_a_repaired_file_is_in_force_and_said_to_be_right(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "a.yaml"
    path.write_text("kind: [")
    directory = ConfigDirectory(tmp_path)
    in_force(directory)
    path.write_text(a_document(maximum=9))
    assert after_two_ticks(directory) == {"inference/llama": 9}
    assert directory.bad_files == ()
    assert logged(caplog)[-1] == "config file is right again or gone"


def _rewrite(path: Path) -> None:
    path.write_text(a_document(maximum=64))


def _rewrite_within_the_same_time_stamp(path: Path) -> None:
    before = path.stat()
    path.write_text(a_document(maximum=64))  # as many bytes as before
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _rewrite_with_an_older_time_stamp(path: Path) -> None:
    path.write_text(a_document(maximum=64))
    os.utime(path, (1.0, 1.0))


def _rewrite_with_a_time_stamp_of_the_future(path: Path) -> None:
    path.write_text(a_document(maximum=64))
    os.utime(path, (4e9, 4e9))


def _replace_by_renaming(path: Path) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(a_document(maximum=64))
    fresh.rename(path)


def _replace_by_a_link_as_a_config_map_does(path: Path) -> None:
    elsewhere = path.parent / "..data"
    elsewhere.mkdir()
    (elsewhere / path.name).write_text(a_document(maximum=64))
    path.unlink()
    path.symlink_to(elsewhere / path.name)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_rewrite, id="rewritten"),
        pytest.param(_rewrite_within_the_same_time_stamp, id="rewritten with the same size and time stamp"),
        pytest.param(_rewrite_with_an_older_time_stamp, id="rewritten with a time stamp of long ago"),
        pytest.param(_rewrite_with_a_time_stamp_of_the_future, id="rewritten with a time stamp of the future"),
        pytest.param(_replace_by_renaming, id="replaced by a renamed file"),
        pytest.param(_replace_by_a_link_as_a_config_map_does, id="replaced by a link into a mounted ConfigMap"),
    ],
)
def test_a_change_is_in_force_after_two_ticks(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(a_document(maximum=32))
    directory = ConfigDirectory(tmp_path)
    in_force(directory)
    change(path)
    assert after_two_ticks(directory) == {"inference/llama": 64}


def test_a_file_that_is_just_being_written_is_not_taken_for_its_first_half(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    whole = a_document(maximum=96)
    path.write_text(whole)
    directory = ConfigDirectory(tmp_path)
    in_force(directory)
    half = whole[: whole.index("maxReplicas: 9") + len("maxReplicas: 9")]  # valid, and a tenth of the pool
    seen = []
    for written in (half, "", whole):
        path.write_text(written)
        seen.append(in_force(directory))
    assert seen == [{"inference/llama": 96}] * 3
    assert directory.bad_files == ()


def test_a_file_that_is_away_for_one_tick_is_not_taken_for_deleted(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(a_document())
    directory = ConfigDirectory(tmp_path)
    in_force(directory)
    path.unlink()
    assert in_force(directory) == {"inference/llama": 32}
    path.write_text(a_document(maximum=33))
    assert after_two_ticks(directory) == {"inference/llama": 33}


def test_the_objects_of_a_deleted_file_are_gone_after_two_ticks(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(a_document("one"))
    (tmp_path / "b.yaml").write_text("kind: [")
    (tmp_path / "c.yaml").write_text(a_document("three"))
    directory = ConfigDirectory(tmp_path)
    in_force(directory)
    (tmp_path / "a.yaml").unlink()
    (tmp_path / "b.yaml").unlink()
    assert after_two_ticks(directory) == {"inference/three": 32}
    assert directory.bad_files == ()


def test_a_file_that_comes_later_is_in_force_after_two_ticks(tmp_path: Path) -> None:
    directory = ConfigDirectory(tmp_path)
    assert in_force(directory) == {}
    (tmp_path / "a.yaml").write_text(a_document())
    assert in_force(directory) == {}
    assert in_force(directory) == {"inference/llama": 32}


def test_of_a_name_in_two_files_the_first_files_is_in_force_and_the_other_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.yaml").write_text(a_document(maximum=10))
    (tmp_path / "b.yaml").write_text(a_document(maximum=20) + "---\n" + a_document("other"))
    directory = ConfigDirectory(tmp_path)
    assert after_two_ticks(directory) == {"inference/llama": 10, "inference/other": 32}
    said = "InferenceScaler inference/llama stands in a.yaml too, and that one is in force"
    assert problems(directory) == [f"b.yaml: {said}"]
    assert logged(caplog) == [said]
    (tmp_path / "a.yaml").unlink()
    assert after_two_ticks(directory) == {"inference/llama": 20, "inference/other": 32}
    assert directory.bad_files == ()


def test_a_folder_that_cannot_be_read_leaves_everything_in_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "a.yaml").write_text(a_document())
    directory = ConfigDirectory(folder)
    in_force(directory)
    shutil.rmtree(folder)
    assert after_two_ticks(directory) == {"inference/llama": 32}
    assert problems(directory) == ["config: cannot be read: No such file or directory"]
    assert len(logged(caplog)) == 1


def test_a_folder_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="is not a folder with InferenceScaler YAML files"):
        ConfigDirectory(tmp_path / "nowhere")
