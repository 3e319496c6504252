"""Which policies stand in the files of the command line? Each as it stands in the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from autoscaler.api import accelerator_pool
from autoscaler.api.accelerator_pool import InvalidAcceleratorPool, parse_accelerator_pool
from autoscaler.api.document import GROUP
from autoscaler.api.inference_scaler import (
    KIND,
    InferenceScaler,
    InvalidInferenceScaler,
    parse_inference_scaler,
)
from autoscaler.api.yaml_documents import YamlDocument, YamlProblem, read_documents
from autoscaler.controller.pool_report import Reporter
from autoscaler.foresight.fleet_foresight import FleetForesight
from autoscaler.replay.autoscaler_manifests import Manifest, read_hpa, read_scaled_object
from autoscaler.replay.node_agreement import ReadAcceleratorPool, as_if_managed
from autoscaler.replay.outcomes import LatencyObjectives
from autoscaler.replay.pool_policy import PoolPolicy, ReconciledPolicy
from autoscaler.replay.prompt_executor import PromptExecutor
from autoscaler.replay.trace_history import TraceWorkHistory
from autoscaler.replay.trace_load import TraceLoad
from policies.parameters import Mode


@dataclass(frozen=True, slots=True)
class PoolIdentity:
    """How the simulated pool is called, so that the policy finds it, and which engine its replicas run."""

    namespace: str
    name: str
    target_name: str
    engine: str
    spot_target_name: str | None = None  # of two targets; it is simulated where the fleet has spot nodes


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a policy may know of the run that it is made for: the past of its load, and who is told of its decisions."""

    load: TraceLoad
    seed: int
    reporters: Sequence[Reporter] = ()


@dataclass(frozen=True, slots=True)
class ReplayedPolicy:
    """A policy that can be run as often as wanted. `maximum` is the most replicas it would ever ask for.

    `accelerator_pools` are those of its file that it refers to; `accelerators_per_replica` is what it states itself.
    """

    name: str
    identity: PoolIdentity
    minimum: int
    maximum: int
    make: Callable[[RunContext], PoolPolicy]
    objectives: LatencyObjectives | None = None  # that the policy itself states
    assumptions: tuple[str, ...] = ()
    accelerator_pools: tuple[ReadAcceleratorPool, ...] = ()
    accelerators_per_replica: int | None = None
    latencies: tuple[str, ...] = ()  # histograms that it cannot do without


@dataclass(frozen=True, slots=True)
class PoliciesRefused:
    """What is wrong with the files, one sentence a problem, each with file, line and what to do."""

    problems: tuple[str, ...]


def read_policies(paths: Sequence[Path]) -> tuple[ReplayedPolicy, ...] | PoliciesRefused:
    """All policies of the files in order, each with a name of its own, or everything that is wrong with the files."""
    policies: list[ReplayedPolicy] = []
    problems: list[str] = []
    for path in paths:
        found = _read_file(path)
        if isinstance(found, PoliciesRefused):
            problems += found.problems
        else:
            policies += found
    return PoliciesRefused(tuple(problems)) if problems else tuple(_with_unique_names(policies))


def reconciled_policy(scaler: InferenceScaler, pools: Sequence[ReadAcceleratorPool] = ()) -> ReplayedPolicy:
    """An InferenceScaler under the production reconciler; of the AcceleratorPools the one that it refers to counts."""
    assumptions = tuple(_assumptions(scaler))
    spec = scaler.spec
    reference = spec.accelerator_pool_ref
    own = tuple(each for each in pools if reference is not None and each.pool.name == reference.name)
    return ReplayedPolicy(
        name=scaler.name,
        identity=PoolIdentity(
            scaler.namespace,
            scaler.name,
            spec.first_target_ref.name,
            spec.engine.value,
            None if spec.capacity_types is None else spec.capacity_types.spot.scale_target_ref.name,
        ),
        minimum=spec.min_replicas,
        maximum=spec.max_replicas,
        make=lambda run: ReconciledPolicy(
            [scaler],
            reporters=run.reporters,
            foresight=FleetForesight(TraceWorkHistory(run.load, run.seed), PromptExecutor()),
            accelerator_pools=[as_if_managed(each.pool) for each in own],
        ),
        objectives=_objectives(scaler),
        assumptions=assumptions,
        accelerator_pools=own,
        accelerators_per_replica=spec.accelerators_per_replica,
    )


def _read_file(path: Path) -> list[ReplayedPolicy] | PoliciesRefused:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        return PoliciesRefused((f"{path}: cannot be read: {error.strerror}",))
    except UnicodeDecodeError:
        return PoliciesRefused((f"{path}: not UTF-8",))
    documents = read_documents(text)
    if isinstance(documents, YamlProblem):
        return PoliciesRefused((f"{path}, {documents.text}",))
    found: list[ReplayedPolicy] = []
    pools, problems = _read_accelerator_pools(path, documents)
    for document in documents:
        policy = _read_document(document, pools)
        if isinstance(policy, ReplayedPolicy):
            found.append(policy)
        elif policy is not None:
            problems += [f"{path}, line {document.line_of(problem)}: {problem}" for problem in policy]
    if not found and not problems:
        wanted = ", ".join(f"{kind} ({group})" for group, kind in [(GROUP, KIND), *_MANIFEST_READERS])
        problems.append(f"{path}: no policy stands in it; one of these kinds is wanted: {wanted}")
    return PoliciesRefused(tuple(problems)) if problems else found


def _read_accelerator_pools(
    path: Path, documents: Sequence[YamlDocument]
) -> tuple[list[ReadAcceleratorPool], list[str]]:
    """The AcceleratorPools of a file, and what is wrong with them."""
    pools: list[ReadAcceleratorPool] = []
    problems: list[str] = []
    for document in documents:
        if _group_and_kind(document.content) != (GROUP, accelerator_pool.KIND):
            continue
        pool = parse_accelerator_pool(document.content)
        if isinstance(pool, InvalidAcceleratorPool):
            problems += [f"{path}, line {document.line_of(problem)}: {problem}" for problem in pool.problems]
        else:
            pools.append(ReadAcceleratorPool(pool, f"{path}, line {document.line}"))
    return pools, problems


def _group_and_kind(content: Any) -> tuple[str, str] | None:
    """Which kind of object a document is; None where it is none."""
    if not isinstance(content, Mapping) or "kind" not in content:
        return None
    return str(content.get("apiVersion", "")).partition("/")[0], str(content["kind"])


def _read_document(
    document: YamlDocument, pools: Sequence[ReadAcceleratorPool]
) -> ReplayedPolicy | tuple[str, ...] | None:
    """The policy, what is wrong with it, or None for a document of another kind."""
    content = document.content
    if content is None:
        return None
    kind = _group_and_kind(content)
    if kind is None:
        return ("a Kubernetes object is wanted, with apiVersion, kind, metadata and spec",)
    fields = {str(name): value for name, value in content.items()}
    if kind == (GROUP, KIND):
        scaler = parse_inference_scaler(fields)
        return scaler.problems if isinstance(scaler, InvalidInferenceScaler) else reconciled_policy(scaler, pools)
    reader = _MANIFEST_READERS.get(kind)
    return None if reader is None else reader(fields)


def _read_manifest(
    read: Callable[[Mapping[str, Any]], Manifest | tuple[str, ...]], content: Mapping[str, Any]
) -> ReplayedPolicy | tuple[str, ...]:
    manifest = read(content)
    if isinstance(manifest, tuple):
        return manifest
    policy = manifest.policy
    return ReplayedPolicy(
        name=manifest.name,
        identity=PoolIdentity(manifest.namespace, manifest.name, manifest.target_name, "vllm"),
        minimum=policy.minimum,
        maximum=policy.maximum,
        make=lambda run: policy,
        assumptions=manifest.assumptions,
        latencies=manifest.latencies,
    )


def _objectives(scaler: InferenceScaler) -> LatencyObjectives | None:
    stated = scaler.spec.objectives
    if stated is None:
        return None
    return LatencyObjectives(stated.time_to_first_token_seconds, stated.inter_token_latency_seconds)


def _assumptions(scaler: InferenceScaler) -> Iterator[str]:
    if scaler.spec.mode is not Mode.SCALE:
        yield f"{scaler.name}: its mode is {scaler.spec.mode.value}; replayed as if it were Scale"


def _with_unique_names(policies: Sequence[ReplayedPolicy]) -> Sequence[ReplayedPolicy]:
    taken: set[str] = set()
    named = []
    for policy in policies:
        name, number = policy.name, 2
        while name in taken:
            name, number = f"{policy.name}-{number}", number + 1
        taken.add(name)
        named.append(replace(policy, name=name))
    return named


_MANIFEST_READERS: Mapping[tuple[str, str], Callable[[Mapping[str, Any]], ReplayedPolicy | tuple[str, ...]]] = {
    ("keda.sh", "ScaledObject"): partial(_read_manifest, read_scaled_object),
    ("autoscaling", "HorizontalPodAutoscaler"): partial(_read_manifest, read_hpa),
}
