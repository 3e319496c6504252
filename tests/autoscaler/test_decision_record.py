"""Decision records: written, read again, decided again, and what is said of lines that are none."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from autoscaler.decision_record import DecisionRecord, differences, read_record, record_decision
from forecasting.forecast import Forecast, StepSkill
from policies.capacity.learned_capacity import LearnedCapacity
from policies.cold_start import ColdStart
from policies.decision import decide
from policies.history import ScaleEvent, TimedRecommendation
from policies.observation import PoolLatency, QueryUnknown, QueryValue, ReplicaCounts
from policies.signals import PoolSignal, Signal
from tests.builders import NOW, a_blackout, a_history, a_signal, an_observation
from tests.pool_builders import a_decision_report, a_record, a_scaler

ALL_VOTES = {
    "tokensInFlight": {},
    "tokenRate": {"perReplicaPerSecond": 9000},
    "kvCache": {},
    "waitingRequests": {"perReplica": 4},
    "pendingRequests": {"query": 'sum(gateway_pending_requests{pool="llama-70b"})', "perReplica": 16},
    "custom": [{"name": "sessions", "query": "sum(sessions)", "perReplica": 20}],
}


def changed(record: DecisionRecord, path: str, value: Any) -> str:
    """The record's line with one value replaced."""
    document = json.loads(record.to_json_line())
    *around, last = path.split(".")
    place = document
    for part in around:
        place = place[int(part) if part.isdigit() else part]
    place[last] = value
    return json.dumps(document)


def reading(line: str) -> DecisionRecord:
    record = read_record(line)
    assert isinstance(record, DecisionRecord), record
    return record


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(a_record(), id="a raise"),
        pytest.param(a_record(a_decision_report(waiting=20.0)), id="a lowering"),
        pytest.param(a_record(a_decision_report(metrics=a_blackout())), id="a blackout"),
        pytest.param(
            a_record(
                a_decision_report(
                    scaler=a_scaler(signals=ALL_VOTES, missingData={"fallback": {"replicas": 8}}),
                    metrics=an_observation(
                        queries={"pendingRequests": 12.5, "custom/sessions": QueryUnknown("NaN")},
                        latency=PoolLatency(0.8, 0.0131, 0.045, 2.1),
                        warnings=("a rate() over too short a window",),
                    ),
                    history=a_history(recommended={100.0: 9, 15.0: 8}, rescaled={40.0: 2}),
                )
            ),
            id="all votes, one of them unknown",
        ),
        pytest.param(
            a_record(
                a_decision_report(
                    scaler=a_scaler(
                        minReplicas=0,
                        schedules=[
                            {
                                "name": "day",
                                "timezone": "America/New_York",
                                "start": "30 7 * * 1-5",
                                "end": "0 19 * * 1-5",
                                "minReplicas": 24,
                            }
                        ],
                    )
                )
            ),
            id="a schedule",
        ),
    ],
)
def test_a_record_is_read_as_it_was_written_and_decided_again_alike(record: DecisionRecord) -> None:
    line = record.to_json_line()
    assert "\n" not in line
    assert read_record(line) == record
    assert differences(reading(line)) == ()


def test_the_line_says_schema_version_time_and_pool_first() -> None:
    document = json.loads(a_record().to_json_line())
    assert list(document) == ["schemaVersion", "time", "namespace", "name", "input", "decision", "actuation"]
    assert (document["schemaVersion"], document["time"]) == (3, "2030-03-17T17:46:40.000Z")
    assert (document["namespace"], document["name"]) == ("inference", "llama")
    assert document["actuation"] == {"reason": "SucceededRescale", "message": "Deployment inference/llama: 4 -> 8"}


@pytest.mark.parametrize(
    ("path", "value", "difference"),
    [
        pytest.param(
            "time",
            "2030-03-18T17:46:40.000Z",
            'time: recorded "2030-03-18T17:46:40.000Z", decided again "2030-03-17T17:46:40.000Z"',
            id="a time that is not the input's",
        ),
        pytest.param(
            "input.nowSeconds", 1e18, 'time: recorded "2030-03-17T17:46:40.000Z", decided again "1e+18"', id="no time"
        ),
        pytest.param(
            "decision.desiredReplicas", 80, "decision.desiredReplicas: recorded 80, decided again 8", id="the count"
        ),
        pytest.param(
            "decision.reason",
            "Fallback",
            'decision.reason: recorded "Fallback", decided again "WaitingRequests"',
            id="the reason",
        ),
        pytest.param(
            "decision.votes.waitingRequests.replicas",
            9.5,
            "decision.votes.waitingRequests.replicas: recorded 9.5, decided again 8.0",
            id="a vote",
        ),
        pytest.param(
            "decision.votes.waitingRequests.values.waitingRequests",
            81.0,
            "decision.votes.waitingRequests.values.waitingRequests: recorded 81.0, decided again 80.0",
            id="a value of a vote's formula",
        ),
        pytest.param("decision.binding", None, "decision.binding: recorded null, decided again", id="the binding vote"),
        pytest.param(
            "decision.steps",
            [{"name": "rateLimit", "before": 8, "after": 5, "reason": "ScaleUpLimit"}],
            'decision.steps: recorded [{"name": "rateLimit", "before": 8, "reason": "ScaleUpLimit", "after": 5}]',
            id="a step that was not taken",
        ),
        pytest.param(
            "decision.remembered",
            "00000000",
            'decision.remembered: recorded "00000000", decided again',
            id="what is remembered",
        ),
        pytest.param(
            "input.metrics.signals.waitingRequests.total",
            90.0,
            "decision.votes.waitingRequests.replicas: recorded 8.0, decided again 9.0",
            id="what was seen",
        ),
        pytest.param(
            "input.parameters.maxReplicas", 6, "decision.desiredReplicas: recorded 8, decided again 6", id="the policy"
        ),
        pytest.param(
            "input.history.scaleEvents",
            [{"atSeconds": NOW - 5.0, "change": 4}],
            "decision.desiredReplicas: recorded 8, decided again 4",
            id="what was remembered",
        ),
    ],
)
def test_a_changed_record_is_found(path: str, value: Any, difference: str) -> None:
    found = differences(reading(changed(a_record(), path, value)))
    assert any(each.startswith(difference) for each in found), found


BY_THE_CALENDAR = a_record(
    a_decision_report(
        scaler=a_scaler(schedules=[{"name": "day", "start": "0 8 * * *", "end": "0 18 * * *", "minReplicas": 2}])
    )
)
BY_WHAT_IS_LEARNED = a_record(a_decision_report(scaler=a_scaler(signals={"tokensInFlight": {}}, objectives={})))
A_REPLICA_THAT_HOLDS_NOTHING = {
    "prefillTokensPerSecond": 9000.0,
    "decodeTokensPerSecond": 900.0,
    "tokensInFlight": 0.0,
    "safeUtilization": 0.7,
}


@pytest.mark.parametrize(
    ("record", "path", "value"),
    [
        pytest.param(BY_THE_CALENDAR, "input.nowSeconds", 1e12, id="a year of five digits"),
        pytest.param(BY_THE_CALENDAR, "input.nowSeconds", 1e17, id="a moment beyond the clock"),
        pytest.param(BY_THE_CALENDAR, "input.nowSeconds", 2.0**63, id="a moment beyond all integers"),
        pytest.param(BY_WHAT_IS_LEARNED, "input.learnedCapacity", A_REPLICA_THAT_HOLDS_NOTHING, id="no capacity"),
    ],
)
def test_a_damaged_input_that_nobody_could_have_decided_is_found(record: DecisionRecord, path: str, value: Any) -> None:
    (found,) = differences(reading(changed(record, path, value)))
    assert found.startswith("input: it cannot be decided: ")


def test_times_and_messages_of_the_write_are_not_part_of_the_decision() -> None:
    assert differences(reading(changed(a_record(), "actuation.message", "something else"))) == ()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param("{}", "schemaVersion: Field required", id="an empty object"),
        pytest.param("[]", "Input should be an object", id="a list"),
        pytest.param("what?", "Invalid JSON: expected value at line 1 column 1", id="no JSON"),
        pytest.param(a_record().to_json_line()[:-9], "Invalid JSON: EOF while parsing", id="half a line"),
        pytest.param(
            '{"schemaVersion": 4, "everything": "else"}',
            "schemaVersion 4 is newer than this program's 3",
            id="a newer schema, whatever else it holds",
        ),
        pytest.param(changed(a_record(), "schemaVersion", "one"), "schemaVersion: Input should be", id="no version"),
        pytest.param(
            changed(a_record(), "input.replicas.spec", None), "input.replicas.spec: Input should be", id="no count"
        ),
        pytest.param(
            changed(a_record(), "input.replicas.warm", 3),
            "input.replicas.warm: Unexpected keyword argument",
            id="a field that is not known",
        ),
        pytest.param(
            changed(a_record(), "input.metrics.signals.waitingRequests.total", "Infinity"),
            "input.metrics.MetricsObservation.signals.waitingRequests.total: Input should be a finite number",
            id="a value that is not finite",
        ),
        pytest.param(
            changed(a_record(), "decision.reason", "Whim"), "decision.reason: Input should be", id="an unknown reason"
        ),
        pytest.param(
            changed(a_record(), "input.parameters.minReplicas", 1000),
            "input.parameters: Value error, minReplicas 1000 is above maxReplicas 100",
            id="a policy that is none",
        ),
    ],
)
def test_a_line_that_is_no_record_is_refused_with_place_and_reason(line: str, problem: str) -> None:
    found = read_record(line)
    assert isinstance(found, str)
    assert found.startswith(problem)


# As it comes from a real Prometheus: requests are whole, and nothing else is round.
SEEN = {
    signal: a_signal(*(scale * (1.0 + step * place) for place in range(10)), age_seconds=7.533)
    for signal, scale, step in (
        (Signal.RUNNING_REQUESTS, 23, 1),
        (Signal.WAITING_REQUESTS, 3, 1),
        (Signal.KV_CACHE_USAGE, 0.4161, 1 / 7),
        (Signal.KV_CACHE_USED_TOKENS, 24_967.3, 1 / 7),
        (Signal.KV_CACHE_CAPACITY_TOKENS, 60_000, 0),
        (Signal.PROMPT_TOKENS, 4123.7, 1 / 7),
        (Signal.GENERATION_TOKENS, 611.3, 1 / 7),
        (Signal.REQUESTS_FINISHED, 2.0166, 1 / 7),
        (Signal.PREEMPTIONS, 0.016, 1 / 7),
        (Signal.REQUESTS_ARRIVED, 2.0166, 1 / 7),
        (Signal.REQUESTS_ARRIVED_RECENTLY, 2.0166, 1 / 7),
    )
}
WINDOWS = tuple((23_456.1 + step, 34_567.2 + step, 45_678.3 + step) for step in range(4))
LEARNED = {
    "learned_cold_start": ColdStart(181.234, 240.123, 301.5, 20.1, 40.2, 120.3, 23),
    "learned_capacity": LearnedCapacity(15_834.1234567, 743.12345678, 53_234.12345, 0.71234, 0.0612, 34.56, "h100-8b"),
    "forecast": Forecast(
        NOW - 100, 300, (0.5, 0.9, 0.95), (), (), WINDOWS, 23_456.7, False, (StepSkill(True, 0.7123, 500, 288),) * 4
    ),
}
OBJECTIVES = {"timeToFirstTokenP99Milliseconds": 500, "interTokenLatencyP99Milliseconds": 30}


@pytest.mark.parametrize(
    ("spec", "learned", "maximum_bytes"),
    [
        pytest.param({"signals": {"waitingRequests": {"perReplica": 4}}}, {}, 3072, id="one vote"),
        pytest.param({"signals": ALL_VOTES}, {}, 4096, id="all votes by stated shares"),
        pytest.param(
            {"objectives": OBJECTIVES, "forecast": {"mode": "Active"}, "signals": {"kvCache": {}}},
            LEARNED,
            4096,
            id="objectives: learned capacity, cold start and forecast",
        ),
        pytest.param(
            {"objectives": OBJECTIVES, "forecast": {"mode": "Active"}, "signals": {**ALL_VOTES, "tokenRate": None}},
            LEARNED,
            4608,
            id="everything at once",
        ),
    ],
)
def test_a_record_of_ten_replicas_with_a_full_history_is_small(
    spec: dict[str, Any], learned: dict[str, Any], maximum_bytes: int
) -> None:
    report = a_decision_report(
        scaler=a_scaler(minReplicas=2, maxReplicas=40, **spec),
        replicas=ReplicaCounts(12, 12, 10, starting=2),
        metrics=an_observation(
            SEEN,
            ready=10,
            queries={"pendingRequests": QueryValue(12.0, 7.533), "custom/sessions": QueryValue(7.333333333333, 7.533)},
            prompt_tokens_per_request=2046.8354430379746,
            generation_tokens_per_request=303.45569620253164,
            prefix_cache_hit_share=0.21374045801526717,
            latency=PoolLatency(0.8123456789123, 0.0131234567891, 0.0456789012345, 2.1234567890123),
        ),
        # What a pool that breathes remembers of five minutes, and of its rate policies.
        history=a_history(
            recommended={300.123 - 30.017 * step: 9 + step for step in range(10)},
            rescaled={290.5: 1, 200.75: 2, 100.125: 1, 40.063: 1},
            last_desired_replicas=12,
            last_seen_replicas=11,
            consecutive_good_readings=3,
        ),
    )
    decision_input = replace(report.decision_input, **learned)
    record = record_decision("inference", "llama-70b", decision_input, decide(decision_input), report.actuation)
    line = record.to_json_line()
    assert reading(line) == record
    assert differences(record) == ()
    assert len(line) <= maximum_bytes


def test_a_record_says_what_would_be_without_what_gave_the_count() -> None:
    behavior = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}}
    record = a_record(a_decision_report(scaler=a_scaler(behavior=behavior), waiting=80.0))
    assert record.document()["decision"]["without"] == {"waitingRequests": 4, "rateLimit": 8}
    assert record.decision.desired_replicas == 5


def test_a_field_is_written_only_where_it_is_not_the_default() -> None:
    document = a_record().document()
    assert document["input"]["replicas"] == {"spec": 4, "status": 4, "ready": 4}
    signals = document["input"]["metrics"]["signals"]
    assert signals["runningRequests"] == {"total": 40.0, "maximum": 10.0, "freshReplicas": 4, "oldestAgeSeconds": 5.0}
    assert signals["waitingRequests"] == {"total": 80.0, "maximum": 20.0}
    assert "steps" not in document["decision"], "no limit had anything to do"
    assert "null" not in a_record().to_json_line()


@pytest.mark.parametrize(
    ("signal", "written"),
    [
        pytest.param(
            a_signal(20.0, 20.0, None, 20.0),
            {"total": 60.0, "maximum": 20.0, "unknownReplicas": 1, "freshReplicas": 3},
            id="fewer replicas",
        ),
        pytest.param(
            a_signal(20.0, 20.0, 20.0, 20.0, age_seconds=0.0),
            {"total": 80.0, "maximum": 20.0, "oldestAgeSeconds": 0.0},
            id="another age",
        ),
    ],
)
def test_a_signal_says_where_it_is_otherwise_than_the_first(signal: PoolSignal, written: dict[str, Any]) -> None:
    record = a_record(a_decision_report(metrics=an_observation({Signal.WAITING_REQUESTS: signal})))
    assert record.document()["input"]["metrics"]["signals"]["waitingRequests"] == written
    assert reading(record.to_json_line()) == record


def test_a_history_in_a_record_is_whole() -> None:
    history = a_history(recommended={100.0: 9}, rescaled={40.0: 2})
    record = reading(a_record(a_decision_report(history=history)).to_json_line())
    assert record.input.history.recommendations == (TimedRecommendation(NOW - 100.0, 9),)
    assert record.input.history.scale_events == (ScaleEvent(NOW - 40.0, 2),)
