"""Every signal, every fault, under load that asks for more and for fewer: what is decided, and which rule decides.

`fault_matrix.txt` is the table; a cell is the count that comes of 4 replicas, and the reason. What Prometheus says goes
through the observer, where NaN, infinity and silence come in. Each vote stands alone in its policy, with no window and
no rate in its way: what holds a count here is missing data and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policies.capacity.learned_capacity import LearnedCapacity
from policies.decision import ScalingDecision, decide
from policies.decision_input import DecisionInput
from policies.observation import MetricsObservation, ReplicaCounts
from policies.signals import Signal
from tests.builders import NOW, a_history, a_policy
from tests.policies.observed_pool import (
    FAULTS,
    GENERATED_TOKENS,
    NO_FAULT,
    PROMPT_TOKENS,
    REPLICAS,
    ObservedPool,
)

TABLE = Path(__file__).with_name("fault_matrix.txt")
# Of its full share of load each replica has half again, or half: 6 are wanted, or 2.
PRESSURES = {"up": 1.5, "down": 0.5}
FEWEST = 2
CAPACITY = LearnedCapacity(
    prefill_tokens_per_second=16_000.0, decode_tokens_per_second=750.0, tokens_in_flight=2000.0, safe_utilization=0.70
)
# A little less than its full share, so that no rounding of floats asks for one more.
REQUESTS_PER_SECOND = 0.695 / CAPACITY.work_seconds(PROMPT_TOKENS, GENERATED_TOKENS)
OBJECTIVES = {"timeToFirstTokenP99Milliseconds": 2000, "interTokenLatencyP99Milliseconds": 50}
IDLE = {
    Signal.RUNNING_REQUESTS: 4.0,
    Signal.WAITING_REQUESTS: 0.0,
    Signal.KV_CACHE_USAGE: 0.01,
    Signal.PROMPT_TOKENS: 1.0,
    Signal.GENERATION_TOKENS: 1.0,
    Signal.REQUESTS_FINISHED: 0.01,
}


@dataclass(frozen=True)
class Row:
    """One vote: the policy that has it alone, what a replica with its full share shows, and what has the fault."""

    policy: Mapping[str, Any]
    full: Mapping[Signal, float]
    faulty: str


ROWS = {
    "kvCache": Row({"signals": {"kvCache": {"headroomPercent": 50}}}, {Signal.KV_CACHE_USAGE: 0.5}, "kvCacheUsage"),
    "waitingRequests": Row(
        {"signals": {"waitingRequests": {"perReplica": 10}}}, {Signal.WAITING_REQUESTS: 10.0}, "waitingRequests"
    ),
    "tokenRate": Row(
        {"signals": {"tokenRate": {"perReplicaPerSecond": 1000}}},
        {Signal.PROMPT_TOKENS: 800.0, Signal.GENERATION_TOKENS: 200.0},
        "promptTokensTotal",
    ),
    "tokensInFlight (usage)": Row(
        {"signals": {"tokensInFlight": {"perReplica": 2000}}}, {Signal.KV_CACHE_USAGE: 0.5}, "kvCacheUsage"
    ),
    "tokensInFlight (waiting)": Row(
        # 5 requests wait of (2000 + 300 / 2) tokens each.
        {"signals": {"tokensInFlight": {"perReplica": 10_900}}},
        {Signal.WAITING_REQUESTS: 5.0},
        "waitingRequests",
    ),
    "workRate": Row(
        {"objectives": OBJECTIVES, "signals": {}},
        {Signal.REQUESTS_FINISHED: REQUESTS_PER_SECOND},
        "requestsFinishedTotal",
    ),
    "pendingRequests": Row({"signals": {"pendingRequests": {"query": "pendingRequests", "perReplica": 10}}}, {}, ""),
    "custom": Row({"signals": {"custom": [{"name": "depth", "query": "custom/depth", "perReplica": 10}]}}, {}, ""),
}
QUERIES = {"pendingRequests": "pendingRequests", "custom": "custom/depth"}
# How many of the four replicas have the fault. A user's own PromQL has it or not.
AT = {"one": 1, "all": REPLICAS}


def decided(row: str, fault: str, at: str, pressure: str) -> ScalingDecision:
    """The decision for four replicas under this pressure after the fault has lasted."""
    share, query = PRESSURES[pressure], QUERIES.get(row)
    numbers = {signal.value: number for signal, number in IDLE.items()}
    numbers |= {signal.value: number * share for signal, number in ROWS[row].full.items()}
    pool = ObservedPool(numbers, {query: REPLICAS * 10.0 * share} if query else {})
    metrics = pool.observe(query or ROWS[row].faulty, FAULTS.get(fault, NO_FAULT), AT[at])
    assert isinstance(metrics, MetricsObservation)
    policy = a_policy(
        behavior={"scaleDown": {"stabilizationWindowSeconds": 0}}, coldStart={"priorSeconds": 1}, **ROWS[row].policy
    )
    counts = ReplicaCounts(REPLICAS, REPLICAS, REPLICAS)
    history = a_history(last_desired_replicas=4, last_seen_replicas=4, consecutive_good_readings=3)
    return decide(DecisionInput(NOW, policy, counts, metrics, history, learned_capacity=CAPACITY))


def columns(row: str) -> Iterator[tuple[str, str]]:
    """(fault, at how many) of each cell of a row: no fault, each at one of the replicas, each at all of them."""
    yield "fresh", "one"
    for at in ("all",) if row in QUERIES else AT:
        for fault in FAULTS:
            if not (row in QUERIES and fault == "aged"):  # the answer to a query has the age of the query
                yield fault, at


def rendered() -> str:
    """The table as it comes out."""
    lines = []
    for row in ROWS:
        for fault, at in columns(row):
            place = "" if fault == "fresh" else "the query" if row in QUERIES else f"{at} of 4" if at == "one" else at
            cells = (decided(row, fault, at, pressure) for pressure in PRESSURES)
            up, down = (f"{cell.desired_replicas} {cell.reason.value}" for cell in cells)
            lines.append(f"{row:25}{fault:9}{place:10}{up:20}{down}".rstrip())
        lines.append("")
    head = f"{'vote':25}{'fault':9}{'at':10}{'half again as much':20}half as much\n"
    return head + "\n".join(lines)


def test_the_table_is_what_is_decided() -> None:
    assert rendered() == TABLE.read_text(encoding="utf-8"), (
        "rewrite it with `python -m tests.policies.test_fault_matrix`"
    )


CELLS = [
    pytest.param(row, fault, at, id=f"{row}: {fault} at {at}")
    for row in ROWS
    for fault, at in columns(row)
    if fault not in ("fresh", "zero")
]


@pytest.mark.parametrize(("row", "fault", "at"), CELLS)
def test_no_fault_lowers_the_count_below_what_full_sight_would(row: str, fault: str, at: str) -> None:
    """Nor below the present one where more is needed; and what one replica does not tell adds at most a quarter."""
    up, down = (decided(row, fault, at, pressure).desired_replicas for pressure in PRESSURES)
    assert up >= REPLICAS
    assert down >= FEWEST
    assert up <= 6
    if at == "all":
        assert down >= REPLICAS, "of what is not seen at all nothing may be given up"


if __name__ == "__main__":
    TABLE.write_text(rendered(), encoding="utf-8")
