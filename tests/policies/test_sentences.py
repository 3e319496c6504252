"""The sentence of every limit: what was wanted, what came of it, and by which numbers.

They stand in logs, Events, conditions and records, and are read at three in the morning: word for word.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policies.accelerator_sharing import AcceleratorAllowance
from policies.decision import decide
from policies.decision_input import DecisionInput
from policies.observation import QueryUnknown, ReplicaCounts
from policies.reasons import Reason
from policies.signals import Signal
from tests.builders import (
    NOW,
    a_blackout,
    a_decision_input,
    a_history,
    a_policy,
    a_signal,
    an_even_signal,
    an_observation,
)

WAITING = {"waitingRequests": {"perReplica": 10}}
PENDING = {"pendingRequests": {"query": "q", "perReplica": 10}}
ALWAYS = {"name": "always", "start": "* * * * *", "end": "0 0 29 2 *"}


def a_pool(
    wanted: float,
    *,
    replicas: int = 4,
    history: Any = None,
    signals: Any = WAITING,
    pending: Any = 0.0,
    waiting: Any = None,
    fresh: int | None = None,
    **spec: Any,
) -> DecisionInput:
    """A pool whose waiting requests ask for `wanted` replicas."""
    metrics = an_observation(
        {Signal.WAITING_REQUESTS: waiting or an_even_signal(10.0 * wanted, replicas)},
        ready=replicas,
        fresh=fresh,
        queries={"pendingRequests": pending},
    )
    return a_decision_input(a_policy(signals=signals, **spec), metrics, replicas=replicas, history=history)


def rates(direction: str, *policies: tuple[str, int, int], **more: Any) -> Any:
    listed = [{"type": kind, "value": value, "periodSeconds": seconds} for kind, value, seconds in policies]
    return {direction: {**({"policies": listed} if listed else {}), **more}}


def asleep(pending: Any, **spec: Any) -> DecisionInput:
    return a_decision_input(
        a_policy(minReplicas=0, signals=PENDING, **spec),
        an_observation(ready=0, queries={"pendingRequests": pending}),
        replicas=ReplicaCounts(0, 0, 0),
        history=a_history(is_scaled_to_zero=True, last_desired_replicas=0, last_seen_replicas=0),
    )


def idle(**history: Any) -> DecisionInput:
    nothing = an_even_signal(0.0, 1)
    metrics = an_observation(
        {Signal.RUNNING_REQUESTS: nothing, Signal.WAITING_REQUESTS: nothing, Signal.REQUESTS_FINISHED: nothing},
        ready=1,
        queries={"pendingRequests": 0.0},
    )
    policy = a_policy(minReplicas=0, signals=WAITING | PENDING)
    return a_decision_input(policy, metrics, replicas=1, history=a_history(**history))


def busy_at_zero_demand() -> DecisionInput:
    """One replica that serves requests while none wait, and none are held back."""
    return replace(
        idle(),
        metrics=an_observation(
            {Signal.WAITING_REQUESTS: an_even_signal(0.0, 1)}, ready=1, queries={"pendingRequests": 0.0}
        ),
    )


BLIND_FOR_A_MINUTE = a_history(blind_since_seconds=NOW - 60, last_desired_replicas=4, last_seen_replicas=4)


@pytest.mark.parametrize(
    ("decision_input", "step", "after", "reason", "message"),
    [
        # tolerance
        pytest.param(
            a_pool(4.1),
            "tolerance",
            4,
            Reason.WITHIN_TOLERANCE,
            "kept at 4: 4.10 is within 10 % below and 5 % above 4",
            id="within the band",
        ),
        pytest.param(a_pool(8), "tolerance", 8, Reason.NOT_LIMITED, "8 against 4 replicas", id="beyond the band"),
        pytest.param(
            a_pool(4.1, schedules=[{**ALWAYS, "minReplicas": 5}], minReplicas=0, signals=WAITING, replicas=4),
            "bounds",
            5,
            Reason.TOO_FEW_REPLICAS,
            "stands at 4, raised to 5 by schedule always",
            id="a schedule's minimum acts as a bound",
        ),
        pytest.param(
            a_pool(0, signals={}, schedules=[{**ALWAYS, "minReplicas": 3}]),
            "tolerance",
            3,
            Reason.NOT_LIMITED,
            "no vote that a tolerance applies to",
            id="nothing but a schedule",
        ),
        # missing data
        pytest.param(
            replace(a_pool(8), metrics=a_blackout("no route to host")),
            "missingData",
            4,
            Reason.METRICS_UNAVAILABLE,
            "held at 4, blind for 0 s: no route to host",
            id="blind",
        ),
        pytest.param(
            replace(a_pool(8, history=BLIND_FOR_A_MINUTE), metrics=a_blackout("no route to host")),
            "missingData",
            4,
            Reason.METRICS_UNAVAILABLE,
            "held at 4, blind for 60 s: no route to host",
            id="blind for a while",
        ),
        pytest.param(
            replace(
                a_pool(8, missingData={"holdSeconds": 60, "fallback": {"replicas": 6}}, history=BLIND_FOR_A_MINUTE),
                metrics=a_blackout("no route to host"),
            ),
            "missingData",
            6,
            Reason.FALLBACK,
            "fallback at 6, blind for 60 s: no route to host",
            id="in fallback",
        ),
        pytest.param(
            a_pool(0, waiting=a_signal(50.0, None, None, None), fresh=1, pending=55.0, signals=WAITING | PENDING),
            "missingData",
            6,
            Reason.LOW_COVERAGE,
            "6 asked for over the 4 that are held, blind for 0 s: 1 of 4 ready replicas have fresh samples",
            id="blind, and a vote that needs no replica asks for more than the few that are seen",
        ),
        pytest.param(
            a_pool(4, history=BLIND_FOR_A_MINUTE),
            "missingData",
            4,
            Reason.NOT_LIMITED,
            "1 of 3 good readings in a row",
            id="recovering, and what is asked for is what is held",
        ),
        pytest.param(
            a_pool(2, history=BLIND_FOR_A_MINUTE),
            "missingData",
            4,
            Reason.RECOVERING,
            "held at 4, 1 of 3 good readings in a row",
            id="recovering",
        ),
        pytest.param(
            a_pool(2, signals=WAITING | PENDING, pending=QueryUnknown("the query has no series")),
            "missingData",
            4,
            Reason.SIGNAL_UNKNOWN,
            "held at 4: the query has no series",
            id="one vote of two is unknown",
        ),
        pytest.param(
            a_pool(2, waiting=a_signal(5.0, 5.0, 5.0, None), fresh=3),
            "missingData",
            4,
            Reason.LOW_COVERAGE,
            "held at 4: for 0 s now only 3 of 4 ready replicas have fresh samples",
            id="low coverage blocks",
        ),
        pytest.param(
            a_pool(
                2,
                waiting=a_signal(5.0, 5.0, 5.0, None),
                fresh=3,
                history=a_history(low_coverage_since_seconds=NOW - 300, most_missing_replicas=1),
            ),
            "missingData",
            4,
            Reason.LOW_COVERAGE,
            "held at 4: for 5 min now only 3 of 4 ready replicas have fresh samples",
            id="low coverage still blocks",
        ),
        pytest.param(
            a_pool(
                2,
                waiting=a_signal(1.0, 1.0, 1.0, None),
                fresh=3,
                history=a_history(low_coverage_since_seconds=NOW - 900, most_missing_replicas=1),
            ),
            "missingData",
            3,
            Reason.LOW_COVERAGE,
            "3, one replica at a time: 3 of 4 ready replicas have fresh samples",
            id="low coverage that lasts: one at a time",
        ),
        pytest.param(
            a_pool(
                2,
                waiting=a_signal(8.0, 6.0, 5.9, None),
                fresh=3,
                history=a_history(low_coverage_since_seconds=NOW - 900, most_missing_replicas=1),
            ),
            "missingData",
            3,
            Reason.NOT_LIMITED,
            "3 of 4 ready replicas have fresh samples",
            id="low coverage that lasts, and one fewer is all that is wanted",
        ),
        pytest.param(
            a_pool(2, waiting=a_signal(5.0, 5.0, 5.0, None)),
            "missingData",
            3,
            Reason.LOW_COVERAGE,
            "kept at 3: unseen replicas may be full",
            id="one replica does not say how many wait",
        ),
        pytest.param(
            replace(
                a_pool(2),
                metrics=an_observation(
                    {Signal.WAITING_REQUESTS: replace(an_even_signal(20.0, 4), unsteady_total=9.0)}, unsteady_replicas=1
                ),
            ),
            "missingData",
            3,
            Reason.UNSTEADY_REPLICAS,
            "kept at 3: 1 replica not ready, or standing still, with requests",
            id="a replica that is not ready has requests",
        ),
        pytest.param(
            a_pool(0, replicas=20, signals={}, schedules=[{**ALWAYS, "minReplicas": 19}]),
            "missingData",
            19,
            Reason.NOT_LIMITED,
            "",
            id="a count that somebody wrote down has no unseen part",
        ),
        pytest.param(
            a_pool(0, waiting=a_signal(30.0, 30.0, 30.0, None), fresh=3),
            "missingData",
            12,
            Reason.NOT_LIMITED,
            "3 of 4 ready replicas have fresh samples",
            id="low coverage lets a pool grow, unseen replicas like their peers",
        ),
        # stabilization
        pytest.param(
            a_pool(2, history=a_history(recommended={100.0: 3})),
            "stabilization",
            3,
            Reason.SCALE_DOWN_STABILIZED,
            "held at 3: so many were needed within the last 5 min",
            id="held up",
        ),
        pytest.param(
            a_pool(
                8, history=a_history(recommended={100.0: 5}), behavior=rates("scaleUp", stabilizationWindowSeconds=120)
            ),
            "stabilization",
            5,
            Reason.SCALE_UP_STABILIZED,
            "held at 5: no more were needed for all of the last 2 min",
            id="held down",
        ),
        pytest.param(
            a_pool(2, history=a_history(complete_for_seconds=30)),
            "stabilization",
            4,
            Reason.HISTORY_INCOMPLETE,
            "held at 4: 30 s seen of the 5 min to look back",
            id="a history that has just begun",
        ),
        pytest.param(
            a_pool(2, history=a_history(complete_for_seconds=-5)),
            "stabilization",
            4,
            Reason.HISTORY_INCOMPLETE,
            "held at 4: 0 s seen of the 5 min to look back",
            id="a history that begins in the future: a clock was set back",
        ),
        pytest.param(
            a_pool(4, history=a_history(complete_for_seconds=30)),
            "stabilization",
            4,
            Reason.NOT_LIMITED,
            "no window holds it",
            id="a history that has just begun holds nothing up that does not fall",
        ),
        # rates
        pytest.param(
            a_pool(9, behavior=rates("scaleUp", ("Pods", 1, 15))),
            "rateLimit",
            5,
            Reason.SCALE_UP_LIMIT,
            "wanted 9, 5 for now by scaleUp (1 replica in 15 s)",
            id="one rate",
        ),
        pytest.param(
            a_pool(9, behavior=rates("scaleUp", ("Pods", 2, 60), ("Percent", 50, 30), selectPolicy="Min")),
            "rateLimit",
            6,
            Reason.SCALE_UP_LIMIT,
            "wanted 9, 6 for now by scaleUp (Min of 2 replicas in 60 s, 50 % in 30 s)",
            id="the smaller of two rates",
        ),
        pytest.param(
            a_pool(9, behavior=rates("scaleUp", selectPolicy="Disabled")),
            "rateLimit",
            4,
            Reason.SCALE_UP_LIMIT,
            "wanted 9, 4 for now by scaleUp (Disabled)",
            id="growth is disabled",
        ),
        pytest.param(
            a_pool(1, behavior=rates("scaleDown", ("Pods", 1, 60))),
            "rateLimit",
            3,
            Reason.SCALE_DOWN_LIMIT,
            "wanted 1, 3 for now by scaleDown (1 replica in 60 s)",
            id="a rate of shrinking",
        ),
        pytest.param(a_pool(5), "rateLimit", 5, Reason.NOT_LIMITED, "within the policies", id="within the rates"),
        # zero
        pytest.param(
            busy_at_zero_demand(),
            "lastReplica",
            1,
            Reason.RECENTLY_ACTIVE,
            "kept at 1: it is not proven that there are no requests",
            id="the last replica serves",
        ),
        pytest.param(
            idle(),
            "lastReplica",
            1,
            Reason.RECENTLY_ACTIVE,
            "kept at 1: idle for 0 s of 10 min",
            id="idle since a moment",
        ),
        pytest.param(
            idle(idle_since_seconds=NOW - 599),
            "lastReplica",
            1,
            Reason.RECENTLY_ACTIVE,
            "kept at 1: idle for 10.0 min of 10 min",
            id="idle for almost long enough",
        ),
        pytest.param(
            idle(idle_since_seconds=NOW - 600),
            "lastReplica",
            0,
            Reason.SCALED_TO_ZERO,
            "no request for 10 min",
            id="idle for long enough",
        ),
        pytest.param(asleep(25.0), "wakeUp", 3, Reason.PENDING_REQUESTS, "woken up by pendingRequests", id="woken up"),
        pytest.param(
            asleep(0.0), "wakeUp", 0, Reason.SCALED_TO_ZERO, "asleep: nothing asks for a replica", id="asleep"
        ),
        pytest.param(
            asleep(QueryUnknown("no series")),
            "wakeUp",
            0,
            Reason.NOT_LIMITED,
            "nothing is known that could ask for a replica",
            id="asleep, and what could wake it is not known",
        ),
        pytest.param(
            replace(asleep(25.0), history=a_history()),
            "switchedOff",
            0,
            Reason.SCALING_DISABLED,
            "the target stands at zero and it was not put there by this scaler",
            id="switched off by somebody",
        ),
        # stuck replicas
        pytest.param(
            replace(a_pool(6), replicas=ReplicaCounts(8, 8, 4, stuck=4)),
            "stuckReplicas",
            8,
            Reason.STUCK_REPLICAS,
            "8 asked for, so that 6 work",
            id="as many stuck ones are replaced as the rest is too few",
        ),
        pytest.param(
            replace(a_pool(4), replicas=ReplicaCounts(8, 8, 4, starting=2, stuck=2)),
            "stuckReplicas",
            4,
            Reason.NOT_LIMITED,
            "",
            id="enough work without the stuck ones",
        ),
        pytest.param(
            replace(a_pool(4, signals={}), replicas=ReplicaCounts(8, 8, 4, starting=2, stuck=2)),
            "stuckReplicas",
            8,
            Reason.NOT_LIMITED,
            "",
            id="nobody says how many must work",
        ),
        # accelerators
        pytest.param(
            replace(a_pool(8), accelerator_allowance=AcceleratorAllowance(6, "the accelerator ceiling of h100")),
            "accelerators",
            6,
            Reason.ACCELERATOR_CEILING,
            "wanted 8, capped at 6 by the accelerator ceiling of h100",
            id="more than its share of accelerators",
        ),
        pytest.param(
            replace(a_pool(8), accelerator_allowance=AcceleratorAllowance(8, "the accelerator ceiling of h100")),
            "accelerators",
            8,
            Reason.NOT_LIMITED,
            "",
            id="just its share of accelerators",
        ),
        pytest.param(
            replace(
                a_pool(8, minReplicas=4),
                accelerator_allowance=AcceleratorAllowance(1, "the accelerator ceiling of h100"),
            ),
            "accelerators",
            4,
            Reason.ACCELERATOR_CEILING,
            "wanted 8, capped at 4 by the accelerator ceiling of h100",
            id="never below the minimum",
        ),
        # bounds and mode
        pytest.param(
            a_pool(8, maxReplicas=6),
            "bounds",
            6,
            Reason.TOO_MANY_REPLICAS,
            "wanted 8, capped at 6 by maxReplicas",
            id="too many",
        ),
        pytest.param(
            a_pool(1, minReplicas=2),
            "bounds",
            2,
            Reason.TOO_FEW_REPLICAS,
            "wanted 1, raised to 2 by minReplicas",
            id="too few",
        ),
        pytest.param(
            a_pool(9, maxReplicas=3),
            "bounds",
            3,
            Reason.TOO_MANY_REPLICAS,
            "stands at 4, capped at 3 by maxReplicas",
            id="beyond the bounds already",
        ),
        pytest.param(a_pool(4), "bounds", 4, Reason.DESIRED_WITHIN_RANGE, "between 1 and 100", id="within the bounds"),
        pytest.param(
            a_pool(1, mode="ScaleUpOnly"),
            "mode",
            4,
            Reason.SCALE_UP_ONLY,
            "wanted 1, kept at 4: the mode is ScaleUpOnly",
            id="only upwards",
        ),
        pytest.param(
            a_pool(4, mode="DryRun"), "mode", 4, Reason.NOT_LIMITED, "DryRun", id="a mode that limits nothing"
        ),
    ],
)
def test_what_a_limit_says(decision_input: DecisionInput, step: str, after: int, reason: Reason, message: str) -> None:
    found = next(each for each in decide(decision_input).steps if each.name == step)
    assert (found.after, found.reason, found.message) == (after, reason, message)


def test_a_schedule_is_not_ignored_for_a_vote_that_asks_for_less() -> None:
    """10 stand there, 2 are needed by load and 6 by the calendar."""
    decision = decide(a_pool(2, replicas=10, schedules=[{**ALWAYS, "minReplicas": 6}]))
    tolerance = decision.steps[0]
    assert (tolerance.name, tolerance.after, tolerance.reason) == ("tolerance", 6, Reason.NOT_LIMITED)
