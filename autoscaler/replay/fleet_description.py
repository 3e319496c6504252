"""On which fleet is a policy replayed? What a FLEET.yaml says, with defaults for all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from autoscaler.api.document import read_fields
from autoscaler.api.yaml_documents import YamlDocument, YamlProblem, read_documents
from autoscaler.replay.cold_start import NEW_NODE, NODE_PHASE, ColdStart, ColdStartPhase
from autoscaler.replay.node_description import NodesDescription
from autoscaler.replay.node_setup import NodesSetup
from autoscaler.replay.outcomes import LatencyObjectives
from autoscaler.replay.replica_profile import (
    BadProfileFileError,
    ReplicaProfile,
    UnknownProfileError,
    built_in_profile,
    built_in_profiles,
    read_profiles,
)
from autoscaler.replay.routers import RouterName
from autoscaler.replay.scraped_pages import ScrapeSettings
from policies.parameter_model import ParameterModel

DEFAULT_PROFILE = "llama-3.1-8b-bf16-1xh100-vllm"


class PhaseDescription(ParameterModel):
    """One phase of a start."""

    name: str = Field(
        min_length=1,
        description="What you call it. With nodes described, node and image are what happens once a node.",
    )
    median_seconds: float = Field(gt=0, le=7200, description="Half of all starts take less, in seconds.")
    spread: float = Field(default=0.25, ge=0, le=2, description="Standard deviation of the logarithm.")


class ObjectivesDescription(ParameterModel):
    """What a request must get to count as served well."""

    time_to_first_token_seconds: float = Field(default=2.0, gt=0, description="From arrival to the first token.")
    inter_token_latency_seconds: float = Field(default=0.05, gt=0, description="Mean gap of the tokens of one answer.")


class ScrapeDescription(ParameterModel):
    """How the metrics are scraped."""

    interval_seconds: float = Field(default=15.0, ge=1, le=300, description="Between two scrapes of one replica.")
    delay_seconds: float = Field(default=1.0, ge=0, le=300, description="From a scrape until it can be queried.")


class FleetDescription(ParameterModel):
    """One pool's replicas, how they start, what they cost, and how they are looked at."""

    profile: str = Field(default=DEFAULT_PROFILE, description="How fast a replica is: a profile's name.")
    profiles_file: str | None = Field(default=None, description="JSON with profiles of your own, beside this file.")
    cold_start: tuple[PhaseDescription, ...] = Field(
        default=(
            PhaseDescription(name="image", median_seconds=20.0),
            PhaseDescription(name="weights", median_seconds=40.0),
            PhaseDescription(name="engine", median_seconds=60.0),
        ),
        min_length=1,
        max_length=8,
        description="Phases of a start, one after the other. Default: 120 s, a middling model on a node that is there.",
    )
    objectives: ObjectivesDescription = ObjectivesDescription()
    initial_replicas: int | None = Field(
        default=None, ge=0, le=100_000, description="At the start. Null: what the first ten minutes of load need."
    )
    router: RouterName = Field(default=RouterName.LEAST_LOADED, description="How the gateway spreads requests.")
    scrape: ScrapeDescription = ScrapeDescription()
    drain_grace_seconds: float = Field(
        default=600.0, ge=0, le=86_400, description="What a replica that goes has to finish its answers, in seconds."
    )
    shared_prefix_tokens: int = Field(
        default=0, ge=0, le=1_000_000, description="Tokens of every prompt that are in the prefix cache always."
    )
    sampled_one_in: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Simulate one of so many requests and replicas. Null: 1 up to six million requests, then more.",
    )
    dollars_per_accelerator_hour: float = Field(default=3.0, ge=0, description="What an accelerator costs. Default 3.")
    nodes: NodesDescription | None = Field(
        default=None, description="The nodes under the replicas. Null: every replica finds one at once."
    )


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet that can be simulated, and what was assumed about it because nobody said otherwise.

    Where it has `nodes`, the phase of the cold start that is called node is their launch.
    """

    profile: ReplicaProfile
    cold_start: ColdStart
    objectives: LatencyObjectives
    scrape: ScrapeSettings
    description: FleetDescription
    assumptions: tuple[str, ...] = ()
    nodes: NodesSetup | None = None


@dataclass(frozen=True, slots=True)
class FleetRefused:
    """What is wrong with a fleet, one sentence a problem, each with file, line and what to do."""

    problems: tuple[str, ...]


def fleet_from(name_or_path: str | None) -> Fleet | FleetRefused:
    """The fleet of a FLEET.yaml, or of a built-in profile by its name; None is the default profile."""
    if name_or_path is None:
        return _fleet(FleetDescription(), Path(), "", ("the fleet is the default one: " + DEFAULT_PROFILE,))
    path = Path(name_or_path)
    if path.suffix in {".yaml", ".yml"} or path.exists():
        return _read(path)
    if name_or_path in built_in_profiles():
        return _fleet(FleetDescription(profile=name_or_path), Path(), "", ())
    known = ", ".join(sorted(built_in_profiles()))
    return FleetRefused((f"--fleet {name_or_path}: no such file, and no profile is called so; there are: {known}",))


def _read(path: Path) -> Fleet | FleetRefused:
    try:
        documents = read_documents(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        return FleetRefused((f"{path}: cannot be read: {error.strerror}",))
    except UnicodeDecodeError:
        return FleetRefused((f"{path}: not UTF-8",))
    if isinstance(documents, YamlProblem):
        return FleetRefused((f"{path}, {documents.text}",))
    if len(documents) != 1 or not isinstance(documents[0].content, Mapping):
        return FleetRefused((f"{path}: one YAML object is wanted, such as `profile: {DEFAULT_PROFILE}`",))
    (document,) = documents
    fields: dict[str, Any] = {str(name): value for name, value in document.content.items()}
    parsed = read_fields(fields, FleetDescription, "")
    if isinstance(parsed, tuple):
        return FleetRefused(tuple(_with_line(path, document, problem.lstrip(".")) for problem in parsed))
    fleet = _fleet(parsed, path, f"{path}, line {document.line_of('profile')}: ", ())
    problems = list(_contradictions(parsed, fleet))
    refused = fleet.problems if isinstance(fleet, FleetRefused) else ()
    if problems or refused:
        return FleetRefused((*refused, *(_with_line(path, document, problem) for problem in problems)))
    return fleet


def _with_line(path: Path, document: YamlDocument, problem: str) -> str:
    return f"{path}, line {document.line_of(problem)}: {problem}"


def _contradictions(description: FleetDescription, fleet: Fleet | FleetRefused) -> Iterator[str]:
    """What a FLEET.yaml with nodes says twice, or cannot mean."""
    nodes, stated = description.nodes, description.model_fields_set
    if nodes is None:
        return
    problems = list(nodes.problems())
    yield from problems
    if "dollars_per_accelerator_hour" in stated:
        yield "dollarsPerAcceleratorHour: nodes.dollarsPerAcceleratorHour has the prices; leave this one out"
    if "cold_start" in stated and not any(phase.name == NODE_PHASE for phase in description.cold_start):
        yield (
            "coldStart has no phase called node, and with nodes described it says how long a new one takes; "
            "add {name: node, medianSeconds: ...}"
        )
    if problems or isinstance(fleet, FleetRefused) or description.initial_replicas is None or fleet.nodes is None:
        return
    room = fleet.nodes.most_replicas(fleet.profile.accelerators_per_replica)
    if room is not None and description.initial_replicas > room:
        yield (
            f"initialReplicas is {description.initial_replicas}, and the limits of the NodePools have room for {room} "
            "at the start; raise the limits or lower initialReplicas"
        )


def _fleet(description: FleetDescription, path: Path, where: str, assumptions: tuple[str, ...]) -> Fleet | FleetRefused:
    try:
        if description.profiles_file is None:
            profile = built_in_profile(description.profile)
        else:
            own = read_profiles(path.parent / description.profiles_file)
            if description.profile not in own:
                known = ", ".join(sorted(own))
                return FleetRefused((f"{where}{description.profiles_file} has no {description.profile}, but {known}",))
            profile = own[description.profile]
    except (UnknownProfileError, BadProfileFileError) as error:
        return FleetRefused((f"{where}{error}",))
    except OSError as error:
        return FleetRefused((f"{where}profilesFile {description.profiles_file}: cannot be read: {error.strerror}",))
    cold_start, nodes = _starts(description), description.nodes
    if nodes is not None and "cold_start" not in description.model_fields_set:
        phases = ", ".join(f"{phase.name} {phase.median_seconds:g} s" for phase in cold_start.phases)
        assumptions = (*assumptions, f"a start on a new node takes: {phases}")
    if nodes is None and "dollars_per_accelerator_hour" not in description.model_fields_set:
        price = description.dollars_per_accelerator_hour
        assumptions = (*assumptions, f"an accelerator costs {price:g} dollars an hour")
    launch = cold_start.phase(NODE_PHASE)
    objectives, scrape = description.objectives, description.scrape
    return Fleet(
        profile=profile,
        cold_start=cold_start,
        objectives=LatencyObjectives(objectives.time_to_first_token_seconds, objectives.inter_token_latency_seconds),
        scrape=ScrapeSettings(scrape.interval_seconds, scrape.delay_seconds),
        description=description,
        assumptions=assumptions,
        nodes=None if nodes is None or launch is None else nodes.setup(launch),
    )


def _starts(description: FleetDescription) -> ColdStart:
    if description.nodes is not None and "cold_start" not in description.model_fields_set:
        return NEW_NODE
    return ColdStart(
        tuple(ColdStartPhase(each.name, each.median_seconds, each.spread) for each in description.cold_start)
    )
