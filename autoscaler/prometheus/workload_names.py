"""Which workload does a pod belong to, by its name alone: said once for Prometheus and once for us.

Histograms have twenty rows a pod. Prometheus adds them up by workload before they are sent, and it knows nothing of
owners; so both sides derive a name from the pod's in the same way, and a pool takes the names of its own pods.
"""

from __future__ import annotations

import re

from autoscaler.prometheus.promql import quoted

WORKLOAD_LABEL = "tokenscaler_workload"

# The letters Kubernetes makes random name parts of (no vowels, no digits that look like letters).
_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"

# Tried in order; the last that matches the whole name counts.
_PATTERNS = (
    "(.+)",  # a pod of its own
    "(.+)-[0-9]+",  # StatefulSet; the group of a LeaderWorkerSet
    f"(.+)-{_RANDOM}{{5}}",  # ReplicaSet, Job, and operators that make pods themselves
    f"(.+)-{_RANDOM}{{1,10}}-{_RANDOM}{{5}}",  # Deployment
)
_COMPILED = tuple(re.compile(pattern) for pattern in reversed(_PATTERNS))


def workload_of(pod: str) -> str:
    """The workload's name: "vllm-7d4b9c6f5-x2k4z" -> "vllm", "vllm-3" -> "vllm"; a name of no known form: itself."""
    for pattern in _COMPILED:
        match = pattern.fullmatch(pod)
        if match is not None:
            return match.group(1)
    return pod


def with_workload(promql: str, pod_label: str) -> str:
    """The expression whose series have the workload's name in WORKLOAD_LABEL, as `workload_of` gives it."""
    for pattern in _PATTERNS:
        promql = f'label_replace({promql}, {quoted(WORKLOAD_LABEL)}, "$1", {quoted(pod_label)}, {quoted(pattern)})'
    return promql
