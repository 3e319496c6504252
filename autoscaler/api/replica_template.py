"""What is a replica made of, as far as it decides how fast it is? One short text that changes when that changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

# Of a container: what runs in it, how it is told to, and on how much.
_OF_A_CONTAINER = ("image", "command", "args", "env", "envFrom", "resources")
# Of a pod: which kind of accelerator it may get.
_OF_A_POD = ("nodeSelector", "resourceClaims", "runtimeClassName")


def template_of(target: Mapping[str, Any]) -> str | None:
    """Identifies image, arguments, accelerators and shape of a target's replicas; None where it has no pod template.

    Labels, probes, mounts and a restart's annotation are left out: they make new pods, and no other ones.
    """
    spec = target.get("spec") or {}
    group = spec.get("leaderWorkerTemplate")
    templates = [spec.get("template")] if group is None else [group.get("leaderTemplate"), group.get("workerTemplate")]
    pods = [template.get("spec") or {} for template in templates if template]
    if not pods:
        return None
    size = 1 if group is None else group.get("size", 1)
    text = json.dumps([size, *map(_essence, pods)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _essence(pod: Mapping[str, Any]) -> dict[str, Any]:
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    return {
        **{name: pod[name] for name in _OF_A_POD if pod.get(name)},
        "nodes": affinity.get("requiredDuringSchedulingIgnoredDuringExecution"),
        "containers": [
            {name: container[name] for name in _OF_A_CONTAINER if container.get(name)}
            for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ()))
        ],
    }
