"""`tokenscaler replay POLICY.yaml... --trace FILE`: what would these policies have done under this load?"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from autoscaler.clock import SystemClock
from autoscaler.controller.pool_report import Reporter
from autoscaler.decision_log import read_log
from autoscaler.decision_record import DecisionRecord
from autoscaler.exit_codes import FINE, NOT_RIGHT, WRONG_USAGE
from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings
from autoscaler.prometheus.source import PrometheusSource
from autoscaler.replay.agent_sessions import PREFIX, AgentSessions, read_agent_sessions
from autoscaler.replay.baselines.baseline import BASELINES, PUBLISHED, Occasion, make_baseline
from autoscaler.replay.clairvoyant import Clairvoyant, find_clairvoyant
from autoscaler.replay.comparison import PolicyOutcome, Stage, compare
from autoscaler.replay.decision_file import DecisionFile
from autoscaler.replay.fleet_description import Fleet, FleetDescription, FleetRefused, fleet_from
from autoscaler.replay.node_agreement import assumed_of_pools, disagreements
from autoscaler.replay.policy_files import PoliciesRefused, PoolIdentity, ReplayedPolicy, read_policies
from autoscaler.replay.policy_only import BASELINES_OF_RATES, NO_REQUESTS, PolicyOnlyStage, step_problem
from autoscaler.replay.recorded_load import RecordedTime, read_recorded_load
from autoscaler.replay.replica_work import work
from autoscaler.replay.report_html import report_page
from autoscaler.replay.report_json import Report, report_document
from autoscaler.replay.report_text import report_table
from autoscaler.replay.shadow import shadows
from autoscaler.replay.trace import BinnedTrace, RequestTrace, TraceError, read_trace
from autoscaler.replay.trace_load import Trace, TraceLoad, trace_load
from autoscaler.tuning.baseline_search import best_parameters
from autoscaler.tuning.optimiser import missing_optimiser
from autoscaler.tuning.scenes import Scene

# Below so many simulated replicas a step of a sampled fleet is too large a part of it to tell policies apart.
FEWEST_SAMPLED_REPLICAS = 10


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What was asked for on the command line."""

    policies: tuple[Path, ...]
    trace: str | None = None  # a file or agents:...; None: what `prometheus` has recorded
    prometheus: PrometheusSettings | None = None
    queries: QuerySettings = field(default_factory=QuerySettings)
    trace_scale: float = 1.0
    fleet: str | None = None
    baselines: tuple[str, ...] = ()
    tunes_baselines: bool = False
    seed: int = 1
    seeds: int = 1
    start_seconds: float | None = None
    end_seconds: float | None = None
    json_path: Path | None = None
    html_path: Path | None = None
    decisions_path: Path | None = None
    is_policy_only: bool = False
    policy_step_seconds: float | None = None  # of a policy-only run; None: what its length allows

    @property
    def trace_name(self) -> str:
        """What the load is called in the report."""
        return "Prometheus" if self.trace is None else self.trace


@dataclass(frozen=True, slots=True)
class _Prepared:
    policies: tuple[ReplayedPolicy, ...]
    fleet: Fleet
    load: TraceLoad
    drawn: RequestTrace | None  # None in a policy-only run, which has no single requests
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Refused:
    problems: tuple[str, ...]


def replay_policies(request: ReplayRequest, console: Console) -> int:
    """Prints the table and writes what was asked for; 2 for wrong input, with every problem on a line of its own.

    Ctrl-C ends the run that is under way; what has been run so far is reported.
    """
    prepared = _prepare(request)
    if isinstance(prepared, _Refused):
        for problem in prepared.problems:
            typer.echo(f"tokenscaler: {problem}", err=True)
        return WRONG_USAGE
    for assumption in prepared.assumptions:
        console.print(f"assumed: {assumption}", soft_wrap=True, style="dim")
    try:
        with _decisions(request.decisions_path) as decisions:
            report = _run(request, prepared, decisions, console)
            console.print(report_table(report), soft_wrap=True)
            if request.json_path is not None:
                document = orjson.dumps(report_document(report), option=orjson.OPT_INDENT_2)
                request.json_path.write_bytes(document + b"\n")
            if request.html_path is not None:
                request.html_path.write_text(report_page(report), encoding="utf-8")
    except OSError as error:
        typer.echo(f"tokenscaler: cannot write {error.filename}: {error.strerror}", err=True)
        return WRONG_USAGE
    return FINE


def compare_log(path: Path, console: Console) -> int:
    """Prints what the decisions of a log would have come to, a sentence a pool; 1 for a log without two records."""
    unreadable = 0

    def records() -> Iterator[DecisionRecord]:
        nonlocal unreadable
        for entry in read_log(path):
            if isinstance(entry, DecisionRecord):
                yield entry
            else:
                unreadable += 1

    try:
        found = list(shadows(records()))
    except OSError as error:
        typer.echo(f"tokenscaler: {path}: cannot be read: {error.strerror}", err=True)
        return WRONG_USAGE
    for shadow in found:
        console.print(shadow.sentence(), soft_wrap=True)
    if unreadable:
        console.print(f"{unreadable} lines are no decision records and were left out.", soft_wrap=True)
    if not found:
        typer.echo(f"tokenscaler: {path}: no pool has two records in it, so there is nothing to compare", err=True)
        return NOT_RIGHT
    return FINE


def _prepare(request: ReplayRequest) -> _Prepared | _Refused:
    problems: list[str] = []
    policies = read_policies(request.policies)
    if isinstance(policies, PoliciesRefused):
        problems += policies.problems
    fleet = fleet_from(request.fleet)
    if isinstance(fleet, FleetRefused):
        problems += fleet.problems
    problems += _option_problems(request)
    problems += _policy_only_problems(request, fleet)
    problems += _unwritable(request)
    if isinstance(policies, PoliciesRefused):
        # Whose load is to be read from Prometheus is not known; what is wrong with a file can be said all the same.
        load = load_for(request, FleetDescription(), None) if request.trace is not None else None
    else:
        description = FleetDescription() if isinstance(fleet, FleetRefused) else fleet.description
        load = load_for(request, description, policies[0].identity)
    if isinstance(load, str):
        problems.append(load)
    if not isinstance(policies, PoliciesRefused) and not isinstance(fleet, FleetRefused):
        problems += node_problems(policies, fleet)
    if problems or isinstance(policies, PoliciesRefused) or isinstance(fleet, FleetRefused) or isinstance(load, str):
        return _Refused(tuple(problems))
    assert load is not None
    fleet, whose = with_objectives(fleet, policies)
    if request.is_policy_only:
        return _prepare_policy_only(request, policies, fleet, load, whose)
    drawn = load.draw(request.seed)
    if not len(drawn):
        where = f"from {load.start_seconds:g} to {load.end_seconds:g} s"
        return _Refused((f"{request.trace_name}: no request arrives {where}; choose another --start, --end or scale",))
    load, why = sampled_within(fleet, load, drawn)
    drawn = load.draw(request.seed) if why else drawn
    assumptions = (
        *assumed_of(load),
        *why,
        *whose,
        *fleet.assumptions,
        *(a for each in policies for a in each.assumptions),
        *_assumed_of_accelerators(policies, fleet),
    )
    for each in policies:
        has_two_targets = each.identity.spot_target_name is not None
        assumptions = (
            *assumptions,
            *assumed_of_pools(each.name, each.accelerator_pools, fleet.nodes, has_two_targets),
        )
    return _Prepared(policies, fleet, load, drawn, (*assumptions, *before_the_run(policies, fleet, load, drawn)))


def _option_problems(request: ReplayRequest) -> Iterator[str]:
    for name in request.baselines:
        if name not in BASELINES:
            yield f"--baseline {name}: no baseline is called so; there are: {', '.join(BASELINES)}"
    if request.tunes_baselines and (missing := missing_optimiser()):
        yield f"--tune-baselines {missing}"


def _prepare_policy_only(
    request: ReplayRequest, policies: tuple[ReplayedPolicy, ...], fleet: Fleet, load: TraceLoad, whose: tuple[str, ...]
) -> _Prepared | _Refused:
    stage = PolicyOnlyStage(Stage(fleet, load, (request.seed,)), request.policy_step_seconds)
    if (problem := stage.problem()) is not None:
        return _Refused((f"{request.trace_name}: {problem}",))
    if blind := [each for each in policies if each.latencies]:
        return _Refused(
            tuple(
                f"{each.name}: reads {', '.join(each.latencies)}, and --policy-only knows no latencies; run it exactly"
                for each in blind
            )
        )
    of_trace = () if isinstance(load.trace, AgentSessions) else load.trace.assumptions
    of_policies = (
        *(assumption for each in policies for assumption in each.assumptions),
        *_assumed_of_accelerators(policies, fleet),
    )
    return _Prepared(
        policies, fleet, load, None, (*of_trace, *whose, *fleet.assumptions, *of_policies, *stage.assumptions())
    )


def _policy_only_problems(request: ReplayRequest, fleet: Fleet | FleetRefused) -> Iterator[str]:
    """What a run without single requests cannot do."""
    if (problem := step_problem(request.policy_step_seconds, request.is_policy_only)) is not None:
        yield problem
    if not request.is_policy_only:
        return
    if request.tunes_baselines:
        yield "--tune-baselines: judges by missed requests, which --policy-only does not have; leave one of them out"
    for name in request.baselines:
        if name in BASELINES and name not in BASELINES_OF_RATES:
            known = ", ".join(BASELINES_OF_RATES)
            yield f"--baseline {name}: needs single requests; with --policy-only there are: {known}"
    if not isinstance(fleet, FleetRefused) and fleet.nodes is not None:
        yield f"--fleet {request.fleet}: nodes are not simulated with --policy-only; leave its nodes or the option out"


def node_problems(policies: Sequence[ReplayedPolicy], fleet: Fleet) -> Iterator[str]:
    """What the policies and a fleet with nodes say differently."""
    if fleet.nodes is None:
        return
    for policy in policies:
        yield from disagreements(policy.accelerator_pools, fleet.nodes)
        stated, real = policy.accelerators_per_replica, fleet.profile.accelerators_per_replica
        if policy.accelerator_pools and stated is not None and stated != real:
            yield (
                f"{policy.name}: acceleratorsPerReplica is {stated}, and a replica of {fleet.profile.name} has {real}; "
                "correct it, or give a --fleet with another profile"
            )


def _assumed_of_accelerators(policies: Sequence[ReplayedPolicy], fleet: Fleet) -> Iterator[str]:
    """Without nodes nobody is refused for them: hours are those of the profile."""
    for policy in policies:
        stated, real = policy.accelerators_per_replica, fleet.profile.accelerators_per_replica
        if fleet.nodes is None and stated is not None and stated != real:
            yield (
                f"{policy.name}: its acceleratorsPerReplica is {stated}; accelerator-hours are of the {real} that a "
                f"replica of {fleet.profile.name} has"
            )


def _unwritable(request: ReplayRequest) -> list[str]:
    # A run may take minutes: a folder that is not there is said before it, not after.
    paths = (request.json_path, request.html_path, request.decisions_path)
    return [f"cannot write {path}: its folder does not exist" for path in paths if path and not path.parent.is_dir()]


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
        return f"{request.trace}: not UTF-8 text; a CSV with the columns of a trace is wanted"


def _recorded(request: ReplayRequest, pool: PoolIdentity) -> BinnedTrace:
    if request.prometheus is None or request.start_seconds is None or request.end_seconds is None:
        raise TraceError("--prometheus wants --start and --end, as unix seconds or dates such as 2026-11-23T00:00Z")
    source = PrometheusSource(request.prometheus.for_the_past(), SystemClock())
    try:
        time = RecordedTime(request.start_seconds, request.end_seconds)
        return read_recorded_load(source, request.queries, pool, time)
    finally:
        source.close()


def with_objectives(fleet: Fleet, policies: Sequence[ReplayedPolicy]) -> tuple[Fleet, tuple[str, ...]]:
    """The fleet with the objectives that all are held to: the fleet's own, else the first that a policy has."""
    if "objectives" in fleet.description.model_fields_set:
        return fleet, ()
    for policy in policies:
        if policy.objectives is not None:
            return replace(fleet, objectives=policy.objectives), (f"the objectives are those of {policy.name}",)
    return fleet, ()


def assumed_of(load: TraceLoad) -> Iterator[str]:
    """What a trace lacks and was made up for, and how far the load is sampled."""
    if not isinstance(load.trace, AgentSessions):
        yield from load.trace.assumptions
    if load.sampled_one_in > 1:
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


def _run(request: ReplayRequest, prepared: _Prepared, decisions: DecisionFile | None, console: Console) -> Report:
    seeds = tuple(range(request.seed, request.seed + request.seeds))
    clairvoyant = None
    with _progress(console) as tells:
        stage = Stage(prepared.fleet, prepared.load, seeds, tells)
        outcomes: list[PolicyOutcome] = []

        def reporters(name: str, seed: int) -> Sequence[Reporter]:
            return () if decisions is None else (decisions.reporter(name, seed),)

        if prepared.drawn is None:
            rates = PolicyOnlyStage(stage, request.policy_step_seconds)
            baselines = _baselines(request, prepared, stage, None, NO_REQUESTS)
            outcomes += rates.compare((*prepared.policies, *baselines), reporters)
        else:
            outcomes += compare(stage, prepared.policies, reporters)
            clairvoyant = None if _was_stopped(outcomes) else find_clairvoyant(stage, prepared.drawn, request.seed)
            if not _was_stopped(outcomes):
                baselines = _baselines(request, prepared, stage, clairvoyant, prepared.drawn)
                outcomes += compare(stage, baselines, reporters)
    return Report(
        fleet=prepared.fleet,
        load=prepared.load,
        trace_name=request.trace_name,
        seeds=seeds,
        outcomes=tuple(outcomes),
        clairvoyant=clairvoyant,
        assumptions=prepared.assumptions,
        was_stopped=_was_stopped(outcomes),
    )


def _was_stopped(outcomes: Sequence[PolicyOutcome]) -> bool:
    return any(result.was_stopped for outcome in outcomes for result in outcome.results)


def _baselines(
    request: ReplayRequest, prepared: _Prepared, stage: Stage, clairvoyant: Clairvoyant | None, drawn: RequestTrace
) -> list[ReplayedPolicy]:
    minimum = min(policy.minimum for policy in prepared.policies)
    maximum = max(policy.maximum for policy in prepared.policies)
    occasion = Occasion(stage, drawn, request.seed, clairvoyant, max(1, minimum), maximum)
    made = (
        _tuned_baseline(name, occasion) if request.tunes_baselines else make_baseline(name, occasion)
        for name in request.baselines
    )
    return [policy for policy in made if policy is not None]


def _tuned_baseline(name: str, occasion: Occasion) -> ReplayedPolicy | None:
    stage, bounds = occasion.stage, (occasion.minimum, occasion.maximum)
    scene = Scene(name, stage.fleet, stage.load, stage.load)
    found = best_parameters(name, scene, bounds, stage.seeds, lambda what, share: stage.tells(what, 0, share))
    policy = make_baseline(name, occasion, found or PUBLISHED)
    return policy if policy is None or found is None else replace(policy, name=f"{name} (tuned)")


@contextmanager
def _decisions(path: Path | None) -> Iterator[DecisionFile | None]:
    if path is None:
        yield None
        return
    with path.open("w", encoding="utf-8") as lines:
        yield DecisionFile(lines)


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str, int, float], bool]]:
    """Shows how far each run is, on a terminal only; the function that is given tells it, and is False after Ctrl-C."""
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with on_interrupt(stop), Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=1.0)
        last = ("", 0)

        def tells(name: str, seed: int, share: float) -> bool:
            nonlocal last
            if (name, seed) != last:
                last = (name, seed)
                bar.reset(task, description=f"{name} (seed {seed})", total=1.0)
            bar.update(task, completed=share)
            return not stopped

        yield tells


@contextmanager
def on_interrupt(stop: Callable[..., None]) -> Iterator[None]:
    """Ctrl-C calls `stop` instead of ending the program, where this is the main thread."""
    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:  # not the main thread, which alone may take signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
