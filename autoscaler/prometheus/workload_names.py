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

# The shortest name counts: what is left of it is the longest ending that Kubernetes gives. None: a pod of its own.
_PATTERN = (
    f"(.+?)(?:-{_RANDOM}{{1,10}}-{_RANDOM}{{5}}"  # Deployment
    f"|-{_RANDOM}{{5}}"  # ReplicaSet, Job, and operators that make pods themselves
    "|-[0-9]+)?"  # StatefulSet; the group of a LeaderWorkerSet
)
_COMPILED = re.compile(_PATTERN)


def workload_of(pod: str) -> str:
    """The workload's name: "vllm-7d4b9c6f5-x2k4z" -> "vllm", "vllm-3" -> "vllm"; a name of no known form: itself."""
    match = _COMPILED.fullmatch(pod)
    return pod if match is None else match.group(1)


def with_workload(promql: str, pod_label: str) -> str:
    """The expression whose series have the workload's name in WORKLOAD_LABEL, as `workload_of` gives it."""
    return f'label_replace({promql}, {quoted(WORKLOAD_LABEL)}, "$1", {quoted(pod_label)}, {quoted(_PATTERN)})'
