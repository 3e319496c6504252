"""What one node brings, and what limits on a NodePool mean in whole nodes of that shape."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from autoscaler.api.accelerators import RESOURCE_NAME

# Counts nodes, whatever they bring; Karpenter has it beside the resources.
NODES_KEY = "nodes"

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
QUANTITY_PATTERN = f"^{_QUANTITY.pattern}$"
_FACTORS = {"": Decimal(1), "m": Decimal("0.001")}
_FACTORS |= {suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)}
_FACTORS |= {f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)}


def amount_of(quantity: str) -> Decimal | None:
    """The number that a Kubernetes quantity of 0 or more stands for; None for what is none ("lots", "-1", "1e3")."""
    match = _QUANTITY.fullmatch(quantity)
    return None if match is None else Decimal(match[1]) * _FACTORS[match[2] or ""]


def times(quantity: str, factor: int) -> str:
    """So many times a quantity, in its own unit: 3 x 2048Gi is 6144Gi. Raises ValueError for what is no quantity."""
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        raise ValueError(f"{quantity!r} is no quantity")
    product = Decimal(match[1]) * factor
    return f"{product.normalize():f}{match[2] or ''}"


@dataclass(frozen=True, slots=True)
class NodeShape:
    """The whole capacity of a node, by resource, as quantities. It names nvidia.com/gpu, a whole number above 0."""

    resources: Mapping[str, str]

    @property
    def accelerators(self) -> int:
        """Accelerators of a node."""
        return int(self.resources[RESOURCE_NAME])

    def limits_for(self, nodes: int, limited: Mapping[str, str]) -> dict[str, str]:
        """The limits that let a NodePool have so many nodes: accelerators, and every key that is limited today.

        A key that the shape does not name is left as it is; `unknown_keys` tells which.
        """
        keys = {RESOURCE_NAME, *(key for key in limited if key in self.resources)}
        limits = dict(limited) | {key: times(self.resources[key], nodes) for key in keys}
        return limits | ({NODES_KEY: str(nodes)} if NODES_KEY in limited else {})

    def whole_nodes(self, limits: Mapping[str, str]) -> int | None:
        """The nodes that limits let a NodePool have: the key that binds first decides. None: nothing limits it."""
        counts = [each for key, limit in limits.items() if (each := self._nodes_by(key, limit)) is not None]
        return min(counts, default=None)

    def unknown_keys(self, limits: Mapping[str, str]) -> tuple[str, ...]:
        """Limited keys that the shape does not name, so that nobody can say how many nodes they allow."""
        return tuple(sorted(key for key in limits if key != NODES_KEY and key not in self.resources))

    def as_real(self, capacities: Iterable[Mapping[str, str]]) -> NodeShape:
        """The shape that limits are to be set for, where real nodes say otherwise.

        Accelerators are those of the largest real node, more or fewer than stated; of anything else what real nodes
        bring more of: limits by less would leave no room for one such node.
        """
        resources = dict(self.resources)
        real = tuple(capacities)
        accelerators = [count for count in map(accelerators_of, real) if count]
        if accelerators:
            resources[RESOURCE_NAME] = str(max(accelerators))
        for capacity in real:
            for key, stated in resources.items():
                if _is_more(capacity.get(key), stated):
                    resources[key] = capacity[key]
        return NodeShape(resources)

    def contradictions(self, capacity: Mapping[str, str]) -> tuple[str, ...]:
        """Where a real node is not as the shape says, in words: other accelerators, or more of anything else.

        A node whose accelerators have not registered yet contradicts nothing, nor does less CPU or memory: limits by
        the shape are large enough then.
        """
        found = []
        for key, stated in self.resources.items():
            real = capacity.get(key)
            is_fewer = key == RESOURCE_NAME and 0 < accelerators_of(capacity) < self.accelerators
            if is_fewer or _is_more(real, stated):
                found.append(f"{key}: {real} on a node, {stated} in nodeShape")
        return tuple(found)

    def _nodes_by(self, key: str, limit: str) -> int | None:
        each = Decimal(1) if key == NODES_KEY else amount_of(self.resources.get(key, ""))
        allowed = amount_of(limit)
        return None if allowed is None or not each else int(allowed // each)


def accelerators_of(capacity: Mapping[str, str]) -> int:
    """Accelerators of a node; 0 where none have registered."""
    return int(amount_of(capacity.get(RESOURCE_NAME, "0")) or 0)


def _is_more(real: str | None, stated: str) -> bool:
    amount, own = amount_of(real or "0"), amount_of(stated)
    return amount is not None and own is not None and amount > own
