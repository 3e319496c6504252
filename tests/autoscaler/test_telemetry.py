"""The controller's own metrics page, read back with a parser."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from autoscaler.controller.pool_report import PoolReport
from autoscaler.telemetry import Telemetry
from policies.cold_start import ColdStart
from policies.observation import PoolLatency, ReplicaCounts
from policies.reasons import Reason
from tests.builders import a_blackout, an_observation
from tests.pool_builders import (
    a_crash_report,
    a_decision_report,
    a_rejected_report,
    a_scaler,
    an_unobserved_report,
    some_waiting,
)

POOL = {"namespace": "inference", "name": "llama"}


def samples(telemetry: Telemetry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(telemetry.render().decode())
        for sample in family.samples
    }


def value(telemetry: Telemetry, metric: str, /, **labels: str) -> float | None:
    return samples(telemetry).get((metric, tuple(sorted(labels.items()))))


def pools(telemetry: Telemetry) -> set[str]:
    return {dict(labels)["name"] for _, labels in samples(telemetry) if "name" in dict(labels)}


@pytest.mark.parametrize(
    ("report", "name", "labels", "expected"),
    [
        pytest.param(a_decision_report(waiting=80.0), "tokenscaler_desired_replicas", {}, 8.0, id="what was decided"),
        pytest.param(
            a_decision_report(replicas=ReplicaCounts(5, 5, 4, 1)), "tokenscaler_spec_replicas", {}, 5.0, id="asked for"
        ),
        pytest.param(
            a_decision_report(replicas=ReplicaCounts(5, 5, 4, 1)), "tokenscaler_ready_replicas", {}, 4.0, id="ready"
        ),
        pytest.param(
            a_decision_report(replicas=ReplicaCounts(5, 5, 4, 1)),
            "tokenscaler_starting_replicas",
            {},
            1.0,
            id="starting",
        ),
        pytest.param(
            a_decision_report(replicas=ReplicaCounts(6, 6, 4, 0, 2)), "tokenscaler_stuck_replicas", {}, 2.0, id="stuck"
        ),
        pytest.param(
            a_decision_report(replicas=ReplicaCounts(6, 6, 4, leaving=2, leaving_ready=1)),
            "tokenscaler_leaving_replicas",
            {},
            2.0,
            id="about to go",
        ),
        pytest.param(
            a_decision_report(replicas=ReplicaCounts(6, 6, 4, leaving=2, leaving_ready=1)),
            "tokenscaler_ready_replicas",
            {},
            5.0,
            id="those that are about to go serve until then",
        ),
        pytest.param(
            a_decision_report(cold_start=ColdStart(50.0, 80.0, 90.0, starts=7)),
            "tokenscaler_cold_start_seconds",
            {"quantile": "0.9"},
            80.0,
            id="how long starts take",
        ),
        pytest.param(
            a_decision_report(metrics=some_waiting(40.0, latency=PoolLatency(None, 0.02, 0.08))),
            "tokenscaler_inter_token_latency_divergence_ratio",
            {},
            4.0,
            id="how uneven the gaps between tokens are",
        ),
        pytest.param(
            a_decision_report(metrics=some_waiting(40.0, fresh=3)),
            "tokenscaler_coverage_ratio",
            {},
            0.75,
            id="coverage",
        ),
        pytest.param(
            a_decision_report(metrics=a_blackout()), "tokenscaler_coverage_ratio", {}, 0.0, id="no coverage when blind"
        ),
        pytest.param(
            a_decision_report(waiting=85.0),
            "tokenscaler_vote_replicas",
            {"vote": "waitingRequests"},
            8.5,
            id="a vote is a real number",
        ),
        pytest.param(
            a_decision_report(metrics=a_blackout()),
            "tokenscaler_vote_replicas",
            {"vote": "waitingRequests"},
            None,
            id="a vote without an opinion has no series",
        ),
        pytest.param(
            a_decision_report(waiting=80.0),
            "tokenscaler_binding_reason",
            {"reason": "WaitingRequests"},
            1.0,
            id="the reason of a decision",
        ),
        pytest.param(
            a_rejected_report(), "tokenscaler_binding_reason", {"reason": "SpecInvalid"}, 1.0, id="an invalid spec"
        ),
        pytest.param(
            an_unobserved_report(Reason.STALE_CACHE),
            "tokenscaler_binding_reason",
            {"reason": "StaleCache"},
            1.0,
            id="a target that cannot be seen",
        ),
        pytest.param(
            a_crash_report(), "tokenscaler_binding_reason", {"reason": "InternalError"}, 1.0, id="a bug of ours"
        ),
        pytest.param(an_unobserved_report(), "tokenscaler_desired_replicas", {}, None, id="nothing decided, no count"),
    ],
)
def test_a_report_becomes_series(report: PoolReport, name: str, labels: dict[str, str], expected: float | None) -> None:
    telemetry = Telemetry()
    telemetry.report([report])
    assert value(telemetry, name, **POOL, **labels) == expected


def test_each_vote_is_a_series_of_its_own() -> None:
    signals = {
        "kvCache": {},
        "waitingRequests": {"perReplica": 4},
        "custom": [{"name": "sessions", "query": "sum(sessions)", "perReplica": 20}],
    }
    telemetry = Telemetry()
    report = a_decision_report(
        scaler=a_scaler(signals=signals), metrics=an_observation(queries={"custom/sessions": 40.0})
    )
    telemetry.report([report])
    votes = {dict(labels)["vote"] for name, labels in samples(telemetry) if name == "tokenscaler_vote_replicas"}
    assert votes == {"kvCache", "waitingRequests", "custom/sessions"}


def test_a_pool_that_is_gone_leaves_no_series() -> None:
    telemetry = Telemetry()
    telemetry.report([a_decision_report(), a_decision_report(scaler=a_scaler("other"))])
    assert pools(telemetry) == {"llama", "other"}
    telemetry.report([a_decision_report(scaler=a_scaler("other"))])
    assert pools(telemetry) == {"other"}
    telemetry.report([])
    assert pools(telemetry) == set()


def test_a_pool_that_is_no_longer_seen_shows_no_count_of_before() -> None:
    telemetry = Telemetry()
    telemetry.report([a_decision_report()])
    telemetry.report([an_unobserved_report()])
    assert value(telemetry, "tokenscaler_ready_replicas", **POOL) is None


def test_decisions_are_counted_by_what_came_of_them() -> None:
    telemetry = Telemetry()
    telemetry.report([a_decision_report(waiting=80.0), a_decision_report(), an_unobserved_report()])
    telemetry.report([a_decision_report(waiting=80.0, outcome=Reason.CONFLICT)])
    assert value(telemetry, "tokenscaler_actuations_total", reason="SucceededRescale") == 1.0
    assert value(telemetry, "tokenscaler_actuations_total", reason="ReadyForNewScale") == 1.0
    assert value(telemetry, "tokenscaler_actuations_total", reason="Conflict") == 1.0


def test_a_gauge_is_read_at_each_scrape() -> None:
    telemetry = Telemetry()
    ages = {"pods": 1.0}
    telemetry.add_gauges("tokenscaler_cache_age_seconds", "Age.", "resource", lambda: ages)
    assert value(telemetry, "tokenscaler_cache_age_seconds", resource="pods") == 1.0
    ages["pods"] = 2.0
    assert value(telemetry, "tokenscaler_cache_age_seconds", resource="pods") == 2.0


def test_everything_is_under_one_prefix() -> None:
    telemetry = Telemetry()
    telemetry.report([a_decision_report()])
    telemetry.ticks.labels("done").inc()
    assert {name.partition("_")[0] for name, _ in samples(telemetry)} == {"tokenscaler"}


def test_two_processes_in_one_do_not_share_a_registry() -> None:
    one, other = Telemetry(), Telemetry()
    one.report([a_decision_report()])
    assert pools(other) == set()
