from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.accelerator_sharing import AcceleratorDemand, share_accelerators


def of(name: str, wanted: int, *, accelerators: int = 8, minimum: int = 0, priority: int = 0) -> AcceleratorDemand:
    return AcceleratorDemand(name, wanted, wanted, minimum, accelerators, priority)


@pytest.mark.parametrize(
    ("ceiling", "demands", "allowed"),
    [
        pytest.param(64, [of("a", 3)], {"a": 8}, id="one that is alone may have all"),
        pytest.param(64, [of("a", 9)], {"a": 8}, id="and no more than all"),
        pytest.param(64, [of("a", 3), of("b", 2)], {"a": 6, "b": 5}, id="what is left over is open to either"),
        pytest.param(64, [of("a", 9), of("b", 9)], {"a": 4, "b": 4}, id="equals share evenly"),
        pytest.param(64, [of("a", 2), of("b", 9)], {"a": 2, "b": 6}, id="what one does not want the other gets"),
        pytest.param(
            64, [of("chat", 6, priority=100), of("batch", 9)], {"chat": 8, "batch": 2}, id="the higher priority first"
        ),
        pytest.param(
            64,
            [of("chat", 9, priority=100), of("batch", 9, minimum=2)],
            {"chat": 6, "batch": 2},
            id="minimums come before priority",
        ),
        pytest.param(
            16, [of("a", 9, minimum=2), of("b", 9, minimum=2)], {"a": 2, "b": 2}, id="minimums are promised beyond it"
        ),
        pytest.param(
            24, [of("a", 9, accelerators=16), of("b", 9)], {"a": 1, "b": 1}, id="sizes that differ share accelerators"
        ),
        pytest.param(24, [of("a", 2), of("b", 2)], {"a": 2, "b": 1}, id="an odd replica goes to the first by name"),
        pytest.param(
            64,
            [of("a", 2, priority=9), of("b", 3, priority=5), of("c", 3)],
            {"a": 8, "b": 6, "c": 3},
            id="all of a lower priority may be asked to yield",
        ),
        pytest.param(0, [of("a", 2)], {"a": 0}, id="nothing to share"),
    ],
)
def test_accelerators_are_shared_by_priority(
    ceiling: int, demands: list[AcceleratorDemand], allowed: dict[str, int]
) -> None:
    allowances = share_accelerators(ceiling, demands, "h100")
    assert {name: allowance.replicas for name, allowance in allowances.items()} == allowed


_demands = st.lists(
    st.builds(
        AcceleratorDemand,
        scaler=st.uuids().map(str),
        wanted_replicas=st.integers(0, 60),
        current_replicas=st.integers(0, 60),
        minimum_replicas=st.integers(0, 4),
        accelerators_per_replica=st.sampled_from([1, 2, 4, 8, 16]),
        priority=st.sampled_from([0, 10, 100]),
    ),
    min_size=1,
    max_size=10,
)


@given(st.integers(0, 1000), _demands)
def test_what_is_granted_fits_and_minimums_hold(ceiling: int, demands: list[AcceleratorDemand]) -> None:
    allowances = share_accelerators(ceiling, demands, "h100")
    assert all(allowances[demand.scaler].replicas >= demand.minimum_replicas for demand in demands)
    # Where each takes what it wants of its allowance, those of lower priority still have what they must yield: with one
    # priority there is nobody to yield, and the ceiling holds at once but for what is left over and open to all.
    if len({demand.priority for demand in demands}) == 1:
        wanted = [max(d.minimum_replicas, min(allowances[d.scaler].replicas, d.wanted_replicas)) for d in demands]
        used = sum(count * d.accelerators_per_replica for count, d in zip(wanted, demands, strict=True))
        promised = sum(d.minimum_replicas * d.accelerators_per_replica for d in demands)
        assert used <= max(ceiling, promised)


@given(st.integers(0, 1000), _demands)
def test_who_wants_more_than_it_gets_may_not_be_passed_by_a_lower_priority(
    ceiling: int, demands: list[AcceleratorDemand]
) -> None:
    allowances = share_accelerators(ceiling, demands, "h100")
    for high in demands:
        for low in demands:
            is_short = allowances[high.scaler].replicas < high.wanted_replicas
            same_size = high.accelerators_per_replica == low.accelerators_per_replica
            if high.priority > low.priority and is_short and same_size:
                assert allowances[low.scaler].replicas == low.minimum_replicas


@given(st.integers(0, 1000), _demands)
def test_nobody_starves_beside_an_equal(ceiling: int, demands: list[AcceleratorDemand]) -> None:
    equals = [replace(demand, priority=0, minimum_replicas=0) for demand in demands]
    allowances = share_accelerators(ceiling, equals, "h100")
    accelerators = {
        each.scaler: min(allowances[each.scaler].replicas, each.wanted_replicas) * each.accelerators_per_replica
        for each in equals
    }
    for short in equals:
        if allowances[short.scaler].replicas < short.wanted_replicas:
            for other in equals:
                # One more replica would have passed it, or was more than what was left.
                most = accelerators[short.scaler] + short.accelerators_per_replica + other.accelerators_per_replica
                assert accelerators[other.scaler] <= most or ceiling - sum(accelerators.values()) < (
                    short.accelerators_per_replica
                )
