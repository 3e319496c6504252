"""How often does Python look for objects that only refer to each other?"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# A tick over a large fleet makes some hundred thousand objects and frees nearly all of them by itself. Looking at every
# 700th, as Python does unasked, takes a quarter of the tick, and most of that goes to pods that have not changed.
NEW_OBJECTS = 100_000
LOOKS_BEFORE_OLDER_OBJECTS = 20


def collect_cycles_rarely() -> None:
    """From now on after every 100,000 objects that stay: what may lie about until then is some 20 MiB."""
    gc.set_threshold(NEW_OBJECTS, LOOKS_BEFORE_OLDER_OBJECTS, LOOKS_BEFORE_OLDER_OBJECTS)


@contextmanager
def without_cycle_collection() -> Iterator[None]:
    """Not at all meanwhile, and afterwards as before: for a run that makes none, of which looking takes a twentieth.

    What refers to itself lasts as long as the run then.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
