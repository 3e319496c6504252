"""Is what a replay is asked for complete and free of contradictions, and what is assumed where it says nothing?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from autoscaler.replay.baselines.baseline import BASELINES
from autoscaler.replay.comparison import Stage
from autoscaler.replay.fleet_description import Fleet, FleetDescription, FleetRefused, fleet_from
from autoscaler.replay.node_agreement import assumed_of_pools, disagreements
from autoscaler.replay.output_files import output_problems
from autoscaler.replay.policy_files import PoliciesRefused, ReplayedPolicy, read_policies
from autoscaler.replay.policy_only import BASELINES_OF_RATES, PolicyOnlyStage, step_problem
from autoscaler.replay.replay_request import ReplayRequest
from autoscaler.replay.requested_load import assumed_of, before_the_run, load_for, sampled_within
from autoscaler.replay.trace import RequestTrace
from autoscaler.replay.trace_load import TraceLoad


@dataclass(frozen=True, slots=True)
class PreparedReplay:
    """All that runs. `drawn` is what arrives with the first seed."""

    policies: tuple[ReplayedPolicy, ...]
    fleet: Fleet
    load: TraceLoad
    drawn: RequestTrace | None  # None in a policy-only run, which has no single requests
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplayRefused:
    """What has to be put right first, a line each."""

    problems: tuple[str, ...]


def prepare_replay(request: ReplayRequest) -> PreparedReplay | ReplayRefused:
    """Reads all files and the load, and runs nothing. Refused with every problem at once."""
    problems: list[str] = []
    policies = read_policies(request.policies)
    if isinstance(policies, PoliciesRefused):
        problems += policies.problems
    fleet = fleet_from(request.fleet)
    if isinstance(fleet, FleetRefused):
        problems += fleet.problems
    problems += _baseline_problems(request)
    problems += policy_only_problems(request, fleet)
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
        return ReplayRefused(tuple(problems))
    assert load is not None
    fleet, whose = with_objectives(fleet, policies)
    if request.is_policy_only:
        return _prepare_policy_only(request, policies, fleet, load, whose)
    drawn = load.draw(request.seed)
    if not len(drawn):
        where = f"from {load.start_seconds:g} to {load.end_seconds:g} s"
        return ReplayRefused(
            (f"{request.trace_name}: no request arrives {where}; choose another --start, --end or scale",)
        )
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
    return PreparedReplay(policies, fleet, load, drawn, (*assumptions, *before_the_run(policies, fleet, load, drawn)))


def _baseline_problems(request: ReplayRequest) -> Iterator[str]:
    for name in request.baselines:
        if name not in BASELINES:
            yield f"--baseline {name}: no baseline is called so; there are: {', '.join(BASELINES)}"


def _prepare_policy_only(
    request: ReplayRequest, policies: tuple[ReplayedPolicy, ...], fleet: Fleet, load: TraceLoad, whose: tuple[str, ...]
) -> PreparedReplay | ReplayRefused:
    stage = PolicyOnlyStage(Stage(fleet, load, (request.seed,)), request.policy_step_seconds)
    if (problem := stage.problem()) is not None:
        return ReplayRefused((f"{request.trace_name}: {problem}",))
    if problems := tuple(latency_problems(policies)):
        return ReplayRefused(problems)
    of_policies = (
        *(assumption for each in policies for assumption in each.assumptions),
        *_assumed_of_accelerators(policies, fleet),
    )
    return PreparedReplay(
        policies,
        fleet,
        load,
        None,
        (*assumed_of(load, is_of_rates=True), *whose, *fleet.assumptions, *of_policies, *stage.assumptions()),
    )


def policy_only_problems(request: ReplayRequest, fleet: Fleet | FleetRefused) -> Iterator[str]:
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


def latency_problems(policies: Sequence[ReplayedPolicy]) -> Iterator[str]:
    """Of the policies that read what a run without single requests does not know."""
    for each in policies:
        if each.latencies:
            read = ", ".join(each.latencies)
            yield f"{each.name}: reads {read}, and --policy-only knows no latencies; run it exactly"


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


def _unwritable(request: ReplayRequest) -> Iterator[str]:
    outputs = {"--json": request.json_path, "--html": request.html_path, "--decisions": request.decisions_path}
    loads = [(f"--{name}", path) for name, path in (("trace", request.trace), ("fleet", request.fleet)) if path]
    return output_problems(outputs, [*(("POLICY.yaml", path) for path in request.policies), *loads])


def with_objectives(fleet: Fleet, policies: Sequence[ReplayedPolicy]) -> tuple[Fleet, tuple[str, ...]]:
    """The fleet with the objectives that all are held to: the fleet's own, else the first that a policy has."""
    if "objectives" in fleet.description.model_fields_set:
        return fleet, ()
    for policy in policies:
        if policy.objectives is not None:
            return replace(fleet, objectives=policy.objectives), (f"the objectives are those of {policy.name}",)
    return fleet, ()
