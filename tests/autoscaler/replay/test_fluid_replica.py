from __future__ import annotations

import math

import pytest

from autoscaler.replay.fluid_replica import (
    ReplicaLimits,
    Served,
    replica_limits,
    running_requests,
    serve,
    token_gap_seconds,
)
from autoscaler.replay.outcomes import LatencyObjectives
from autoscaler.replay.replica_profile import built_in_profile
from autoscaler.replay.step_law import step_law

LAW = step_law(built_in_profile("llama-3.3-70b-fp8-2xh100-vllm"))
LIMITS = ReplicaLimits(within_objectives=4.0, at_most=5.0)


@pytest.mark.parametrize(
    ("arriving", "backlog", "replicas", "seconds", "served"),
    [
        pytest.param(6.0, 0.0, 2, 60.0, Served(360.0, 0.0, 0.0), id="what two replicas can do is served as it comes"),
        pytest.param(9.0, 0.0, 2, 60.0, Served(540.0, 0.0, 60.0), id="beyond the objectives all is served, but short"),
        pytest.param(12.0, 0.0, 2, 60.0, Served(600.0, 120.0, 60.0), id="what is beyond all they can do waits"),
        pytest.param(0.0, 100.0, 2, 60.0, Served(100.0, 0.0, 10.0), id="a backlog is worked off at full speed"),
        pytest.param(5.0, 100.0, 2, 60.0, Served(400.0, 0.0, 20.0), id="beside what arrives meanwhile"),
        pytest.param(5.0, 900.0, 2, 60.0, Served(600.0, 600.0, 60.0), id="a backlog that lasts is carried over"),
        pytest.param(5.0, 10.0, 1, 60.0, Served(300.0, 10.0, 60.0), id="a backlog beside a full load stays"),
        pytest.param(5.0, 1.0, 0, 60.0, Served(0.0, 301.0, 60.0), id="without a replica everything waits"),
        pytest.param(0.0, 0.0, 0, 60.0, Served(0.0, 0.0, 0.0), id="nothing to do is not short without a replica"),
    ],
)
def test_what_so_many_replicas_serve(
    arriving: float, backlog: float, replicas: int, seconds: float, served: Served
) -> None:
    assert serve(arriving, backlog, replicas, LIMITS, seconds) == served


@pytest.mark.parametrize("arriving", [0.0, 3.0, 12.5])
@pytest.mark.parametrize("backlog", [0.0, 17.0, 4000.0])
@pytest.mark.parametrize("replicas", [0, 1, 3])
def test_no_request_is_made_or_lost(arriving: float, backlog: float, replicas: int) -> None:
    served = serve(arriving, backlog, replicas, LIMITS, 45.0)
    assert served.requests + served.backlog == pytest.approx(arriving * 45.0 + backlog)
    assert 0 <= served.requests <= LIMITS.at_most * replicas * 45.0
    assert 0 <= served.short_seconds <= 45.0


@pytest.mark.parametrize("per_second", [0.1, 1.0, 3.0])
def test_the_requests_of_a_replica_are_rate_times_the_time_of_an_answer(per_second: float) -> None:
    running = running_requests(LAW, per_second, 1000.0, 250.0)
    answer_seconds = 250.0 * token_gap_seconds(LAW, running, 1000.0, 250.0)
    assert running == pytest.approx(per_second * answer_seconds, rel=1e-3)


def test_a_replica_that_is_asked_for_more_than_it_can_is_full() -> None:
    full = running_requests(LAW, 1e6, 1000.0, 250.0)
    assert full == min(LAW.maximum_sequences, 0.9 * LAW.kv_capacity_tokens / 1125.0)
    assert running_requests(LAW, 0.0, 1000.0, 250.0) == 0.0


def test_a_looser_objective_allows_more_up_to_what_the_cache_holds() -> None:
    rates = [replica_limits(LAW, 1000.0, 250.0, LatencyObjectives(2.0, gap)) for gap in (1e-6, 0.03, 0.05, math.inf)]
    within = [each.within_objectives for each in rates]
    assert 0 < within[0] < within[1] < within[2] < within[3] == rates[3].at_most
