"""Rows of Prometheus' answers -> tables by pod, by engine of a pod, and by workload."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from autoscaler.engines.kv_geometry import capacity_tokens
from autoscaler.prometheus.answer import Vector
from autoscaler.prometheus.query_plan import PART_LABEL, Part
from autoscaler.prometheus.settings import QuerySettings
from autoscaler.prometheus.workload_names import WORKLOAD_LABEL

PodKey: TypeAlias = tuple[str, str]
"""(namespace, pod)."""
WorkloadKey: TypeAlias = tuple[str, str]
"""(namespace, workload name as derived from the pod's)."""
EngineKey: TypeAlias = tuple[str, ...]
"""Values of ENGINE_LABELS: which engine of a pod."""

# All labels that tell several engines or models of one pod apart, whatever the engine.
ENGINE_LABELS = ("engine", "WorkerId", "ReplicaId", "dp_rank", "model", "version")
ONLY_ENGINE: EngineKey = ("",) * len(ENGINE_LABELS)


def numbers_by_pod(vector: Vector, settings: QuerySettings) -> dict[PodKey, float]:
    """One number a pod. Rows without a pod's name are dropped."""
    namespace_label, pod_label = settings.namespace_label, settings.pod_label
    return {
        _pod(labels.get(namespace_label, ""), labels[pod_label]): number
        for labels, number in vector.samples
        if pod_label in labels
    }


def numbers_by_engine(vector: Vector, settings: QuerySettings) -> dict[PodKey, list[tuple[EngineKey, float]]]:
    """The numbers of each engine of a pod."""
    found: dict[PodKey, list[tuple[EngineKey, float]]] = {}
    for labels, number in vector.samples:
        pod = labels.get(settings.pod_label)
        if pod is not None:
            key = _pod(labels.get(settings.namespace_label, ""), pod)
            found.setdefault(key, []).append((_engine(labels), number))
    return found


def capacities_by_engine(vector: Vector, settings: QuerySettings) -> dict[PodKey, dict[EngineKey, float]]:
    """KV capacity in tokens of each engine of a pod; NaN where it cannot be told, or where two rows contradict."""
    found: dict[PodKey, dict[EngineKey, float]] = {}
    for labels, _ in vector.samples:
        pod = labels.get(settings.pod_label)
        if pod is None:
            continue
        stated = capacity_tokens(labels)
        capacity = math.nan if stated is None else stated
        engines = found.setdefault(_pod(labels.get(settings.namespace_label, ""), pod), {})
        engine = _engine(labels)
        engines[engine] = capacity if engines.get(engine, capacity) == capacity else math.nan
    return found


def parts_by_workload(vector: Vector, settings: QuerySettings) -> dict[WorkloadKey, dict[Part, float]]:
    """The parts of each workload that are finite numbers."""
    found: dict[WorkloadKey, dict[Part, float]] = {}
    known = {part.value: part for part in Part}
    for labels, number in vector.samples:
        part = known.get(labels.get(PART_LABEL, ""))
        if part is not None and math.isfinite(number):
            found.setdefault(_workload(labels, settings), {})[part] = number
    return found


def buckets_by_workload(vector: Vector, settings: QuerySettings) -> dict[WorkloadKey, dict[float, float]]:
    """Cumulative rates by upper edge of each workload ("0.1" and "0.10" are one); an edge that is none is dropped."""
    found: dict[WorkloadKey, dict[float, float]] = {}
    for labels, number in vector.samples:
        edge = _edge(labels.get("le", ""))
        if edge is None:
            continue
        buckets = found.setdefault(_workload(labels, settings), {})
        buckets[edge] = buckets.get(edge, 0.0) + number
    return found


def seconds_by_workload(vector: Vector, settings: QuerySettings) -> dict[WorkloadKey, float]:
    """The sum that stands beside the buckets of each workload, as a rate."""
    return {
        _workload(labels, settings): number
        for labels, number in vector.samples
        if labels.get(PART_LABEL) == Part.SECONDS.value and math.isfinite(number)
    }


@lru_cache(maxsize=1024)
def _edge(text: str) -> float | None:
    # One number for all workloads, and not one each.
    try:
        return float(text)
    except ValueError:
        return None


def _pod(namespace: str, pod: str) -> PodKey:
    # Each answer brings the names of all pods anew, and the tables keep them.
    return sys.intern(namespace), sys.intern(pod)


def _engine(labels: Mapping[str, str]) -> EngineKey:
    return tuple(labels.get(label, "") for label in ENGINE_LABELS)


def _workload(labels: Mapping[str, str], settings: QuerySettings) -> WorkloadKey:
    return (labels.get(settings.namespace_label, ""), labels.get(WORKLOAD_LABEL, ""))
