"""How is a metric sequence played to a real HPA, so that it is known which value it read when, and what it then did?

The targets are served by the test itself behind the API server's aggregator, like the metrics: so each read and each
write of a count is seen, a count needs no pods, and status follows spec at once. The answer to a sync's first metric
is held until the next even moment, which makes syncs SYNC_SECONDS apart.
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from policies.hpa.metric_proposal import milli_target, milli_value
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.workloads import pod_template
from tests.parity.hpa_plays import SYNC_SECONDS, HPAPlay, PlayedMetric, Value
from tests.servers.aggregated_api import AggregatedApi, not_found
from tests.servers.process import wait_until

Document = dict[str, Any]

METRICS_GROUP = "external.metrics.k8s.io/v1beta1"
POOLS_GROUP = "parity.tokenscaler.io/v1"
# kube-controller-manager's --horizontal-pod-autoscaler-sync-period here: it rests so long after a sync.
RESYNC_SECONDS = 1.0
# The ages that are compared with a window are a second away from its end: a sync that may have been later than this
# proves nothing, and neither does what follows it.
LATEST_SECONDS = 0.9
# A target for the whole pool counts ready pods; these are all that such a target ever has.
READY_PODS = 3


@dataclass(frozen=True)
class Sync:
    """One sync of a real HPA: when it got its metrics, their values, and the count that it left."""

    at_seconds: float
    values: tuple[Value, ...]
    after: int


class StagedPlay:
    """One play: its HPA's view of the world. Called by the server's threads, one at a time for one HPA."""

    def __init__(self, play: HPAPlay, namespace: str, name: str) -> None:
        self.play = play
        self.name = name
        self.syncs: list[Sync] = []
        self.is_disturbed = False
        self.has_ended = threading.Event()
        self._namespace = namespace
        self._replicas = play.start
        self._resource_version = 1
        self._set_by_others = dict(play.set_by_others)
        self._begun_at_seconds = 0.0
        self._first_at_seconds: float | None = None
        self._answered: tuple[float, tuple[Value, ...]] | None = None
        self._played = 0

    def read_scale(self) -> Document:
        """The target as it stands. The HPA reads it first of all in a sync, so the one before has ended."""
        self._begun_at_seconds = time.time()
        if self._answered is not None:
            self._end_sync(self._begun_at_seconds - RESYNC_SECONDS)
        set_by_others = self._set_by_others.pop(self._played, None)
        if set_by_others is not None:
            self._replicas = set_by_others
            self._resource_version += 1
        return self._scale()

    def write_scale(self, scale: Mapping[str, Any]) -> Document:
        """What the HPA makes of the target."""
        self._replicas = int(scale["spec"].get("replicas", 0))
        self._resource_version += 1
        if self._answered is not None:
            self._end_sync(time.time())
        elif not self.has_ended.is_set():
            # Outside its bounds: brought back without a look at the metrics. They come at the next sync.
            self._first_at_seconds = self._begun_at_seconds + SYNC_SECONDS
            values = tuple(metric.values[0] for metric in self.play.metrics)
            self.syncs.append(Sync(self._begun_at_seconds, values, self._replicas))
        return self._scale()

    def answer(self, metric: int) -> Sequence[str] | None:
        """The items of a metric; those of the first one at the next even moment, when the sync counts as begun."""
        if metric == 0 and not self.has_ended.is_set():
            self._wait_for_even_moment()
            values = tuple(each.values[self._played] for each in self.play.metrics)
            self._answered = (time.time(), values)
        if self._answered is None:
            return None
        return _quantities(self._answered[1][metric])

    def _wait_for_even_moment(self) -> None:
        now_seconds = time.time()
        if self._first_at_seconds is None:
            self._first_at_seconds = now_seconds
        periods = max(0, math.ceil((now_seconds - self._first_at_seconds) / SYNC_SECONDS))
        time.sleep(max(0.0, self._first_at_seconds + periods * SYNC_SECONDS - time.time()))

    def _end_sync(self, until_seconds: float) -> None:
        """What cannot be seen is when the HPA looked at its clock: after our answer and until then."""
        assert self._answered is not None
        assert self._first_at_seconds is not None
        at_seconds, values = self._answered
        self._answered = None
        even = self._first_at_seconds + SYNC_SECONDS * math.floor((at_seconds - self._first_at_seconds) / SYNC_SECONDS)
        if until_seconds - even > LATEST_SECONDS:
            self.is_disturbed = True
        else:
            self.syncs.append(Sync(at_seconds, values, self._replicas))
            self._played += 1
        if self.is_disturbed or self._played == self.play.syncs:
            self.has_ended.set()

    def _scale(self) -> Document:
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {
                "name": self.name,
                "namespace": self._namespace,
                "resourceVersion": str(self._resource_version),
            },
            "spec": {"replicas": self._replicas},
            "status": {"replicas": self._replicas, "selector": f"play={self.name}"},
        }

    @property
    def hpa(self) -> Document:
        """The HPA."""
        spec: Document = {
            "scaleTargetRef": {"apiVersion": POOLS_GROUP, "kind": "Pool", "name": self.name},
            "minReplicas": self.play.minimum,
            "maxReplicas": self.play.maximum,
            "metrics": [_metric_spec(f"{self.name}-{index}", each) for index, each in enumerate(self.play.metrics)],
        }
        if self.play.behavior is not None:
            spec["behavior"] = {
                direction: {**rules, "tolerance": str(rules["tolerance"])}
                for direction, rules in self.play.behavior.items()
            }
        return {"metadata": {"name": self.name, "namespace": self._namespace}, "spec": spec}


def _metric_spec(name: str, metric: PlayedMetric) -> Document:
    field = "averageValue" if metric.target_type == "AverageValue" else "value"
    target = {"type": metric.target_type, field: f"{milli_target(metric.target)}m"}
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}


def _quantities(value: Value) -> Sequence[str] | None:
    if value is None:
        return None
    items = value if isinstance(value, tuple) else (value,)
    return [f"{milli_value(item)}m" for item in items]


class Stage:
    """A namespace in which plays run side by side; a context manager."""

    def __init__(self, control_plane: ControlPlane, namespace: str, directory: Path) -> None:
        self._control_plane = control_plane
        self._namespace = namespace
        self._staged: dict[str, StagedPlay] = {}
        self._numbers = itertools.count()
        self._server = AggregatedApi(
            directory, {METRICS_GROUP: self._respond_with_metric, POOLS_GROUP: self._respond_with_scale}
        )

    def __enter__(self) -> Stage:
        self._server.__enter__()
        self._server.register(self._control_plane)
        # A controller manager that is running looks for new kinds every 30 s only.
        controller_manager = self._control_plane.component("kube-controller-manager")
        controller_manager.kill()
        controller_manager.start()
        self._control_plane.create_namespace(self._namespace)
        self._control_plane.add_nodes(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.__exit__(kind, error, trace)

    def play(self, plays: Sequence[HPAPlay], timeout_seconds: float) -> list[StagedPlay]:
        """Plays them all at the same time. Raises TimeoutError with what is still going on."""
        staged = [StagedPlay(play, self._namespace, f"play-{next(self._numbers)}") for play in plays]
        self._staged |= {each.name: each for each in staged}
        for each in staged:
            if each.play.metrics[0].target_type == "Value":
                self._make_ready_pods(each.name)
        api = self._control_plane.api
        hpas = f"/apis/autoscaling/v2/namespaces/{self._namespace}/horizontalpodautoscalers"
        for each in staged:
            api.create(hpas, each.hpa)
        try:
            wait_until(lambda: all(each.has_ended.is_set() for each in staged), "the plays", timeout_seconds)
        except TimeoutError as error:
            going_on = {each.play.name: len(each.syncs) for each in staged if not each.has_ended.is_set()}
            raise TimeoutError(f"{error}; syncs of those that go on: {json.dumps(going_on, indent=1)}") from error
        finally:
            for each in staged:
                api.delete(f"{hpas}/{each.name}")
        return staged

    def _respond_with_metric(self, method: str, parts: tuple[str, ...], body: Document | None) -> tuple[int, Document]:
        if len(parts) != 3:
            return 200, _resources(METRICS_GROUP, {"any": "ExternalMetricValueList"})
        name, _, index = parts[2].rpartition("-")
        staged = self._staged.get(name)
        values = staged.answer(int(index)) if staged is not None else None
        if values is None:
            return 404, not_found(parts[2])
        at = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        items = [{"metricName": parts[2], "metricLabels": {}, "timestamp": at, "value": value} for value in values]
        return 200, {"kind": "ExternalMetricValueList", "apiVersion": METRICS_GROUP, "metadata": {}, "items": items}

    def _respond_with_scale(self, method: str, parts: tuple[str, ...], body: Document | None) -> tuple[int, Document]:
        if len(parts) != 5:
            return 200, _resources(POOLS_GROUP, {"pools": "Pool", "pools/scale": "Scale"})
        staged = self._staged.get(parts[3])
        if staged is None:
            return 404, not_found(parts[3])
        return 200, staged.read_scale() if body is None else staged.write_scale(body)

    def _make_ready_pods(self, name: str) -> None:
        pods = f"/api/v1/namespaces/{self._namespace}/pods"
        for index in range(READY_PODS):
            pod = pod_template(name, loads_in="0s", stops_in="0s", accelerators=0)
            pod["metadata"] |= {"name": f"{name}-{index}", "labels": {"play": name}}
            self._control_plane.api.create(pods, pod)

        def are_ready() -> bool:
            return sum(map(_is_ready, self._control_plane.api.items(pods, labelSelector=f"play={name}"))) == READY_PODS

        wait_until(are_ready, f"the pods of {name} are ready", 60)


def _resources(group_version: str, kinds: Mapping[str, str]) -> Document:
    resources = [
        {
            "name": name,
            "singularName": "",
            "namespaced": True,
            "kind": kind,
            "verbs": ["get", "update"],
            **({"group": "autoscaling", "version": "v1"} if kind == "Scale" else {}),
        }
        for name, kind in kinds.items()
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
