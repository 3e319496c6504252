"""What does a pod ask for of a node, by its template?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from autoscaler.api.accelerators import RESOURCE_NAME
from autoscaler.api.node_shape import amount_of


@dataclass(frozen=True, slots=True)
class PodRequests:
    """Thousandths of a CPU, bytes and accelerators; 0: nothing is asked for."""

    cpu_millis: int = 0
    memory_bytes: int = 0
    accelerators: int = 0

    def __add__(self, other: PodRequests) -> PodRequests:
        return PodRequests(
            self.cpu_millis + other.cpu_millis,
            self.memory_bytes + other.memory_bytes,
            self.accelerators + other.accelerators,
        )

    def at_least(self, other: PodRequests) -> PodRequests:
        """The larger of both, resource by resource."""
        return PodRequests(
            max(self.cpu_millis, other.cpu_millis),
            max(self.memory_bytes, other.memory_bytes),
            max(self.accelerators, other.accelerators),
        )


NO_REQUESTS = PodRequests()


def requests_of_pod(pod: Mapping[str, Any]) -> PodRequests:
    """What the scheduler reckons for a pod spec: containers and sidecars together, or the largest init container.

    A limit without a request is a request, as the API server has it; what is no quantity is taken for 0.
    """
    initial: Sequence[Mapping[str, Any]] = pod.get("initContainers") or ()
    sidecars = [container for container in initial if container.get("restartPolicy") == "Always"]
    together = sum(map(_of_container, [*(pod.get("containers") or ()), *sidecars]), NO_REQUESTS)
    for container in initial:
        together = together.at_least(_of_container(container))
    return together + _amounts(pod.get("overhead") or {})


def requests_of_template(target: Mapping[str, Any]) -> PodRequests:
    """What the pod of a replica asks for; nothing where a replica is a group of pods, or there is no template."""
    template = (target.get("spec") or {}).get("template") or {}
    return requests_of_pod(template.get("spec") or {})


def millis(quantity: str) -> int:
    """Thousandths of a quantity such as 192 or 191450m, rounded up; 0 for what is none."""
    return ceil((amount_of(quantity) or 0) * 1000)


def whole(quantity: str) -> int:
    """A quantity such as 2048Gi in bytes, rounded up; 0 for what is none."""
    return ceil(amount_of(quantity) or 0)


def _of_container(container: Mapping[str, Any]) -> PodRequests:
    resources = container.get("resources") or {}
    return _amounts((resources.get("limits") or {}) | (resources.get("requests") or {}))


def _amounts(asked: Mapping[str, Any]) -> PodRequests:
    return PodRequests(
        millis(str(asked.get("cpu", "0"))),
        whole(str(asked.get("memory", "0"))),
        whole(str(asked.get(RESOURCE_NAME, "0"))),
    )
