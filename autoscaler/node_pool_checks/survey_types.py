"""What is kept of the cluster for the checks, and how the documents of the API server become it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.api.accelerators import accelerators_of_template
from autoscaler.api.inference_scaler import InferenceScaler, ScaleTargetRef
from autoscaler.api.karpenter_duration import duration_seconds
from autoscaler.api.node_template import ANYWHERE, NODE_POOL_LABEL, NodeTemplate, PodPlacement, read_placement
from autoscaler.api.pod_requests import NO_REQUESTS, PodRequests, requests_of_pod, requests_of_template
from autoscaler.api.taints import Taint, Toleration, read_taints, read_tolerations
from autoscaler.finding import Finding
from autoscaler.kubernetes_gateway.label_selector import LabelSelector, selector_from_object
from autoscaler.kubernetes_gateway.watched_objects import SERVING_LABEL
from policies.capacity_split import CapacityType

Document = Mapping[str, Any]
Version = tuple[int, int, int]

CAPACITY_TYPE_KEY = "karpenter.sh/capacity-type"
# Managers that write once by hand; whoever applies from files or charts writes again and again.
_BY_HAND = frozenset({"kubectl-edit", "kubectl-patch", "kubectl-create", "kubectl-replace", "tokenscaler"})
# Kubernetes' default where a pod template does not say.
DEFAULT_GRACE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Budget:
    """How many nodes may be disrupted at once: "10%" or "1"; no reasons: for all of them."""

    nodes: str
    reasons: tuple[str, ...] = ()
    is_scheduled: bool = False


@dataclass(frozen=True, slots=True)
class SurveyedNodePool:
    """A NodePool of Karpenter. Durations None: Never, or for the termination grace period: not set."""

    name: str
    generation: int
    ready_status: str = "True"
    ready_message: str = ""
    ready_generation: int = 0
    limits: Mapping[str, str] = field(default_factory=dict)
    limit_appliers: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of requirements In, and labels, by key
    taints: tuple[Taint, ...] = ()
    consolidation_policy: str = "WhenEmptyOrUnderutilized"
    consolidate_after_seconds: float | None = 0.0
    budgets: tuple[Budget, ...] = (Budget("10%"),)
    expire_after_seconds: float | None = 720 * 3600.0
    termination_grace_seconds: float | None = None
    static_replicas: int | None = None
    weight: int = 0
    node_class_group: str = ""
    node_class: str = ""
    capacities: tuple[Mapping[str, str], ...] = ()  # of its nodes, each once

    @property
    def template(self) -> NodeTemplate:
        """Which pods may land on its nodes."""
        return NodeTemplate(dict(self.values) | {NODE_POOL_LABEL: (self.name,)}, self.taints)

    @property
    def object(self) -> str:
        """The NodePool in a finding."""
        return f"NodePool {self.name}"


@dataclass(frozen=True, slots=True)
class PodDisruptionBudget:
    """A budget that selects the pods of a target."""

    name: str  # NAMESPACE/NAME
    disruptions_allowed: int
    says: str  # the field and its value, such as maxUnavailable 0
    blocks_always: bool


@dataclass(frozen=True, slots=True)
class Router:
    """A Service or an InferencePool that selects the pods of a target, and whether a drained pod leaves it."""

    name: str  # KIND NAMESPACE/NAME
    selects_serving: bool


@dataclass(frozen=True, slots=True)
class ServingTarget:
    """What an InferenceScaler scales, as far as nodes are concerned; without a template only the scaler is known.

    `capacity_type` is the kind of node for which the target is, where the scaler has one for each kind.
    """

    scaler: InferenceScaler
    reference: ScaleTargetRef
    capacity_type: CapacityType | None = None
    accelerators: int | None = None
    requests: Mapping[str, str] = field(default_factory=dict)  # of one pod
    pod_requests: PodRequests = NO_REQUESTS  # the same in numbers, where a pod is a replica
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    grace_seconds: float = DEFAULT_GRACE_SECONDS
    priority_class: str = ""
    keeps_off_disruption: bool = False  # karpenter.sh/do-not-disrupt on its pods
    replica_appliers: tuple[str, ...] = ()
    autoscalers: tuple[str, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)  # of its pods
    selector: LabelSelector | None = None  # by which it has its pods
    routers: tuple[Router, ...] = ()  # looked for where replicas are to be drained
    is_known: bool = True

    @property
    def object(self) -> str:
        """The target in a finding."""
        return f"{self.reference.kind} {self.scaler.namespace}/{self.reference.name}"

    def selects_by(self, label: str) -> bool:
        """Whether it would lose a pod whose label is another one."""
        return self.selector is not None and any(each.key == label for each in self.selector.requirements)

    def node_pools_of(self, pool: AcceleratorPool) -> tuple[str, ...]:
        """The NodePools of an AcceleratorPool on which its pods are to land."""
        named = pool.spec.node_pools
        match self.capacity_type:
            case CapacityType.ON_DEMAND:
                return (named.on_demand,)
            case CapacityType.SPOT:
                return () if named.spot is None else (named.spot,)
        return named.names


@dataclass(frozen=True, slots=True)
class Karpenter:
    """The Karpenter that runs: None where its Deployment was not found, so that nobody can say."""

    version: Version | None = None
    has_interruption_queue: bool | None = None
    feature_gates: str | None = None
    serves_v1: bool = True
    has_capacity_buffers: bool = False
    has_static_replicas: bool = False


@dataclass(frozen=True, slots=True)
class PatchRight:
    """Whether the controller's account may patch a NodePool, and what a patch without effect came to."""

    is_allowed: bool | None  # None: could not be asked
    dry_run_problem: str = ""


@dataclass(frozen=True, slots=True)
class SurveyedDaemon:
    """A DaemonSet: what it takes of each node on which it may run."""

    name: str  # NAMESPACE/NAME
    requests: PodRequests
    placement: PodPlacement = ANYWHERE
    is_drain_watcher: bool = False
    uses_host_network: bool = False


@dataclass(frozen=True, slots=True)
class SurveyedPlaceholders:
    """The Deployment that holds nodes ready for an AcceleratorPool; `accelerators` None: there is none."""

    name: str  # NAMESPACE/NAME
    accelerators: int | None = None
    priority_class: str = ""
    placement: PodPlacement = ANYWHERE


@dataclass(frozen=True, slots=True)
class MissingRight:
    """What the controller's account may not do, what that leads to, and which part of deploy/ grants it."""

    verb: str
    resource: str
    consequence: str
    granted_by: str


@dataclass(frozen=True, slots=True)
class Survey:
    """All that was read. `unread` are findings about what could not be, `refused` about specs that are not accepted."""

    account: str  # the controller's, NAMESPACE/NAME
    kubernetes: Version | None
    karpenter: Karpenter
    pools: tuple[AcceleratorPool, ...]
    node_pools: Mapping[str, SurveyedNodePool]
    targets: Mapping[str, tuple[ServingTarget, ...]]  # by AcceleratorPool
    rights: Mapping[str, PatchRight] = field(default_factory=dict)
    priorities: Mapping[str, int] = field(default_factory=dict)
    missing_rights: tuple[MissingRight, ...] = ()
    daemons: tuple[SurveyedDaemon, ...] = ()
    placeholders: Mapping[str, SurveyedPlaceholders] = field(default_factory=dict)  # by AcceleratorPool
    hop_limits: Mapping[str, int] = field(default_factory=dict)  # of the metadata service, by EC2NodeClass
    quota_cpus: int | None = None
    ceiling_per_hour: int | None = None  # of all AcceleratorPools, in millionths of a dollar
    unread: tuple[Finding, ...] = ()
    refused: tuple[Finding, ...] = ()

    def pairs(self) -> Iterable[tuple[AcceleratorPool, SurveyedNodePool]]:
        """Every AcceleratorPool with each of its NodePools that exist."""
        for pool in self.pools:
            for name in pool.spec.node_pools.names:
                if name in self.node_pools:
                    yield pool, self.node_pools[name]

    def targets_of(self, pool: AcceleratorPool) -> Sequence[ServingTarget]:
        """The targets whose scalers refer to an AcceleratorPool."""
        return self.targets.get(pool.name, ())

    def scalers_of(self, pool: AcceleratorPool) -> Sequence[ServingTarget]:
        """The same with each scaler once: of two targets the one on demand."""
        return [target for target in self.targets_of(pool) if target.capacity_type is not CapacityType.SPOT]


def read_node_pool(document: Document, capacities: Iterable[Mapping[str, str]] = ()) -> SurveyedNodePool:
    """A NodePool by its document; what is left out has Karpenter's default."""
    metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    template = spec.get("template") or {}
    node, disruption = template.get("spec") or {}, spec.get("disruption") or {}
    conditions: Sequence[Document] = status.get("conditions") or ()
    ready: Document = next((each for each in conditions if each.get("type") == "Ready"), {})
    return SurveyedNodePool(
        name=metadata["name"],
        generation=int(metadata.get("generation", 0)),
        ready_status=str(ready.get("status", "Unknown")),
        ready_message=str(ready.get("message") or ready.get("reason") or "nobody has judged it yet"),
        ready_generation=int(ready.get("observedGeneration", 0)),
        limits={key: str(amount) for key, amount in (spec.get("limits") or {}).items()},
        limit_appliers=appliers(metadata, "f:limits"),
        values=_values(node.get("requirements") or (), (template.get("metadata") or {}).get("labels") or {}),
        taints=read_taints(node.get("taints")),
        consolidation_policy=str(disruption.get("consolidationPolicy", "WhenEmptyOrUnderutilized")),
        consolidate_after_seconds=duration_seconds(disruption.get("consolidateAfter", "0s")),
        budgets=tuple(map(_budget, disruption.get("budgets", [{"nodes": "10%"}]))),
        expire_after_seconds=duration_seconds(node.get("expireAfter", "720h")),
        termination_grace_seconds=duration_seconds(node.get("terminationGracePeriod", "Never")),
        static_replicas=spec.get("replicas"),
        weight=int(spec.get("weight") or 0),
        node_class_group=str((node.get("nodeClassRef") or {}).get("group", "")),
        node_class=str((node.get("nodeClassRef") or {}).get("name", "")),
        capacities=tuple(capacities),
    )


def read_target(
    scaler: InferenceScaler,
    document: Document,
    reference: ScaleTargetRef | None = None,
    capacity_type: CapacityType | None = None,
) -> ServingTarget:
    """A target by its document; without a reference the scaler's first. Of a LeaderWorkerSet the workers count."""
    spec = document.get("spec") or {}
    template = spec.get("template") or (spec.get("leaderWorkerTemplate") or {}).get("workerTemplate") or {}
    pod, annotations = template.get("spec") or {}, (template.get("metadata") or {}).get("annotations") or {}
    grace_seconds = pod.get("terminationGracePeriodSeconds")
    return ServingTarget(
        scaler=scaler,
        reference=reference or scaler.spec.first_target_ref,
        capacity_type=capacity_type,
        accelerators=scaler.spec.accelerators_per_replica or accelerators_of_template(document),
        requests=_requests(pod.get("containers") or ()),
        node_selector={key: str(value) for key, value in (pod.get("nodeSelector") or {}).items()},
        tolerations=read_tolerations(pod.get("tolerations")),
        pod_requests=requests_of_template(document),
        grace_seconds=DEFAULT_GRACE_SECONDS if grace_seconds is None else float(grace_seconds),
        priority_class=str(pod.get("priorityClassName") or ""),
        keeps_off_disruption="karpenter.sh/do-not-disrupt" in annotations,
        replica_appliers=appliers(document["metadata"], "f:replicas"),
        labels=dict((template.get("metadata") or {}).get("labels") or {}),
        selector=selector_from_object(spec.get("selector")),
    )


def read_daemon(document: Document) -> SurveyedDaemon:
    """A DaemonSet by its document. A drain watcher of ours is told by what its container runs."""
    metadata = document["metadata"]
    pod = ((document.get("spec") or {}).get("template") or {}).get("spec") or {}
    runs = [
        str(word)
        for container in pod.get("containers") or ()
        for word in [*(container.get("command") or ()), *(container.get("args") or ())]
    ]
    return SurveyedDaemon(
        name=f"{metadata.get('namespace')}/{metadata['name']}",
        requests=requests_of_pod(pod),
        placement=read_placement(pod),
        is_drain_watcher="drain-watcher" in runs,
        uses_host_network=bool(pod.get("hostNetwork")),
    )


def read_placeholders(name: str, document: Document) -> SurveyedPlaceholders:
    """A Deployment of placeholders by its document."""
    pod = ((document.get("spec") or {}).get("template") or {}).get("spec") or {}
    return SurveyedPlaceholders(
        name, accelerators_of_template(document) or 0, str(pod.get("priorityClassName") or ""), read_placement(pod)
    )


def read_router(kind: str, document: Document, labels: Mapping[str, str]) -> Router | None:
    """A Service or an InferencePool that selects pods with these labels; None for one that does not."""
    selected = (document.get("spec") or {}).get("selector") or {}
    # A Service has its labels at once, an InferencePool of v1 below matchLabels.
    selector = {key: value for key, value in (selected.get("matchLabels") or selected).items() if key != SERVING_LABEL}
    if not selector or any(labels.get(key) != value for key, value in selector.items()):
        return None
    metadata = document["metadata"]
    selects_serving = (selected.get("matchLabels") or selected).get(SERVING_LABEL) == "true"
    return Router(f"{kind} {metadata.get('namespace')}/{metadata['name']}", selects_serving)


def read_disruption_budget(document: Document) -> PodDisruptionBudget:
    """A PodDisruptionBudget by its document."""
    spec, status, metadata = document.get("spec") or {}, document.get("status") or {}, document["metadata"]
    key = "maxUnavailable" if "maxUnavailable" in spec else "minAvailable"
    value = str(spec.get(key, ""))
    return PodDisruptionBudget(
        name=f"{metadata.get('namespace')}/{metadata['name']}",
        disruptions_allowed=int(status.get("disruptionsAllowed", 0)),
        says=f"{key} {value}",
        blocks_always=(key, value) in {("maxUnavailable", "0"), ("maxUnavailable", "0%"), ("minAvailable", "100%")},
    )


def appliers(metadata: Document, name: str) -> tuple[str, ...]:
    """The field managers that own a field of the spec and will write it again: appliers, and those not by hand."""
    owners = {
        str(entry.get("manager") or "unknown")
        for entry in metadata.get("managedFields") or ()
        if name in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
        and not entry.get("subresource")
        and str(entry.get("manager")) not in _BY_HAND
    }
    return tuple(sorted(owners))


def version_of(text: str) -> Version | None:
    """The version in a text such as v1.14.1, or 1.37; None where there is none."""
    match = re.search(r"([0-9]+)\.([0-9]+)(?:\.([0-9]+))?", text)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3] or 0))


def _values(requirements: Iterable[Document], labels: Document) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {str(key): (str(value),) for key, value in labels.items()}
    for each in requirements:
        if each.get("operator") == "In":
            found[str(each.get("key"))] = tuple(str(value) for value in each.get("values") or ())
    return found


def _budget(document: Document) -> Budget:
    reasons = tuple(str(reason) for reason in document.get("reasons") or ())
    return Budget(str(document.get("nodes", "10%")), reasons, document.get("schedule") is not None)


def _requests(containers: Iterable[Document]) -> dict[str, str]:
    """What the only container asks for; of several, those that ask for a resource alone."""
    found: dict[str, list[str]] = {}
    for container in containers:
        resources = container.get("resources") or {}
        for key, amount in ((resources.get("limits") or {}) | (resources.get("requests") or {})).items():
            found.setdefault(key, []).append(str(amount))
    return {key: amounts[0] for key, amounts in found.items() if len(amounts) == 1}
