"""What is left of the interpreter's collector after a run."""

import gc
from collections.abc import Iterator

import pytest

from autoscaler.replay.garbage_collection import without_garbage_collection


@pytest.fixture(autouse=True)
def _collector_as_before() -> Iterator[None]:
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


@pytest.mark.parametrize(
    "was_on", [pytest.param(True, id="on before and after"), pytest.param(False, id="off before and after")]
)
def test_the_collector_is_off_for_as_long_as_a_run_lasts(was_on: bool) -> None:
    (gc.enable if was_on else gc.disable)()
    with without_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled() is was_on


def test_a_run_that_fails_leaves_the_collector_on() -> None:
    gc.enable()
    with pytest.raises(ZeroDivisionError), without_garbage_collection():
        _ = 1 / 0
    assert gc.isenabled()
