"""Which load is asked for, from a file, a generator or Prometheus, and what should be known of it before it is run?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from autoscaler.clock import SystemClock
from autoscaler.prometheus.source import PrometheusSource
from autoscaler.replay.agent_sessions import PREFIX, AgentSessions, read_agent_sessions
from autoscaler.replay.fleet_description import Fleet, FleetDescription
from autoscaler.replay.policy_files import PoolIdentity, ReplayedPolicy
from autoscaler.replay.recorded_load import RecordedTime, read_recorded_load
from autoscaler.replay.replay_request import ReplayRequest
from autoscaler.replay.replica_work import work
from autoscaler.replay.trace import BinnedTrace, RequestTrace, TraceError, read_trace
from autoscaler.replay.trace_load import Trace, TraceLoad, trace_load

# Below so many simulated replicas a step of a sampled fleet is too large a part of it to tell policies apart.
FEWEST_SAMPLED_REPLICAS = 10


def load_for(request: ReplayRequest, fleet: FleetDescription, pool: PoolIdentity | None) -> TraceLoad | str:
    """The load that is asked for, or what is wrong with it. `pool` is whose load Prometheus has recorded."""
    try:
        if request.trace is None:
            assert pool is not None
            return trace_load(
                _recorded(request, pool),
                request.trace_scale,
                None,
                None,
                fleet.shared_prefix_tokens,
                fleet.sampled_one_in,
            )
        trace: Trace = (
            read_agent_sessions(request.trace) if request.trace.startswith(PREFIX) else read_trace(Path(request.trace))
        )
        return trace_load(
            trace,
            request.trace_scale,
            request.start_seconds,
            request.end_seconds,
            fleet.shared_prefix_tokens,
            fleet.sampled_one_in,
        )
    except TraceError as error:
        return str(error)
    except OSError as error:
        return f"{request.trace}: cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        return f"{request.trace}: not UTF-8 text; a CSV with the columns of a trace is wanted, unpacked"


def _recorded(request: ReplayRequest, pool: PoolIdentity) -> BinnedTrace:
    if request.prometheus is None or request.start_seconds is None or request.end_seconds is None:
        raise TraceError("--prometheus wants --start and --end, as unix seconds or dates such as 2026-11-23T00:00Z")
    source = PrometheusSource(request.prometheus.for_the_past(), SystemClock())
    try:
        time = RecordedTime(request.start_seconds, request.end_seconds)
        return read_recorded_load(source, request.queries, pool, time)
    finally:
        source.close()


def assumed_of(load: TraceLoad, is_of_rates: bool = False) -> Iterator[str]:
    """What a trace lacks and was made up for, and how far the load is sampled; rates never are."""
    if not isinstance(load.trace, AgentSessions):
        yield from load.trace.assumptions
    if load.sampled_one_in > 1 and not is_of_rates:
        yield (
            f"one of {load.sampled_one_in} requests and replicas is simulated, so counts move in steps of "
            f"{load.sampled_one_in}; sampledOneIn in the FLEET.yaml says otherwise"
        )


def sampled_within(fleet: Fleet, load: TraceLoad, drawn: RequestTrace) -> tuple[TraceLoad, tuple[str, ...]]:
    """The load, sampled no further than leaves ten replicas in its busiest five minutes; and why, if it was changed."""
    busiest = float(work(fleet.profile, load.bins(drawn, 300.0), fleet.objectives).max())
    most = max(1, int(busiest / FEWEST_SAMPLED_REPLICAS))
    if load.sampled_one_in <= most:
        return load, ()
    instead = "every request and replica is" if most == 1 else f"one of {most} is"
    return replace(load, sampled_one_in=most), (
        f"the busiest five minutes fill {busiest:.1f} replicas, which is too few for one of {load.sampled_one_in}: "
        f"{instead} simulated",
    )


def before_the_run(
    policies: Sequence[ReplayedPolicy], fleet: Fleet, load: TraceLoad, drawn: RequestTrace
) -> Iterator[str]:
    """What a user should know first: too few replicas to be sampled, a maximum that the load goes beyond for long."""
    busiest = float(work(fleet.profile, load.bins(drawn, 300.0), fleet.objectives).max())
    if load.sampled_one_in > 1 and busiest < FEWEST_SAMPLED_REPLICAS * load.sampled_one_in:
        yield (
            f"the busiest five minutes fill {busiest:.1f} replicas, which is too few for one of {load.sampled_one_in}: "
            "hours and misses are coarse; replay a part of the trace (--start, --end)"
        )
    for policy in policies:
        if policy.maximum < busiest:
            yield (
                f"{policy.name}: its maximum of {policy.maximum} replicas is less than the {busiest:.1f} that the "
                "busiest five minutes fill, so requests will miss; raise maxReplicas or lower --trace-scale"
            )
