"""What is done about a node that is about to go: its pods stop being asked, no pod comes, and running work goes on.

A file on the node is there as long as it drains: the readiness probes of serving pods look for it, so that routers
leave them alone while they end their streams. The node is cordoned and gets a taint by which the controller orders
replacements. Evicting is left to whoever ends the node; without anybody, pods serve what they have until it is gone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autoscaler.drain_watcher.instance_metadata import MetadataUnavailable, NoNotice, Notice
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.kubernetes_gateway.watched_objects import reduce_node
from autoscaler.observers.leaving_nodes import DEPARTURE_TAINTS, OWN_TAINT, Departure, departure_of_node

logger = logging.getLogger(__name__)

NODE_PATH = "/api/v1/nodes/{name}"

Document = dict[str, Any]


class DrainWatcher:
    """Looks once whenever it is asked to; once the node drains, it drains until it is gone."""

    def __init__(
        self,
        connection: ApiConnection,
        node: str,
        drain_file: Path,
        notice: Callable[[], Notice | NoNotice | MetadataUnavailable] | None,
    ) -> None:
        """`notice` None: the cloud is not asked, only the Node object is read. A file that is there is taken over."""
        self._connection = connection
        self._node = node
        self._drain_file = drain_file
        self._notice = notice
        self._problems: dict[str, str] = {}
        self._has_begun = False

    @property
    def is_draining(self) -> bool:
        """Whether it has begun, in this process or in one before it."""
        return self._has_begun or self._drain_file.exists()

    def look(self) -> bool:
        """One look; False where something could not be read or written, so that nobody knows all that there is."""
        known = self._look_at_notice()
        document = self._connection.get(NODE_PATH.format(name=self._node))
        if isinstance(document, ApiFailure):
            self._say("the node", document.message)
            return False
        self._say("the node", "")
        departure = departure_of_node(reduce_node(document))
        if departure is Departure.NOTICED:
            self._begin("somebody has given notice of the node's end by a taint")
        elif departure is Departure.DELETING:
            self._begin("the node is being deleted")
        return known and (not self.is_draining or self._cordon(document))

    def _look_at_notice(self) -> bool:
        notice = NoNotice() if self._notice is None else self._notice()
        if isinstance(notice, MetadataUnavailable):
            self._say("the metadata service", notice.message)
            return False
        self._say("the metadata service", "")
        if isinstance(notice, Notice):
            self._begin(f"the cloud has given notice: {notice.action} at {notice.at}")
        return True

    def _begin(self, because: str) -> None:
        if self.is_draining:
            return
        self._has_begun = True
        logger.warning("draining", extra={"node": self._node, "because": because})
        try:
            self._drain_file.write_text(json.dumps({"because": because}) + "\n")
        except OSError as error:
            self._say("the drain file", str(error))

    def _cordon(self, document: Document) -> bool:
        """Cordons and taints, unless somebody who ends the node has done so."""
        spec = document.get("spec") or {}
        taints = list(spec.get("taints") or ())
        is_tainted = any(taint.get("key") in DEPARTURE_TAINTS for taint in taints)
        if spec.get("unschedulable") and is_tainted:
            return True
        wanted = taints if is_tainted else [*taints, {"key": OWN_TAINT, "effect": "NoSchedule"}]
        # A merge patch replaces the whole list: not if the node has changed since it was read.
        body = {
            "metadata": {"resourceVersion": document["metadata"].get("resourceVersion")},
            "spec": {"unschedulable": True, "taints": wanted},
        }
        result = self._connection.patch(NODE_PATH.format(name=self._node), body)
        self._say("the cordon", result.message if isinstance(result, ApiFailure) else "")
        return not isinstance(result, ApiFailure)

    def _say(self, what: str, problem: str) -> None:
        """Logs a problem where it begins, not at every look."""
        if problem and self._problems.get(what) != problem:
            logger.warning("cannot see or do everything", extra={"about": what, "problem": problem})
        self._problems[what] = problem
