"""How many accelerators does one replica of a target take, by its pod template?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

RESOURCE_NAME = "nvidia.com/gpu"


def accelerators_of_template(target: Mapping[str, Any]) -> int | None:
    """What the limits of the target's pod template say; None where it names no accelerators or has no template.

    `target` is the document of the scale target: a LeaderWorkerSet's replica is its leader and its workers, any other
    kind's is one pod of `.spec.template`.
    """
    target_spec = target.get("spec") or {}
    group = target_spec.get("leaderWorkerTemplate")
    counted = _of_template(target_spec.get("template")) if group is None else _of_group(group)
    return counted or None


def _of_group(group: Mapping[str, Any]) -> int:
    worker = _of_template(group.get("workerTemplate"))
    leader = _of_template(group["leaderTemplate"]) if group.get("leaderTemplate") else worker
    return leader + (int(group.get("size", 1)) - 1) * worker


def _of_template(template: Mapping[str, Any] | None) -> int:
    """A pod's effective limit: containers and sidecars together, or its largest init container if that is more."""
    pod = (template or {}).get("spec") or {}
    initial: Sequence[Mapping[str, Any]] = pod.get("initContainers") or ()
    sidecars = [container for container in initial if container.get("restartPolicy") == "Always"]
    together = sum(map(_limit, [*(pod.get("containers") or ()), *sidecars]))
    return max([together, *map(_limit, initial)])


def _limit(container: Mapping[str, Any]) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    quantity = str(limits.get(RESOURCE_NAME, "0"))
    # Extended resources are whole numbers; one with a suffix would be a thousand GPUs in one container.
    return int(quantity) if quantity.isdigit() else 0
