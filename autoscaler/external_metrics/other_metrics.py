"""The other provider as one part: its metrics behind ours, and its resources beside ours in discovery."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from fastapi import Response
from prometheus_client import CollectorRegistry

from autoscaler.clock import Clock
from autoscaler.external_metrics.app import refusal
from autoscaler.external_metrics.caller import Caller
from autoscaler.external_metrics.discovery import Groups
from autoscaler.external_metrics.forwarding import MAXIMUM_AT_ONCE, Forwarder, ForwardingMetrics, NotForwarded
from autoscaler.external_metrics.other_provider import NoAnswer, OtherProvider, can_be_named
from autoscaler.external_metrics.settings import ForwardSettings
from autoscaler.external_metrics.wire import EXTERNAL_METRICS, JSON, ApiGroup, ApiResource

logger = logging.getLogger(__name__)

ROOT = f"/apis/{EXTERNAL_METRICS.name}/{EXTERNAL_METRICS.versions[0]}"
LOOK_SECONDS = 30.0
MAXIMUM_RESOURCES = 1000
# What would climb up a path when somebody between us and the provider tidies it.
_DOTS = frozenset({".", ".."})


class OtherMetrics:
    """Passes requests on, and follows what the other provider lists, in a thread of its own."""

    def __init__(
        self,
        settings: ForwardSettings,
        own: Groups,
        clock: Clock,
        registry: CollectorRegistry,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """`own` are our groups; `registry` is for how the other provider does."""
        self._provider = OtherProvider(settings, clock)
        self._own = own
        self._merged = own
        self._look_seconds = look_seconds
        self._executor = ThreadPoolExecutor(MAXIMUM_AT_ONCE, thread_name_prefix="other-provider")
        self._forwarder = Forwarder(self._provider, self._executor, clock, ForwardingMetrics(registry))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="other-discovery", daemon=True)

    def groups(self) -> Groups:
        """Our groups, with what the other provider listed last; the same tuple until it lists something else."""
        return self._merged

    def start(self) -> None:
        """Begins to follow what it lists."""
        self._thread.start()

    def stop(self) -> None:
        """Ends. Also right where it was never started."""
        self._stopping.set()
        self._executor.shutdown(wait=False, cancel_futures=True)
        if self._thread.ident is not None:
            self._thread.join(1.0)
        self._provider.close()

    async def forward(self, namespace: str, metric: str, selector: str, caller: Caller | None) -> Response:
        """The other provider's answer as it is, or a Status that says why there is none."""
        if _DOTS & {namespace, metric}:
            return refusal(404, "NotFound", "the server could not find the requested resource")
        if caller is not None and not can_be_named(caller):
            return refusal(403, "Forbidden", "the caller's name holds characters that no header can hold")
        path = f"{ROOT}/namespaces/{quote(namespace, safe='')}/{quote(metric, safe='')}"
        query = urlencode({"labelSelector": selector}) if selector else ""
        answer = await self._forwarder.get(path, query, caller)
        if isinstance(answer, NotForwarded):
            return refusal(503, "ServiceUnavailable", answer.message)
        if 300 <= answer.status < 400:
            # Followed, it would lead the caller with its credentials to wherever the other provider likes.
            return refusal(502, "InternalError", "the other provider of external metrics redirects")
        return Response(answer.body, answer.status, media_type=answer.content_type or JSON)

    def look(self) -> None:
        """Reads what the other provider lists. What cannot be read leaves what was listed before."""
        answer = self._provider.read(ROOT, "", None)
        listed = None if isinstance(answer, NoAnswer) or answer.status != 200 else listed_resources(answer.body)
        if listed is None:
            problem = answer.problem if isinstance(answer, NoAnswer) else f"{answer.status} {answer.body[:200]!r}"
            logger.warning(
                "the other provider's discovery cannot be read", extra={"url": self._provider.url, "problem": problem}
            )
            return
        merged = tuple(
            with_resources(group, listed) if group.name == EXTERNAL_METRICS.name else group for group in self._own
        )
        if merged != self._merged:
            self._merged = merged

    def _follow(self) -> None:
        self.look()
        while not self._stopping.wait(self._look_seconds):
            self.look()


def with_resources(group: ApiGroup, others: tuple[ApiResource, ...]) -> ApiGroup:
    """The group with further resources behind its own; a name that it has already stays as it is."""
    names = {resource.name for resource in group.resources}
    further = {resource.name: resource for resource in others if resource.name not in names}
    return ApiGroup(group.name, group.versions, (*group.resources, *further.values()))


def listed_resources(body: bytes) -> tuple[ApiResource, ...] | None:
    """The resources in an APIResourceList, the first thousand; None where it is none."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    resources = document.get("resources") if isinstance(document, dict) else None
    if not isinstance(resources, list):
        return None
    return tuple(
        _resource(each) for each in resources[:MAXIMUM_RESOURCES] if isinstance(each, dict) and each.get("name")
    )


def _resource(document: Mapping[str, Any]) -> ApiResource:
    verbs = document.get("verbs")
    return ApiResource(
        name=str(document["name"]),
        kind=str(document.get("kind") or "ExternalMetricValueList"),
        is_namespaced=document.get("namespaced") is not False,
        verbs=tuple(map(str, verbs)) if isinstance(verbs, list) and verbs else ("get",),
    )
