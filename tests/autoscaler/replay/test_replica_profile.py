from __future__ import annotations

import json
from pathlib import Path

import pytest

from autoscaler.replay.replica_profile import (
    BadProfileFileError,
    UnknownProfileError,
    built_in_profile,
    built_in_profiles,
    read_profiles,
)


def test_the_package_has_profiles_of_several_engines_and_accelerators() -> None:
    profiles = built_in_profiles()
    assert len(profiles) == 15
    assert profiles["llama-3.3-70b-fp8-2xh200-tensorrt-llm"].reserves_whole_answer
    assert profiles["deepseek-r1-fp8-8xh200-sglang"].accelerators_per_replica == 8


def test_an_unknown_name_says_which_there_are() -> None:
    with pytest.raises(UnknownProfileError, match=r"'llama-9'.*llama-3.1-8b-bf16-1xh100-vllm"):
        built_in_profile("llama-9")


def test_the_users_own_profiles_are_read_from_the_same_format(tmp_path: Path) -> None:
    mine = built_in_profile("qwen3-14b-bf16-1xh100-vllm").model_dump() | {"name": "mine"}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"profiles": [mine]}))
    assert read_profiles(path)["mine"].kv_capacity_tokens == 278_396


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("{\n]", "line 2: not JSON", id="no JSON"),
        pytest.param("[]", "wanted", id="no list of profiles"),
        pytest.param('{"profiles": [{"name": "mine"}]}', "profile mine: accelerators_per_replica", id="missing fields"),
        pytest.param('{"profiles": [3]}', "profile number 1", id="a profile that is no object"),
    ],
)
def test_a_bad_file_says_what_is_wrong_where(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(BadProfileFileError) as error:
        read_profiles(path)
    assert said in str(error.value)
    assert "mine.json" in str(error.value)
