from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.accelerator_sharing import AcceleratorDemand
from policies.node_packing import NodeRoom, nodes_for

GIBI = 2**30


def asks(replicas: int, accelerators: int, cpus: int = 0, gibi: int = 0) -> AcceleratorDemand:
    return AcceleratorDemand(
        f"{accelerators}x{cpus}", replicas, 0, 0, accelerators, cpu_millis=1000 * cpus, memory_bytes=gibi * GIBI
    )


def room(accelerators: int = 8, cpus: int | None = None, gibi: int | None = None) -> NodeRoom:
    return NodeRoom(accelerators, None if cpus is None else 1000 * cpus, None if gibi is None else gibi * GIBI)


@pytest.mark.parametrize(
    ("node", "demands", "nodes"),
    [
        pytest.param(room(), [asks(4, 2, 100)], 1, id="what is not known of a node binds nothing"),
        pytest.param(room(cpus=192), [asks(4, 2, 40)], 1, id="four fit by accelerators and by CPU"),
        pytest.param(room(cpus=192), [asks(4, 2, 60)], 2, id="three of four fit by CPU"),
        pytest.param(room(cpus=178), [asks(4, 2, 60)], 2, id="DaemonSets take 14 CPUs: two fit"),
        pytest.param(room(cpus=192, gibi=2000), [asks(4, 2, 40, 900)], 2, id="two of four fit by memory"),
        pytest.param(room(cpus=180), [asks(3, 8, 190)], 3, id="what fits on no node is counted with one each"),
        pytest.param(room(accelerators=7), [asks(3, 4)], 3, id="a DaemonSet has an accelerator: one of two fits"),
        pytest.param(room(cpus=192), [asks(2, 16, 190)], 4, id="what needs several nodes takes whole ones"),
        pytest.param(
            room(cpus=192), [asks(2, 4, 150), asks(4, 2, 20)], 2, id="small ones fill what large ones leave of both"
        ),
        pytest.param(room(cpus=192), [asks(2, 4, 180), asks(2, 4, 10)], 2, id="much CPU and little of it share a node"),
        pytest.param(room(cpus=0), [asks(2, 1, 1)], 2, id="DaemonSets take it all"),
    ],
)
def test_nodes_by_all_that_replicas_ask_for(node: NodeRoom, demands: list[AcceleratorDemand], nodes: int) -> None:
    assert nodes_for(node, demands) == nodes


@pytest.mark.parametrize(
    ("node", "demand", "replicas"),
    [
        pytest.param(room(), asks(1, 3), 2, id="by accelerators"),
        pytest.param(room(cpus=100), asks(1, 2, 40), 2, id="by CPU"),
        pytest.param(room(cpus=100), asks(1, 8, 101), 0, id="on none, for its CPU"),
        pytest.param(room(), asks(1, 16), 0, id="on none, for its accelerators"),
    ],
)
def test_replicas_of_a_node(node: NodeRoom, demand: AcceleratorDemand, replicas: int) -> None:
    assert node.replicas_of(demand) == replicas


DEMANDS = st.lists(
    st.builds(asks, st.integers(0, 40), st.sampled_from([1, 2, 4, 8]), st.integers(0, 90), st.integers(0, 900)),
    max_size=6,
)


@given(DEMANDS)
def test_what_is_packed_has_room_and_no_replica_needs_more_than_a_node(demands: list[AcceleratorDemand]) -> None:
    node = room(cpus=90, gibi=900)
    nodes = nodes_for(node, demands)
    for of_node, of_all in (
        (8, sum(each.wanted_replicas * each.accelerators_per_replica for each in demands)),
        (90_000, sum(each.wanted_replicas * each.cpu_millis for each in demands)),
        (900 * GIBI, sum(each.wanted_replicas * each.memory_bytes for each in demands)),
    ):
        assert nodes * of_node >= of_all
    assert nodes_for(room(), demands) <= nodes <= sum(each.wanted_replicas for each in demands)
