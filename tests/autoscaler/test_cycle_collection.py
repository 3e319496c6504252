from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from autoscaler.cycle_collection import NEW_OBJECTS, collect_cycles_rarely


class Node:
    """Refers to itself, so that only a look for cycles frees it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)


def test_what_refers_to_itself_is_still_freed() -> None:
    gc.collect()
    collect_cycles_rarely()
    lost = weakref.ref(Node())
    kept: list[list[int]] = []
    while lost() is not None and len(kept) <= NEW_OBJECTS:
        kept.append([])
    assert lost() is None
