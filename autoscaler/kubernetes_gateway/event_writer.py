"""How Events reach the API server: at most one a minute for an object and reason, in the background."""

from __future__ import annotations

from datetime import UTC, datetime

from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.clock import Clock
from autoscaler.controller.events import PoolEvent
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.background_writer import BackgroundWriter
from autoscaler.kubernetes_gateway.connection import ApiConnection, Document
from policies.reasons import Reason

QUIET_SECONDS = 60.0
MAXIMUM_NOTE_CHARACTERS = 1024
REPORTING_CONTROLLER = "tokenscaler.io/controller"

EventKey = tuple[str, str, str]


class EventWriter:
    """An EventSink on events.k8s.io/v1. `instance` names this process."""

    def __init__(self, writer: BackgroundWriter, clock: Clock, instance: str) -> None:
        self._writer = writer
        self._clock = clock
        self._instance = instance[:128]
        self._last_sent_seconds: dict[EventKey, float] = {}
        self._sequence = 0

    def send(self, event: PoolEvent) -> None:
        """Queues the Event, unless one with its reason was sent for the object within the last minute.

        A rescale is always sent: each is a fact of its own.
        """
        scaler = event.scaler
        now = self._clock.monotonic_seconds()
        key = (scaler.namespace, scaler.name, event.reason.value)
        self._forget_before(now - QUIET_SECONDS)
        if key in self._last_sent_seconds and event.reason is not Reason.SUCCEEDED_RESCALE:
            return
        self._last_sent_seconds[key] = now
        self._sequence += 1
        body = self._document(event)
        path = f"/apis/events.k8s.io/v1/namespaces/{scaler.namespace}/events"

        def create(connection: ApiConnection) -> Document | ApiFailure:
            return connection.create(path, body)

        self._writer.submit(("event", scaler.namespace, body["metadata"]["name"]), create)

    def _forget_before(self, moment: float) -> None:
        self._last_sent_seconds = {key: sent for key, sent in self._last_sent_seconds.items() if sent > moment}

    def _document(self, event: PoolEvent) -> Document:
        scaler = event.scaler
        now = self._clock.now_seconds()
        regarding = {
            "apiVersion": "tokenscaler.io/v1alpha1",
            "kind": "InferenceScaler",
            "namespace": scaler.namespace,
            "name": scaler.name,
        }
        if isinstance(scaler, InferenceScaler):
            regarding["uid"] = scaler.uid
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "namespace": scaler.namespace,
                "name": f"{scaler.name[:200]}.{int(now * 1000):x}{self._sequence:x}",
            },
            "eventTime": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "type": event.type,
            "reason": event.reason.value,
            "action": "Scale",
            "note": event.message[:MAXIMUM_NOTE_CHARACTERS],
            "regarding": regarding,
            "reportingController": REPORTING_CONTROLLER,
            "reportingInstance": self._instance,
        }
