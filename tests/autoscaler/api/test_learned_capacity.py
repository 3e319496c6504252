from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from autoscaler.api.learned import LearnedStatus
from autoscaler.api.learned_capacity import learned_capacity_status, restore_capacity
from policies.capacity.learned_capacity import LearnedCapacity
from policies.capacity.memory import CapacityMemory
from policies.capacity.samples import MAXIMUM_CLASSES, LoadSample
from tests.builders import NOW

SAMPLE = LoadSample(7.5, 0.03125, 812.5, 2.125, 1350.0, 980.0, 0.0)
MEMORY = CapacityMemory(
    NOW,
    "what its pods are made of has changed",
    "0123456789abcdef",
    0.755,
    (SAMPLE, replace(SAMPLE, generated_tokens_per_second=1400.0, cached_tokens=250.0)),
    LearnedCapacity(16_000.0, 750.0, 54_000.0, 0.755, 0.05, 15.0, "8B on one fast accelerator"),
)


def document(memory: CapacityMemory) -> dict[str, Any]:
    learned = LearnedStatus(capacity=learned_capacity_status(memory))
    return {"learned": learned.model_dump(mode="json", by_alias=True)}


@pytest.mark.parametrize(
    "memory",
    [
        pytest.param(MEMORY, id="a pool that has been learned"),
        pytest.param(replace(MEMORY, capacity=None, samples=(), begun_because=""), id="a pool that has just begun"),
        pytest.param(replace(MEMORY, template=None), id="replicas of which nobody says what they are made of"),
    ],
)
def test_what_is_saved_comes_back(memory: CapacityMemory) -> None:
    assert restore_capacity(document(memory)) == memory


def test_only_what_lasts_is_saved() -> None:
    busy = replace(MEMORY, ready_replicas=4, steady_since_seconds=NOW, measured_at_seconds=NOW)
    assert restore_capacity(document(busy)) == MEMORY


def test_it_is_short_whatever_was_measured() -> None:
    long = replace(SAMPLE, step_seconds=1.23456e-05, generated_tokens_per_second=1.23456e15, cached_tokens=1.2345e-11)
    saved = learned_capacity_status(replace(MEMORY, samples=(long,) * MAXIMUM_CLASSES))
    assert len(saved.model_dump_json(by_alias=True)) < 1600


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({}, id="no status"),
        pytest.param({"learned": None}, id="nothing learned"),
        pytest.param({"learned": {"coldStart": None}}, id="nothing of the capacity"),
        pytest.param({"learned": {"capacity": {"begun": "yesterday"}}}, id="a time that is none"),
        pytest.param({"learned": {"capacity": {"fromTheFuture": 1}}}, id="another version's form"),
        pytest.param({"learned": "text"}, id="no object at all"),
    ],
)
def test_what_cannot_be_read_is_nothing(status: dict[str, Any]) -> None:
    assert restore_capacity(status) is None


def test_samples_that_are_none_are_left_out() -> None:
    saved = document(MEMORY)
    saved["learned"]["capacity"]["samples"] += " 1,2,3 a,b,c,d,e,f,g 1,0,1,1,1,1,1 1,nan,1,1,1,1,1 1,1,1,1,1,1,-1"
    restored = restore_capacity(saved)
    assert restored is not None
    assert restored.samples == MEMORY.samples


def test_a_utilisation_and_a_trim_beyond_their_bounds_are_brought_to_them() -> None:
    saved = document(MEMORY)
    saved["learned"]["capacity"] |= {"safeUtilizationPercent": 99.0, "trimPercent": 500.0}
    restored = restore_capacity(saved)
    assert restored is not None
    assert restored.capacity is not None
    assert (restored.capacity.safe_utilization, restored.trim) == (0.85, 1.4)
