"""What do the statuses of the InferenceScalers say? Every replica reads them, whoever leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pydantic import ValidationError

from autoscaler.api.published_metrics import PublishedMetrics
from autoscaler.external_metrics.values import NotKnownYet, PoolMetrics, pool_labels


class WatchedScalers(Protocol):
    """The watch of InferenceScalers, as far as it is read here."""

    @property
    def version(self) -> int:
        """Grows with every change."""
        ...

    @property
    def has_synced(self) -> bool:
        """Whether all have been read once."""
        ...

    def all(self) -> tuple[dict[str, Any], ...]:
        """All documents."""
        ...


class StatusMetrics:
    """A MetricSource on the watch; the statuses are read again only where something has changed."""

    def __init__(self, watched: WatchedScalers) -> None:
        self._watched = watched
        self._version = -1
        self._read: dict[tuple[str, str], tuple[str, PoolMetrics]] = {}
        self._by_namespace: Mapping[str, tuple[PoolMetrics, ...]] = {}

    def pools_in(self, namespace: str) -> Sequence[PoolMetrics] | NotKnownYet:
        """The pools of a namespace by name, one that is being deleted not among them."""
        if not self._watched.has_synced:
            return NotKnownYet("the InferenceScalers have not been read yet")
        version = self._watched.version
        if version != self._version:
            self._read_again()
            self._version = version
        return self._by_namespace.get(namespace, ())

    def _read_again(self) -> None:
        read: dict[tuple[str, str], tuple[str, PoolMetrics]] = {}
        for document in self._watched.all():
            metadata = document["metadata"]
            if "deletionTimestamp" in metadata:
                continue
            key, version = (metadata["namespace"], metadata["name"]), metadata["resourceVersion"]
            known = self._read.get(key)
            read[key] = known if known and known[0] == version else (version, _pool(document))
        self._read = read
        by_namespace: dict[str, list[PoolMetrics]] = {}
        for key in sorted(read):
            by_namespace.setdefault(key[0], []).append(read[key][1])
        self._by_namespace = {namespace: tuple(pools) for namespace, pools in by_namespace.items()}


def _pool(document: Mapping[str, Any]) -> PoolMetrics:
    metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    target = str((spec.get("scaleTargetRef") or {}).get("name", ""))
    return PoolMetrics(
        namespace=metadata["namespace"],
        name=metadata["name"],
        mode=str(spec.get("mode", "")),
        labels=pool_labels(metadata["name"], target, str(spec.get("engine", ""))),
        published=_published(status.get("externalMetrics")),
        object_labels=metadata.get("labels") or {},
    )


def _published(document: Any) -> PublishedMetrics | None:
    """None where there are none, or another version of this program has written them."""
    if document is None:
        return None
    try:
        return PublishedMetrics.model_validate(document)
    except ValidationError:
        return None
