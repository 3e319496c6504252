"""What is tuned on what? Everything that the command line says is read and checked before anything is run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson

from autoscaler.api.document import GROUP
from autoscaler.api.inference_scaler import KIND, InferenceScaler, parse_inference_scaler
from autoscaler.api.yaml_documents import YamlProblem, read_documents
from autoscaler.replay.baselines.baseline import BASELINES
from autoscaler.replay.fleet_description import Fleet, FleetRefused, fleet_from
from autoscaler.replay.fluid_replay import fitting_step_seconds
from autoscaler.replay.node_agreement import assumed_of_pools
from autoscaler.replay.output_files import output_problems
from autoscaler.replay.policy_files import PoliciesRefused, ReplayedPolicy, read_policies
from autoscaler.replay.replay_input import latency_problems, node_problems, policy_only_problems, with_objectives
from autoscaler.replay.replay_request import ReplayRequest
from autoscaler.replay.requested_load import assumed_of, before_the_run, load_for
from autoscaler.replay.trace_load import TraceLoad
from autoscaler.tuning.default_search import default_search
from autoscaler.tuning.dimension import Dimension
from autoscaler.tuning.objective import DEFAULT_OBJECTIVE, Objective, read_objective
from autoscaler.tuning.optimiser import missing_optimiser
from autoscaler.tuning.scenes import (
    MISSED_OF_RATES,
    Part,
    Scene,
    cut_scene,
    load_digest,
    part_assumptions,
    part_problems,
)
from autoscaler.tuning.search_space import SearchRefused, read_search


@dataclass(frozen=True, slots=True)
class TuneRequest:
    """What was asked for on the command line."""

    policy: Path
    loads: tuple[ReplayRequest, ...]  # one a trace, with all that they share: the fleet, scale, part, way of running
    out: Path
    html_path: Path
    study: Path
    search: tuple[str, ...] = ()
    objective: str = DEFAULT_OBJECTIVE
    budget: int = 64
    hold_out_percent: float = 30.0
    baselines: tuple[str, ...] = ()
    tunes_baselines: bool = False
    seed: int = 1
    seeds: int = 2
    jobs: int = 1
    json_path: Path | None = None

    @property
    def is_policy_only(self) -> bool:
        """Whether loads are run as rates."""
        return self.loads[0].is_policy_only

    @property
    def search_seeds(self) -> tuple[int, ...]:
        """By which runs of the search are drawn."""
        return tuple(range(self.seed, self.seed + self.seeds))

    @property
    def held_out_seeds(self) -> tuple[int, ...]:
        """Others, for the part that is held out."""
        return tuple(range(self.seed + self.seeds, self.seed + 2 * self.seeds))


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """The policy's file: its text, which of its documents the policy is, and what stands there."""

    text: str
    place: int
    content: Mapping[str, Any]
    scaler: InferenceScaler
    replayed: ReplayedPolicy


@dataclass(frozen=True, slots=True)
class TuningInput:
    """Everything that a search needs, checked."""

    policy: PolicyFile
    fleet: Fleet
    scenes: tuple[Scene, ...]
    objective: Objective
    dimensions: tuple[Dimension, ...]
    assumptions: tuple[str, ...]

    def subject(self, request: TuneRequest) -> Mapping[str, str]:
        """What a study of it is of, by a word for each part: runs of another one must not be mixed in."""
        loads = [(scene.name, load_digest(scene.search), load_digest(scene.held_out)) for scene in self.scenes]
        return {
            "policy": _digest(
                [self.policy.content, *(repr(each.pool) for each in self.policy.replayed.accelerator_pools)]
            ),
            "trace or part of it": _digest(loads),
            "fleet": _digest(repr(self.fleet)),
            "way of running it": _digest([scene.rates_step_seconds for scene in self.scenes]),
            "version of tokenscaler": metadata.version("tokenscaler"),
        }


@dataclass(frozen=True, slots=True)
class InputRefused:
    """What is wrong, one sentence a problem."""

    problems: tuple[str, ...]


def read_input(request: TuneRequest) -> TuningInput | InputRefused:
    """The input of a search, or everything that is wrong with it. Nothing is written."""
    missing = missing_optimiser()
    if missing is not None:
        return InputRefused((f"tune {missing}",))
    policy, fleet = read_policy(request.policy), fleet_from(request.loads[0].fleet)
    objective = read_objective(request.objective)
    problems = [*_unknown_baselines(request), *_unwritable(request)]
    problems += policy.problems if isinstance(policy, InputRefused) else ()
    problems += fleet.problems if isinstance(fleet, FleetRefused) else ()
    problems += [objective] if isinstance(objective, str) else []
    problems += policy_only_problems(request.loads[0], fleet)
    if isinstance(policy, InputRefused) or isinstance(fleet, FleetRefused) or isinstance(objective, str):
        return InputRefused(tuple(problems))
    fleet, whose = with_objectives(fleet, [policy.replayed])
    loads = _loads(request, fleet, policy)
    dimensions = read_search(request.search, policy.content)
    problems += loads.problems if isinstance(loads, InputRefused) else ()
    problems += dimensions.problems if isinstance(dimensions, SearchRefused) else ()
    if isinstance(loads, InputRefused) or isinstance(dimensions, SearchRefused):
        return InputRefused(tuple(problems))
    scenes = tuple(
        cut_scene(name, fleet, load, request.hold_out_percent, _rates_step_seconds(request, load))
        for name, load in loads.items()
    )
    problems += part_problems(scenes, request.seed)
    problems += node_problems([policy.replayed], fleet)
    problems += latency_problems([policy.replayed]) if request.is_policy_only else ()
    if problems:
        return InputRefused(tuple(problems))
    of_loads = (each for load in loads.values() for each in assumed_of(load, request.is_policy_only))
    assumptions = (
        *of_loads,
        *whose,
        *fleet.assumptions,
        *policy.replayed.assumptions,
        *assumed_of_pools(
            policy.scaler.name,
            policy.replayed.accelerator_pools,
            fleet.nodes,
            policy.replayed.identity.spot_target_name is not None,
        ),
        *part_assumptions(scenes, request.seed),
        *(
            _assumed_of_rates(scenes, request)
            if request.is_policy_only
            else _before_the_runs(request, policy, loads, fleet)
        ),
    )
    if not dimensions:
        dimensions = default_search(policy.scaler, scenes[0], request.seed)
    return TuningInput(policy, fleet, scenes, objective, dimensions, assumptions)


def _rates_step_seconds(request: TuneRequest, load: TraceLoad) -> float | None:
    """Both parts are decided as often as the whole load allows, so that a policy's short windows mean the same."""
    if not request.is_policy_only:
        return None
    return request.loads[0].policy_step_seconds or fitting_step_seconds(load.hours)


def _assumed_of_rates(scenes: Sequence[Scene], request: TuneRequest) -> Iterator[str]:
    said = (each for scene in scenes for each in scene.rates(Part.SEARCH, request.seed).assumptions())
    yield from dict.fromkeys(said)
    yield MISSED_OF_RATES


def _before_the_runs(
    request: TuneRequest, policy: PolicyFile, loads: Mapping[str, TraceLoad], fleet: Fleet
) -> Iterator[str]:
    for load in loads.values():
        yield from before_the_run([policy.replayed], fleet, load, load.draw(request.seed))


def read_policy(path: Path) -> PolicyFile | InputRefused:
    """The only InferenceScaler of a file; what else stands in it is left as it is."""
    policies = read_policies([path])
    if isinstance(policies, PoliciesRefused):
        return InputRefused(policies.problems)
    text = path.read_text(encoding="utf-8-sig")
    documents = read_documents(text)
    assert not isinstance(documents, YamlProblem)
    places = [place for place, document in enumerate(documents) if _is_scaler(document.content)]
    if len(places) != 1:
        count = len(places) or "no"
        return InputRefused((f"{path}: {count} InferenceScalers stand in it; one is tuned, so one is wanted",))
    content: Mapping[str, Any] = documents[places[0]].content
    scaler = parse_inference_scaler(content)
    assert isinstance(scaler, InferenceScaler)
    replayed = next(each for each in policies if each.identity.name == scaler.name)
    return PolicyFile(text, places[0], content, scaler, replayed)


def _is_scaler(content: Any) -> bool:
    if not isinstance(content, Mapping):
        return False
    return content.get("kind") == KIND and str(content.get("apiVersion", "")).partition("/")[0] == GROUP


def _loads(request: TuneRequest, fleet: Fleet, policy: PolicyFile) -> dict[str, TraceLoad] | InputRefused:
    loads: dict[str, TraceLoad] = {}
    problems: list[str] = []
    for each in request.loads:
        load = load_for(each, fleet.description, policy.replayed.identity)
        if isinstance(load, str):
            problems.append(load)
        elif each.trace_name in loads:
            problems.append(f"--trace {each.trace_name}: it is given more than once")
        else:
            loads[each.trace_name] = load
    return InputRefused(tuple(problems)) if problems else loads


def _unknown_baselines(request: TuneRequest) -> Iterator[str]:
    for name in request.baselines:
        if name not in BASELINES:
            yield f"--baseline {name}: no baseline is called so; there are: {', '.join(BASELINES)}"
    if request.tunes_baselines and not request.baselines:
        yield "--tune-baselines: say which, by --baseline NAME"


def _unwritable(request: TuneRequest) -> Iterator[str]:
    outputs = {"--out": request.out, "--html": request.html_path, "--study": request.study, "--json": request.json_path}
    loads = [("--trace", each.trace) for each in request.loads if each.trace]
    fleets = [("--fleet", each.fleet) for each in request.loads[:1] if each.fleet]
    return output_problems(outputs, [("POLICY.yaml", request.policy), *loads, *fleets])


def _digest(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()[:16]
