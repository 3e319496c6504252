"""One kind of object as watched: cluster-wide by one watch, or by one watch in each of some namespaces."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.object_store import ObjectKey
from autoscaler.kubernetes_gateway.reflector import Reflector

T = TypeVar("T")


class WatchedKind(Generic[T]):
    """The objects of a kind. The only key of `reflectors` is None for a watch of all namespaces."""

    def __init__(self, reflectors: Mapping[str | None, Reflector[T]]) -> None:
        self._reflectors = dict(reflectors)

    def get(self, key: ObjectKey) -> T | None:
        """The object by (namespace, name), or None; also None in a namespace that is not watched."""
        reflector = self._reflector(key[0])
        return reflector.store.get(key) if reflector is not None else None

    def all(self) -> tuple[T, ...]:
        """All objects."""
        return tuple(value for reflector in self._reflectors.values() for value in reflector.store.all())

    def find(self, namespace: str, index_key: Hashable) -> tuple[T, ...]:
        """The objects of a namespace that can be found by an index key."""
        reflector = self._reflector(namespace)
        return reflector.store.find(index_key) if reflector is not None else ()

    def count(self, namespace: str, index_key: Hashable) -> int:
        """How many objects `find` would give."""
        reflector = self._reflector(namespace)
        return reflector.store.count(index_key) if reflector is not None else 0

    def watches(self, namespace: str) -> bool:
        """Whether a namespace is among those that are watched."""
        return self._reflector(namespace) is not None

    @property
    def version(self) -> int:
        """Grows with every change of any object."""
        return sum(reflector.store.version for reflector in self._reflectors.values())

    @property
    def has_synced(self) -> bool:
        """Whether every watch has read its objects once."""
        return all(reflector.has_synced for reflector in self._reflectors.values())

    @property
    def is_absent(self) -> bool:
        """Whether the server does not know this kind."""
        return any(reflector.is_absent for reflector in self._reflectors.values())

    @property
    def problems(self) -> tuple[ApiFailure, ...]:
        """What is wrong with watches at the moment."""
        return tuple(reflector.problem for reflector in self._reflectors.values() if reflector.problem is not None)

    def problem_in(self, namespace: str) -> ApiFailure | None:
        """What is wrong with the watch that covers a namespace."""
        reflector = self._reflector(namespace)
        return reflector.problem if reflector is not None else None

    def age_seconds_in(self, namespace: str) -> float:
        """Seconds since the watch that covers a namespace was last heard of; infinite before its first list."""
        reflector = self._reflector(namespace)
        return reflector.age_seconds() if reflector is not None else 0.0

    @property
    def lists(self) -> int:
        """How many times all objects were read."""
        return sum(reflector.lists for reflector in self._reflectors.values())

    def start(self) -> None:
        """Begins to watch."""
        for reflector in self._reflectors.values():
            reflector.start()

    def stop(self) -> None:
        """Ends the watches."""
        for reflector in self._reflectors.values():
            reflector.stop()

    def _reflector(self, namespace: str) -> Reflector[T] | None:
        return self._reflectors.get(None) or self._reflectors.get(namespace)
