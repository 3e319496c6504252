"""Each story is decided today as its file tells. After a change on purpose: `pytest tests/stories --golden-update`."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest

from tests.stories.script import script
from tests.stories.staging import Story, tell
from tests.stories.stories import STORIES

GOLDEN = Path(__file__).with_name("golden")


@pytest.mark.parametrize("story", [pytest.param(story, id=story.name) for story in STORIES])
def test_the_story_is_decided_as_written(story: Story, pytestconfig: pytest.Config) -> None:
    told = script(tell(story))
    file = GOLDEN / f"{story.name}.txt"
    if pytestconfig.getoption("--golden-update", default=False):
        file.write_text(told, encoding="utf-8")
    written = file.read_text(encoding="utf-8") if file.exists() else ""
    changes = "".join(unified_diff(written.splitlines(True), told.splitlines(True), f"{file.name}, written", "now"))
    assert not changes, f"\n{changes}\nIf this is meant: pytest tests/stories --golden-update"


def test_every_file_has_its_story() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {story.name for story in STORIES}
