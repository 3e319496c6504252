"""What does one decision cost, of a pool with all votes and a full history, and what does its record?

Processor time, the best of several rounds: on a busy machine a clock would measure the neighbours.
"""

from __future__ import annotations

import json
import time
import timeit
from collections.abc import Callable
from dataclasses import replace

from autoscaler.decision_record import ActuationOutcome, differences, record_decision
from policies.capacity.learned_capacity import LearnedCapacity
from policies.cold_start import ColdStart
from policies.decision import decide
from policies.decision_input import DecisionInput
from policies.observation import ReplicaCounts
from policies.reasons import Reason
from policies.signals import Signal
from policies.standing_for_bursts import RecurringBursts
from tests.benchmarks.figure import Figure
from tests.builders import a_decision_input, a_history, a_policy, an_even_signal, an_observation
from tests.forecast_builders import RISING

ROUNDS, CALLS = 9, 1000
OBJECTIVES = {"timeToFirstTokenP99Milliseconds": 2000, "interTokenLatencyP99Milliseconds": 50}
VOTES = {
    "tokensInFlight": {},
    "kvCache": {},
    "waitingRequests": {"perReplica": 4},
    "pendingRequests": {"query": "sum(pending)", "perReplica": 16},
    "custom": [{"name": "sessions", "query": "sum(sessions)", "perReplica": 20}],
}


def measure() -> list[Figure]:
    """Microseconds a call, and the bytes of a record."""
    decision_input = _a_busy_pool()
    last_began_at_seconds = decision_input.now_seconds - 400.0
    bursts = RecurringBursts(12, 20, 60.0, last_began_at_seconds, calm_replicas=8)
    in_bursts = replace(decision_input, recurring_bursts=bursts)
    decision, decide_in_bursts = decide(decision_input), decide(in_bursts)
    outcome = ActuationOutcome(Reason.READY_FOR_NEW_SCALE, "the count is as wanted")
    record = record_decision("inference", "llama-70b", decision_input, decision, outcome)
    line = record.to_json_line()
    return [
        Figure("one decision", _microseconds(lambda: decide(decision_input)), "<= 150 us"),
        Figure("the same while bursts recur", _microseconds(lambda: decide(in_bursts)), "<= 150 us"),
        Figure("its sentence, where it is read", _microseconds(lambda: replace(decision).message)),
        Figure("its sentence while bursts recur", _microseconds(lambda: replace(decide_in_bursts).message)),
        Figure(
            "its record, where one is kept",
            _microseconds(lambda: record_decision("a", "b", decision_input, decision, outcome).to_json_line()),
        ),
        Figure("to decide it again and compare", _microseconds(lambda: differences(record))),
        Figure("length of the record", f"{len(line):,} bytes", "<= 4,096 bytes"),
        Figure("of that the input", f"{len(json.dumps(record.document()['input'], separators=(',', ':'))):,} bytes"),
    ]


def _a_busy_pool() -> DecisionInput:
    """Ten replicas of twelve serve, and a schedule is open; five minutes of ups and downs are remembered."""
    arriving = an_even_signal(23.7, 10)
    metrics = an_observation(
        {Signal.REQUESTS_ARRIVED: arriving, Signal.REQUESTS_ARRIVED_RECENTLY: arriving},
        ready=10,
        queries={"pendingRequests": 12.0, "custom/sessions": 7.0},
    )
    policy = a_policy(
        maxReplicas=40,
        signals=VOTES,
        objectives=OBJECTIVES,
        forecast={"mode": "Active"},
        schedules=[{"name": "day", "start": "0 8 * * *", "end": "0 20 * * *", "minReplicas": 4}],
    )
    history = a_history(
        recommended={300.0 - 30.0 * step: 9 + step for step in range(10)},
        rescaled={290.5: 1, 200.75: 2, 100.125: 1, 40.063: 1},
        last_desired_replicas=12,
        last_seen_replicas=12,
        consecutive_good_readings=3,
    )
    return replace(
        a_decision_input(policy, metrics, replicas=ReplicaCounts(12, 12, 10, starting=2), history=history),
        learned_capacity=LearnedCapacity(15_834.0, 743.0, 53_234.0),
        learned_cold_start=ColdStart(180.0, 240.0, 300.0, starts=20),
        forecast=RISING.for_a_decision(),
    )


def _microseconds(call: Callable[[], object]) -> str:
    rounds = timeit.repeat(call, timer=time.process_time, number=CALLS, repeat=ROUNDS)
    return f"{min(rounds) / CALLS * 1e6:.0f} us"
