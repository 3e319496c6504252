"""How many replicas does a load ask for that goes on rising until a replica ordered now could serve?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.load.work_rate import WorkRate, work_rate
from policies.reasons import Reason
from policies.recommendation import ScalingRecommendation, vote
from policies.recommenders.forecast import recommend_forecast

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput  # it holds the parameters, so it cannot be imported here

NAME = "loadRise"

# A scrape, a tick and the write, until an order is given that answers what has arrived.
DELAY_SECONDS = 45.0
# What has risen for five minutes may end now; more than this is left to be seen.
LARGEST_GROWTH = 0.3
# Of the load of now: a forecast that comes so near to it has foreseen the rise, and differs by noise.
FORESEEN_SHARE = 0.9


def recommend_load_rise(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """Replicas = max(g60, 0.9 g30) (1 + s) / u, where s is the share more that arrives after L50 + 45 s if it goes on.

    The growth is at most 0.3. It votes where the work rate does, while the arrivals rise, and where no forecast asks
    for about as much as arrives already: a forecast knows how far the usual rise of this hour goes.
    """
    parameters, rise, capacity = decision_input.parameters, decision_input.load_rise, decision_input.learned_capacity
    if rise is None or capacity is None or parameters.objectives is None or parameters.signals.token_rate is not None:
        return ()
    work = work_rate(decision_input.metrics, capacity)
    if not isinstance(work, WorkRate) or _is_foreseen(decision_input, work, capacity.safe_utilization):
        return ()
    ahead_seconds = decision_input.cold_start.l50_seconds + DELAY_SECONDS
    growth = min(rise.growth(ahead_seconds), LARGEST_GROWTH)
    likely, cautious = ((1.0 + growth) * each for each in work.largest)
    return (
        vote(
            NAME,
            Reason.LOAD_RISE,
            likely,
            capacity.safe_utilization,
            "load that goes on rising as in the last five minutes ({} % more work than now when a replica ordered now "
            "serves, {} replicas' time at {} a replica) needs",
            {
                "risePerMinute": 60.0 * rise.share_per_second,
                "aheadSeconds": ahead_seconds,
                "workPerSecondExpected": likely,
                "safeUtilization": capacity.safe_utilization,
            },
            terms=(100.0 * growth, likely, capacity.safe_utilization),
            cautious_demand=cautious,
            is_forecast=True,
        ),
    )


def _is_foreseen(decision_input: DecisionInput, work: WorkRate, utilization: float) -> bool:
    """Whether a forecast that acts asks for nine tenths of the replicas for the load of now, or more."""
    parameters = decision_input.parameters.forecast
    if parameters is None or decision_input.forecast is None:
        return False
    foreseen = FORESEEN_SHARE * work.last_minute.likely / utilization
    return any(
        each.replicas is not None and not each.is_advice and each.replicas >= foreseen
        for each in recommend_forecast(decision_input)
    )
