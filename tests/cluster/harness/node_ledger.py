"""Which nodes did Karpenter order and give up, one by one, and how many were there of each NodePool then?

A list looks now and then and misses what lies between. A watch has every change, in the order in which they were
stored; what the audit log holds of limits and counts has its place in the same order, by its resource version.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import httpx2

from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.kubernetes_api import ApiError, KubernetesApi
from tests.servers.process import wait_until

NODE_CLAIMS_PATH = "/apis/karpenter.sh/v1/nodeclaims"
NODE_POOL_LABEL = "karpenter.sh/nodepool"
# So long is one watch: the end of a test waits for no more.
WATCH_SECONDS = 2


class Change(StrEnum):
    """What became of a node."""

    ORDERED = "ordered"
    LEAVING = "leaving"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A change of one NodeClaim. `staying` are those of each NodePool after it that are not being deleted."""

    revision: int
    change: Change
    name: str
    node_pool: str
    staying: Mapping[str, int]


class NodeLedger:
    """Writes down every change of every NodeClaim while it is open; a context manager."""

    def __init__(self, plane: ControlPlane) -> None:
        certificates = plane.certificates
        self._api = KubernetesApi(plane.url, certificates.authority, certificates.clients["admin"])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="node-ledger", daemon=True)
        self._revision = "0"
        self._pools: dict[str, str] = {}  # of all claims that are there, by name
        self._leaving: set[str] = set()
        self._entries: list[LedgerEntry] = []
        self._failure: Exception | None = None

    def __enter__(self) -> NodeLedger:
        found = self._api.get(NODE_CLAIMS_PATH)
        self._revision = found["metadata"]["resourceVersion"]
        for document in found["items"]:
            self._note("ADDED", document)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        self._api.close()

    def entries(self) -> tuple[LedgerEntry, ...]:
        """All changes so far, oldest first; what was there at the beginning counts as ordered then."""
        if self._failure is not None:
            raise RuntimeError("the watch of NodeClaims broke, so the ledger has a gap") from self._failure
        return tuple(self._entries)

    def entries_until_now(self, plane: ControlPlane) -> tuple[LedgerEntry, ...]:
        """All changes so far, those of this moment too: waits until they have arrived."""
        last = max((int(each["metadata"]["resourceVersion"]) for each in plane.api.items(NODE_CLAIMS_PATH)), default=0)
        wait_until(lambda: self._failure is not None or int(self._revision) >= last, "the ledger is up to date", 30)
        return self.entries()

    def staying(self) -> Mapping[str, int]:
        """The nodes of each NodePool that are there (or on their way) and not being deleted."""
        entries = self.entries()
        return entries[-1].staying if entries else {}

    def _follow(self) -> None:
        while not self._stop.is_set() and self._failure is None:
            try:
                for event in self._api.watch(NODE_CLAIMS_PATH, self._revision, WATCH_SECONDS):
                    self._note(event["type"], event["object"])
            except httpx2.TransportError:
                continue  # the next watch goes on from the last change
            except (ApiError, KeyError) as failure:
                self._failure = failure

    def _note(self, kind: str, document: dict[str, Any]) -> None:
        metadata = document["metadata"]
        name, pool = metadata["name"], metadata["labels"][NODE_POOL_LABEL]
        changes: list[Change] = []
        if name not in self._pools:
            changes.append(Change.ORDERED)
        if name not in self._leaving and (metadata.get("deletionTimestamp") or kind == "DELETED"):
            changes.append(Change.LEAVING)
        if kind == "DELETED":
            changes.append(Change.GONE)
        for change in changes:
            self._apply(change, name, pool)
            staying = Counter(each for claim, each in self._pools.items() if claim not in self._leaving)
            self._entries.append(LedgerEntry(int(metadata["resourceVersion"]), change, name, pool, staying))
        self._revision = str(max(int(self._revision), int(metadata["resourceVersion"])))

    def _apply(self, change: Change, name: str, pool: str) -> None:
        match change:
            case Change.ORDERED:
                self._pools[name] = pool
            case Change.LEAVING:
                self._leaving.add(name)
            case Change.GONE:
                self._pools.pop(name)
                self._leaving.discard(name)
