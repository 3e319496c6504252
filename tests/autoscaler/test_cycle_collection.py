from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from autoscaler.cycle_collection import NEW_OBJECTS, collect_cycles_rarely, without_cycle_collection


class Node:
    """Refers to itself, so that only a look for cycles frees it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold, was_on = gc.get_threshold(), gc.isenabled()
    yield
    gc.set_threshold(*threshold)
    (gc.enable if was_on else gc.disable)()


def test_what_refers_to_itself_is_still_freed() -> None:
    gc.collect()
    collect_cycles_rarely()
    lost = weakref.ref(Node())
    kept: list[list[int]] = []
    while lost() is not None and len(kept) <= NEW_OBJECTS:
        kept.append([])
    assert lost() is None


@pytest.mark.parametrize(
    "was_on", [pytest.param(True, id="on before and after"), pytest.param(False, id="off before and after")]
)
def test_nothing_is_looked_for_as_long_as_a_run_lasts(was_on: bool) -> None:
    (gc.enable if was_on else gc.disable)()
    with without_cycle_collection():
        assert not gc.isenabled()
    assert gc.isenabled() is was_on


def test_after_a_run_that_fails_it_is_looked_for_again() -> None:
    gc.enable()
    with pytest.raises(ZeroDivisionError), without_cycle_collection():
        _ = 1 / 0
    assert gc.isenabled()
