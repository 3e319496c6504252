"""On a real Karpenter: over random changes of the load, with nodes lost in between, the split is exact in real nodes.

TOKENSCALER_EVENTS says how many events are played (`make proof-events`); without it this is no part of a test run.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from policies.capacity_split import is_split_kept, split_nodes
from tests.cluster.conftest import StartFleet
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.node_ledger import NODE_CLAIMS_PATH, Change, LedgerEntry, NodeLedger
from tests.cluster.harness.node_pools import kinds_of_nodes, node_pool
from tests.cluster.harness.policies import quick_policy
from tests.cluster.harness.workloads import deployment
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

EVENTS = int(os.environ.get("TOKENSCALER_EVENTS", "8"))
EVENTS_BETWEEN_LOOKS = 4 if EVENTS <= 16 else 20
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200 + 60 * EVENTS)]

POOL_PATH = "/apis/tokenscaler.io/v1alpha1/acceleratorpools"
MOST_REPLICAS = 10
# At least so many percent on demand: the usual cap of 30 % on spot, and where many events are played a floor too.
FLOORS_PERCENT = (70,) if EVENTS <= 16 else (70, 20)


@pytest.mark.parametrize("deployments", [2, 1], ids=["two Deployments", "one Deployment on both kinds"])
def test_the_split_is_exact_over_random_events_in_real_nodes(
    karpenter_plane, start_fleet, start_controller, deployments: int
) -> None:
    plane = karpenter_plane
    fleet = _fleet(plane, start_fleet, FLOORS_PERCENT[0], deployments)
    play = Play(plane, fleet, deployments)
    play.load(1)
    controller: ControllerProcess = start_controller(fleet)
    controller.wait_deciding(records=3)

    with NodeLedger(plane) as ledger:
        for floor_percent in FLOORS_PERCENT:
            plane.api.merge(f"{POOL_PATH}/h100", {"spec": {"split": {"onDemandFloorPercent": floor_percent}}})
            play.settle(ledger, floor_percent)
            for stretch in range(EVENTS // len(FLOORS_PERCENT) // EVENTS_BETWEEN_LOOKS):
                since = len(ledger.entries_until_now(plane))
                # Karpenter may have been about to order a spot node when we take the on-demand one beside it away: what
                # holds at every moment holds while nodes are left alone, and what holds in the end holds always.
                loses_nodes = stretch % 2 == 1
                for _ in range(EVENTS_BETWEEN_LOOKS):
                    play.event(loses_nodes)
                    controller.wait_deciding(len(controller.records()) + play.chance.randrange(1, 4))
                play.settle(ledger, floor_percent)
                changes = ledger.entries_until_now(plane)[since:]
                assert loses_nodes or _wrong_steps(changes, floor_percent) == []
                said = f"{floor_percent} % on demand: {play.told()}, {len(changes)} changes of nodes since, exact"
                print(said, flush=True)


class Play:
    """Random events, always the same ones: the load changes, or a node is lost in one of two ways."""

    def __init__(self, plane: ControlPlane, fleet: Fleet, deployments: int) -> None:
        self.chance = random.Random(20261130)
        self._deployments = deployments
        self._plane = plane
        self._fleet = fleet
        self._replicas = 0
        self._loads = 0
        self._losses = 0

    def load(self, replicas: int) -> None:
        """What so many replicas can do, and no more."""
        self._replicas = replicas
        self._loads += 1
        self._fleet.set_load(PoolLoad(running=replicas, waiting=4 * replicas))

    def event(self, loses_nodes: bool) -> None:
        """The next one: a load, or (if it may be) a node that is lost."""
        claims = self._plane.api.items(NODE_CLAIMS_PATH)
        # The kwok provider forgets a node whose NodeClaim goes before the node has come: it would stay for ever.
        here = [claim for claim in claims if "deletionTimestamp" not in claim["metadata"] and _node_of(claim)]
        if loses_nodes and here and self.chance.random() < 0.6:
            self._lose(self.chance.choice(sorted(here, key=_name)))
        else:
            self.load(self.chance.randrange(1, MOST_REPLICAS + 1))

    def _lose(self, claim: dict[str, Any]) -> None:
        """By its NodeClaim, as after a notice; or by its Node, as a person does."""
        self._losses += 1
        if self.chance.random() < 0.5:
            self._plane.api.delete(f"/api/v1/nodes/{_node_of(claim)}")
        else:
            self._plane.api.delete(f"{NODE_CLAIMS_PATH}/{_name(claim)}")

    def settle(self, ledger: NodeLedger, floor_percent: int) -> None:
        """Waits until counts and nodes are exactly the shares of what the load needs, and not one node more."""
        wanted = split_nodes(self._replicas, floor_percent)
        counts = wanted if self._deployments == 2 else (self._replicas,)

        def seen() -> tuple[object, object, object]:
            staying: Mapping[str, int] = ledger.staying()
            ordered = staying.get("od", 0), staying.get("spot", 0)
            return _counts(self._plane, self._fleet), kinds_of_nodes(self._plane.api), ordered

        try:
            wait_until(lambda: seen() == (counts, wanted, wanted), f"{wanted} on demand and on spot", 600, 0.3)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; counts, nodes and NodeClaims are {seen()}; {self.told()}") from error

    def told(self) -> str:
        """What has been played."""
        return f"{self._loads} loads, {self._losses} nodes lost"


def _wrong_steps(entries: Sequence[LedgerEntry], floor_percent: int) -> list[LedgerEntry]:
    """Spot that was ordered, or on demand that was given up, against the floor."""
    wrong = []
    for entry in entries:
        is_added = entry.change is Change.ORDERED and entry.node_pool == "spot"
        is_given_up = entry.change is Change.LEAVING and entry.node_pool == "od"
        kept = is_split_kept(entry.staying.get("od", 0), entry.staying.get("spot", 0), floor_percent)
        if (is_added or is_given_up) and not kept:
            wrong.append(entry)
    return wrong


def _fleet(plane: ControlPlane, start_fleet: StartFleet, floor_percent: int, deployments: int) -> Fleet:
    """A Deployment on demand with a replica, one on spot with none, and a scaler that steers both; or one on both."""
    plane.apply(
        node_pool("od", "on-demand", limits={"nvidia.com/gpu": "8"}, weight=10),
        node_pool("spot", "spot", limits={"nvidia.com/gpu": "0"}, weight=1),
    )
    kind = "on-demand" if deployments == 2 else None
    fleet: Fleet = start_fleet(replicas=1, on=plane, accelerators=8, capacity_type=kind)
    pool = {"apiVersion": "tokenscaler.io/v1alpha1", "kind": "AcceleratorPool", "metadata": {"name": "h100"}}
    spec = {
        "mode": "Manage",
        "nodePools": {"onDemand": "od", "spot": "spot"},
        "nodeShape": {"accelerators": 8},
        "split": {"onDemandFloorPercent": floor_percent},
    }
    plane.api.create(POOL_PATH, pool | {"spec": spec})
    policy = quick_policy(down_window_seconds=2) | {"acceleratorPoolRef": {"name": "h100"}}
    if deployments == 1:
        fleet.create_scaler(policy | {"scaleDownVictims": "WholeNodes"})
        return fleet
    spot = deployment(fleet.namespace, "vllm-spot", 0, accelerators=8, capacity_type="spot")
    plane.api.create(f"/apis/apps/v1/namespaces/{fleet.namespace}/deployments", spot)
    targets = {
        kind: {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}
        for kind, name in (("onDemand", "vllm"), ("spot", "vllm-spot"))
    }
    fleet.create_scaler(policy | {"capacityTypes": targets, "scaleTargetRef": None})
    return fleet


def _counts(plane: ControlPlane, fleet: Fleet) -> tuple[int, ...]:
    """Of the Deployment on demand and that on spot, or of the one that there is."""
    path = f"/apis/apps/v1/namespaces/{fleet.namespace}/deployments"
    replicas = {_name(each): int(each["spec"]["replicas"]) for each in plane.api.items(path)}
    return tuple(replicas[name] for name in sorted(replicas))


def _node_of(claim: dict[str, Any]) -> str | None:
    """The name of its node; None before the node has come."""
    name: str | None = claim.get("status", {}).get("nodeName")
    return name


def _name(document: dict[str, Any]) -> str:
    return str(document["metadata"]["name"])
