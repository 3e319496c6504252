"""What is known of one kind of object: the reduced objects by name, and by whatever they are looked up by."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

ObjectKey: TypeAlias = tuple[str, str]
"""(namespace, name); the namespace is empty for cluster-scoped objects."""


def _no_index(_: object) -> Iterable[Hashable]:
    return ()


class ObjectStore(Generic[T]):
    """Objects by key, written by one watch and read by any thread.

    `index_keys` names the things an object can be found by besides its key (a pod by each of its labels).
    `version` grows with every change, so that a reader can tell cheaply whether anything is new.
    """

    def __init__(self, index_keys: Callable[[T], Iterable[Hashable]] = _no_index) -> None:
        self._index_keys = index_keys
        self._lock = threading.Lock()
        self._objects: dict[ObjectKey, T] = {}
        self._index: dict[Hashable, dict[ObjectKey, T]] = {}
        self.version = 0

    def get(self, key: ObjectKey) -> T | None:
        """The object, or None where there is none."""
        with self._lock:
            return self._objects.get(key)

    def all(self) -> tuple[T, ...]:
        """All objects."""
        with self._lock:
            return tuple(self._objects.values())

    def find(self, index_key: Hashable) -> tuple[T, ...]:
        """The objects that can be found by `index_key`; empty where there are none."""
        with self._lock:
            return tuple(self._index.get(index_key, {}).values())

    def count(self, index_key: Hashable) -> int:
        """How many objects `find` would give."""
        with self._lock:
            return len(self._index.get(index_key, ()))

    def put(self, key: ObjectKey, value: T) -> None:
        """Adds the object or takes the place of an older one."""
        with self._lock:
            self._unindex(key)
            self._objects[key] = value
            self._add_to_index(self._index, key, value)
            self.version += 1

    def remove(self, key: ObjectKey) -> None:
        """Forgets the object, if it is known."""
        with self._lock:
            self._unindex(key)
            if self._objects.pop(key, None) is not None:
                self.version += 1

    def replace(self, objects: Mapping[ObjectKey, T]) -> None:
        """Takes `objects` for all there is. A reader sees the old set or the new one, never a mixture."""
        fresh = dict(objects)
        index: dict[Hashable, dict[ObjectKey, T]] = {}
        for key, value in fresh.items():
            self._add_to_index(index, key, value)
        with self._lock:
            self._objects = fresh
            self._index = index
            self.version += 1

    def _add_to_index(self, index: dict[Hashable, dict[ObjectKey, T]], key: ObjectKey, value: T) -> None:
        for index_key in self._index_keys(value):
            index.setdefault(index_key, {})[key] = value

    def _unindex(self, key: ObjectKey) -> None:
        old = self._objects.get(key)
        if old is None:
            return
        for index_key in self._index_keys(old):
            found = self._index.get(index_key)
            if found is not None:
                found.pop(key, None)
                if not found:
                    del self._index[index_key]
