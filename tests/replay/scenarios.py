"""The main scenarios of a replay: a load, what goes wrong in it, and the policy that has to cope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from autoscaler.replay.agent_sessions import AgentSessions
from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.faults import Fault, LostReplicas, NodeShortage, PrometheusOutage, WedgedReplicas
from autoscaler.replay.trace import BinnedTrace, FloatArray
from autoscaler.replay.trace_load import Trace

MINUTES = 40
COLD_START = ColdStart((ColdStartPhase("start", 120.0, 0.25),))


@dataclass(frozen=True, slots=True)
class Scenario:
    """Forty minutes of one pool. `tells` says in a sentence what the file is about."""

    name: str
    tells: str
    trace: Callable[[], Trace]
    faults: tuple[Fault, ...] = ()


def _requests_per_second(shape: FloatArray) -> BinnedTrace:
    return BinnedTrace(0.0, 60.0, shape, np.full(len(shape), 3000.0), np.full(len(shape), 300.0))


def _steady() -> BinnedTrace:
    return _requests_per_second(np.full(MINUTES, 8.0))


def _step() -> BinnedTrace:
    shape = np.full(MINUTES, 4.0)
    shape[10:25] = 12.0
    return _requests_per_second(shape)


def _ramp() -> BinnedTrace:
    return _requests_per_second(np.concatenate([np.linspace(3.0, 13.0, 25), np.linspace(13.0, 3.0, 15)]))


def _day() -> BinnedTrace:
    return _requests_per_second(8.0 - 5.0 * np.cos(2 * np.pi * np.arange(MINUTES) / MINUTES))


def _burst() -> BinnedTrace:
    shape = np.full(MINUTES, 4.0)
    shape[[10, 26]] = 20.0
    return _requests_per_second(shape)


SCENARIOS = (
    Scenario("step", "Three times the load for a quarter of an hour, without a warning.", _step),
    Scenario("ramp", "Four times the load within 25 minutes, and back within 15.", _ramp),
    Scenario("day", "A day in forty minutes: from the night's load to four times as much, and back.", _day),
    Scenario("burst", "Two bursts of a minute, five times the load, shorter than a start.", _burst),
    Scenario(
        "prometheus-outage",
        "A day in forty minutes; for five minutes of its rise Prometheus does not answer.",
        _day,
        (PrometheusOutage(at_seconds=600.0, lasts_seconds=300.0),),
    ),
    Scenario(
        "lost-replicas",
        "A steady load; two replicas die at minute 10, and there are no nodes for new ones for five minutes.",
        _steady,
        (LostReplicas(at_seconds=600.0, replicas=2), NodeShortage(at_seconds=595.0, lasts_seconds=300.0)),
    ),
    Scenario(
        "wedged-replica",
        "A steady load; from minute 10 to 20 one replica takes requests and computes nothing.",
        _steady,
        (WedgedReplicas(at_seconds=600.0, replicas=1, lasts_seconds=600.0),),
    ),
    Scenario(
        "agents",
        "Agents that start tasks, with bursts of tasks of a minute.",
        lambda: AgentSessions(sessions=350, hours=MINUTES / 60.0),
    ),
)
