"""What a FLEET.yaml says about nodes, and what is refused of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from autoscaler.replay.fleet_description import Fleet, FleetRefused, fleet_from
from autoscaler.replay.node_setup import ListedLoss, NodeLosses, OutOfCapacity
from policies.capacity_split import CapacityType

FLEET = """\
profile: llama-3.3-70b-fp8-2xh100-vllm
coldStart: [{name: node, medianSeconds: 150, spread: 0.1}, {name: load, medianSeconds: 60}]
nodes:
  nodeShape: {accelerators: 8, cpu: 192}
  dollarsPerAcceleratorHour: {onDemand: 6.88, spot: 2.75}
  nodePools:
    - name: od
      capacityType: on-demand
      weight: 50
      limits: {nvidia.com/gpu: "16", cpu: "384"}
      initialNodes: 1
      consolidateAfterSeconds: 300
      deaths: {perNodeHour: 0.01}
    - name: spot
      capacityType: spot
      reclaims: {perNodeHour: 0.2, listed: [{atSeconds: 60, nodes: 2}]}
      outOfCapacity: [{atSeconds: 100, lastsSeconds: 50}]
"""


def read(directory: Path, text: str) -> Fleet | FleetRefused:
    path = directory / "fleet.yaml"
    path.write_text(text)
    return fleet_from(str(path))


def test_nodes_are_described_with_everything_about_them(tmp_path: Path) -> None:
    fleet = read(tmp_path, FLEET)
    assert isinstance(fleet, Fleet)
    assert fleet.nodes is not None
    assert fleet.assumptions == ()
    on_demand, spot = fleet.nodes.node_pools
    assert (fleet.nodes.launch.median_seconds, fleet.nodes.launch.spread) == (150.0, 0.1)
    assert fleet.nodes.shape.accelerators == 8
    assert fleet.nodes.dollars_per_accelerator_hour == {CapacityType.ON_DEMAND: 6.88, CapacityType.SPOT: 2.75}
    assert (on_demand.name, on_demand.capacity_type, on_demand.weight) == ("od", CapacityType.ON_DEMAND, 50)
    assert (on_demand.limits, on_demand.initial_nodes) == ({"nvidia.com/gpu": "16", "cpu": "384"}, 1)
    assert (on_demand.consolidate_after_seconds, on_demand.deaths) == (300.0, NodeLosses(0.01))
    assert (spot.weight, spot.limits, spot.consolidate_after_seconds) == (0, {}, 0.0)
    assert spot.reclaims == NodeLosses(0.2, (ListedLoss(60.0, 2),))
    assert spot.out_of_capacity == (OutOfCapacity(100.0, 50.0),)


def test_without_a_cold_start_that_of_a_new_node_is_a_named_assumption(tmp_path: Path) -> None:
    fleet = read(tmp_path, "\n".join(line for line in FLEET.splitlines() if not line.startswith("coldStart")))
    assert isinstance(fleet, Fleet)
    assert fleet.nodes is not None
    assert fleet.nodes.launch.median_seconds == 90.0
    assert fleet.assumptions == ("a start on a new node takes: node 90 s, image 40 s, weights 60 s, engine 70 s",)


def changed(**changes: Any) -> str:
    """The fleet with other fields; a path is written with dots, numbers are places in a list, None takes away."""
    document = yaml.safe_load(FLEET)
    for path, value in changes.items():
        *around, last = path.split("__")
        place: Any = document
        for part in around:
            place = place[int(part)] if part.isdigit() else place[part]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return yaml.safe_dump(document, sort_keys=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            changed(nodes__nodeShape=None), "line 8: nodes.nodeShape is missing", id="nothing is said of a node's shape"
        ),
        pytest.param(changed(nodes__nodePools=None), "nodes.nodePools is missing", id="no NodePool"),
        pytest.param(changed(nodes__nodePools=[]), "a list of at least 1 items", id="an empty list of NodePools"),
        pytest.param(
            changed(nodes__nodePools__0__capacityType=None),
            "nodes.nodePools[0].capacityType is missing",
            id="a NodePool of no capacity type",
        ),
        pytest.param(
            changed(nodes__nodePools__0__capacityType="reserved"),
            "nodes.nodePools[0].capacityType is \"reserved\"; it must be 'on-demand' or 'spot'",
            id="a capacity type that is not simulated",
        ),
        pytest.param(
            changed(nodes__nodePools__0__limits={"nvidia.com/gpu": 16}),
            "nodes.nodePools[0].limits.nvidia.com/gpu is 16; it must be a text (put it in quotes)",
            id="a limit that is no text",
        ),
        pytest.param(
            changed(nodes__dollarsPerAcceleratorHour={"onDemand": 3.0}),
            "nodes.dollarsPerAcceleratorHour.spot is missing, and NodePool spot is spot; say what",
            id="no price for spot",
        ),
        pytest.param(
            changed(nodes__nodePools__1__name="od"),
            "nodes.nodePools[1].name: a NodePool before it is called od too; give each a name of its own",
            id="two NodePools of one name",
        ),
        pytest.param(
            changed(nodes__nodePools__0__reclaims={"perNodeHour": 1}),
            "nodes.nodePools[0].reclaims: on-demand nodes are not reclaimed; use deaths, or capacityType: spot",
            id="reclaims on demand",
        ),
        pytest.param(
            changed(nodes__nodePools__0__limits={"memory": "2Ti"}),
            "nodes.nodePools[0].limits: nodeShape does not say what a node has of memory; add it there, or",
            id="a limit of a resource that the shape does not name",
        ),
        pytest.param(
            changed(nodes__nodePools__0__limits={"nvidia.com/gpu": "64", "cpu": "100"}),
            "nodes.nodePools[0].limits: not even one node of 8 accelerators fits; limits work in whole nodes",
            id="a limit that holds no whole node",
        ),
        pytest.param(
            changed(nodes__nodePools__0__initialNodes=3),
            "nodes.nodePools[0].limits: there is room for 2 nodes, and initialNodes is 3; raise",
            id="more initial nodes than the limits allow",
        ),
        pytest.param(
            changed(dollarsPerAcceleratorHour=3),
            "dollarsPerAcceleratorHour: nodes.dollarsPerAcceleratorHour has the prices; leave this one out",
            id="two prices",
        ),
        pytest.param(
            changed(coldStart=[{"name": "load", "medianSeconds": 60}]),
            "line 2: coldStart has no phase called node, and with nodes described it says how long a new one takes",
            id="a cold start without the launch of a node",
        ),
        pytest.param(
            changed(initialReplicas=9, nodes__nodePools__1__limits={"nvidia.com/gpu": "0"}),
            "initialReplicas is 9, and the limits of the NodePools have room for 8 at the start; raise",
            id="more first replicas than the limits have room for",
        ),
        pytest.param(
            changed(nodes__nodePools__1__outOfCapacity=[{"atSeconds": 5}]),
            "nodes.nodePools[1].outOfCapacity[0].lastsSeconds is missing",
            id="a want of capacity without an end",
        ),
        pytest.param(
            changed(nodes__nodePools__1__reclaim={}),
            "nodes.nodePools[1].reclaim is not a known field; did you mean reclaims?",
            id="a misspelt field",
        ),
    ],
)
def test_what_is_missing_or_contradicts_itself_is_said_with_file_and_line(
    tmp_path: Path, text: str, expected: str
) -> None:
    refused = read(tmp_path, text)
    assert isinstance(refused, FleetRefused)
    (problem,) = refused.problems
    assert problem.startswith(f"{tmp_path / 'fleet.yaml'}, line ")
    assert expected in problem


def test_every_problem_is_said_at_once(tmp_path: Path) -> None:
    text = changed(nodes__nodePools__1__name="od", dollarsPerAcceleratorHour=3, profile="none")
    refused = read(tmp_path, text)
    assert isinstance(refused, FleetRefused)
    assert len(refused.problems) == 3
