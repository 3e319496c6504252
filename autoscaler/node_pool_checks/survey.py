"""Reads what the checks judge. Nothing is changed (`account_rights.py` sends a patch with dryRun=All)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from autoscaler.api.accelerator_pool import AcceleratorPool, AcceleratorPoolMode, parse_accelerator_pool
from autoscaler.api.inference_scaler import InferenceScaler, ScaleTargetRef, parse_inference_scaler
from autoscaler.api.node_template import NODE_POOL_LABEL
from autoscaler.finding import Finding
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, NotFound
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.kubernetes_gateway.discovery import ServedKind, discover
from autoscaler.kubernetes_gateway.label_selector import selector_from_object
from autoscaler.kubernetes_gateway.watched_objects import (
    AutoscalerClaim,
    reduce_horizontal_pod_autoscaler,
    reduce_node,
    reduce_scaled_object,
)
from autoscaler.node_pool_checks.account_rights import KARPENTER_PATH, AccountRights
from autoscaler.node_pool_checks.survey_types import (
    Karpenter,
    PodDisruptionBudget,
    Router,
    ServingTarget,
    Survey,
    SurveyedDaemon,
    SurveyedNodePool,
    SurveyedPlaceholders,
    Version,
    read_daemon,
    read_disruption_budget,
    read_node_pool,
    read_placeholders,
    read_router,
    read_target,
    version_of,
)
from autoscaler.observers.capacity_buffers import API_VERSION as BUFFERS_API_VERSION
from policies.capacity_split import CapacityType

OWN_PATH = "/apis/tokenscaler.io/v1alpha1"
INFERENCE_PATH = "/apis/inference.networking.k8s.io/v1"
PAGE_OBJECTS = 500

Document = dict[str, Any]


def survey_cluster(
    connection: ApiConnection, account: str, quota_cpus: int | None, ceiling_per_hour: int | None = None
) -> Survey | ApiFailure:
    """Everything that the checks need; the failure where not even the AcceleratorPools can be read.

    `account` is the controller's ServiceAccount as NAMESPACE/NAME, `quota_cpus` the cloud's quota, `ceiling_per_hour`
    the controller's ceiling for all pools in millionths of a dollar.
    """
    pools = _list(connection, f"{OWN_PATH}/acceleratorpools")
    if isinstance(pools, ApiFailure):
        return pools
    reader = _Reader(connection)
    rights = AccountRights(connection, account, reader.note)
    accepted = reader.accepted(pools)
    node_pools = reader.node_pools()
    return Survey(
        account=account,
        kubernetes=reader.kubernetes(),
        karpenter=reader.karpenter(),
        pools=tuple(accepted),
        node_pools=node_pools,
        targets=reader.targets({pool.name for pool in accepted}),
        rights=rights.to_patch(_managed(accepted, node_pools)),
        priorities=reader.priorities(),
        missing_rights=rights.missing(accepted),
        daemons=reader.daemons(),
        placeholders=reader.placeholders(accepted),
        hop_limits=reader.hop_limits(),
        quota_cpus=quota_cpus,
        ceiling_per_hour=ceiling_per_hour,
        unread=tuple(reader.unread),
        refused=tuple(reader.refused),
    )


def _managed(
    pools: Sequence[AcceleratorPool], node_pools: Mapping[str, SurveyedNodePool]
) -> tuple[SurveyedNodePool, ...]:
    names = {
        name for pool in pools if pool.spec.mode is AcceleratorPoolMode.MANAGE for name in pool.spec.node_pools.names
    }
    return tuple(node_pools[name] for name in sorted(names & node_pools.keys()))


class _Reader:
    """Reads one thing after the other and keeps what could not be read as findings."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection
        self.unread: list[Finding] = []
        self.refused: list[Finding] = []

    def accepted(self, documents: Sequence[Document]) -> list[AcceleratorPool]:
        """The AcceleratorPools whose spec is accepted; the others are findings."""
        pools = list(map(parse_accelerator_pool, documents))
        self.refused += [
            Finding(
                f"AcceleratorPool {pool.name}",
                "spec",
                "; ".join(pool.problems),
                "it is not accepted: nothing of it is done",
                "correct it",
            )
            for pool in pools
            if not isinstance(pool, AcceleratorPool)
        ]
        return [pool for pool in pools if isinstance(pool, AcceleratorPool)]

    def kubernetes(self) -> Version | None:
        answer = self._connection.get("/version")
        return None if isinstance(answer, ApiFailure) else version_of(str(answer.get("gitVersion", "")))

    def karpenter(self) -> Karpenter:
        served = self._connection.get(KARPENTER_PATH)
        names = set() if isinstance(served, ApiFailure) else {str(each.get("name")) for each in served["resources"]}
        buffers = self._connection.get(f"/apis/{BUFFERS_API_VERSION}")
        kinds = () if isinstance(buffers, ApiFailure) else buffers.get("resources") or ()
        found = Karpenter(
            serves_v1="nodepools" in names,
            has_static_replicas="nodepools/scale" in names,
            has_capacity_buffers=any(each.get("name") == "capacitybuffers" for each in kinds),
        )
        deployments = self._all("/apis/apps/v1/deployments", {"labelSelector": "app.kubernetes.io/name=karpenter"})
        if not deployments:
            return found
        document = deployments[0]
        labels = document["metadata"].get("labels") or {}
        containers = ((document.get("spec") or {}).get("template") or {}).get("spec", {}).get("containers") or ()
        return replace(
            found,
            version=version_of(str(labels.get("app.kubernetes.io/version", ""))),
            has_interruption_queue=any(map(_has_queue, containers)),
            feature_gates=" ".join(map(_feature_gates, containers)),
        )

    def node_pools(self) -> Mapping[str, SurveyedNodePool]:
        documents = self._all(f"{KARPENTER_PATH}/nodepools", is_optional=True)
        nodes = self._all("/api/v1/nodes", {"labelSelector": NODE_POOL_LABEL}) if documents else []
        capacities: dict[str | None, dict[tuple[tuple[str, str], ...], Mapping[str, str]]] = defaultdict(dict)
        for node in map(reduce_node, nodes):
            # A node whose accelerators have not registered yet would look like one of another shape.
            if any(node.accelerators.values()):
                capacities[node.node_pool][tuple(sorted(node.capacity.items()))] = node.capacity
        found = (read_node_pool(each, capacities[each["metadata"]["name"]].values()) for each in documents)
        return {node_pool.name: node_pool for node_pool in found}

    def targets(self, pools: set[str]) -> Mapping[str, tuple[ServingTarget, ...]]:
        scalers = [parse_inference_scaler(each) for each in self._all(f"{OWN_PATH}/inferencescalers")]
        found: dict[str, list[ServingTarget]] = defaultdict(list)
        kinds: dict[tuple[str, str], ServedKind | ApiFailure] = {}
        namespaces: dict[str, _Namespace] = {}
        for scaler in scalers:
            if not isinstance(scaler, InferenceScaler) or scaler.spec.accelerator_pool_ref is None:
                continue
            if scaler.spec.accelerator_pool_ref.name in pools:
                around = namespaces.get(scaler.namespace) or self._namespace(scaler.namespace)
                namespaces[scaler.namespace] = around
                found[scaler.spec.accelerator_pool_ref.name] += [
                    self._target(scaler, reference, kind, kinds, around) for reference, kind in _targets(scaler)
                ]
        return {name: tuple(targets) for name, targets in found.items()}

    def priorities(self) -> Mapping[str, int]:
        classes = self._all("/apis/scheduling.k8s.io/v1/priorityclasses")
        return {each["metadata"]["name"]: int(each.get("value", 0)) for each in classes}

    def daemons(self) -> tuple[SurveyedDaemon, ...]:
        return tuple(map(read_daemon, self._all("/apis/apps/v1/daemonsets")))

    def placeholders(self, pools: Sequence[AcceleratorPool]) -> Mapping[str, SurveyedPlaceholders]:
        """Where they are not there, or may not be read, only their name is told."""
        found: dict[str, SurveyedPlaceholders] = {}
        for pool in pools:
            reference = None if pool.spec.held_ready is None else pool.spec.held_ready.placeholder_ref
            if reference is None:
                continue
            name = f"{reference.namespace}/{reference.name}"
            path = f"/apis/apps/v1/namespaces/{reference.namespace}/deployments/{reference.name}"
            document = self._connection.get(path)
            if isinstance(document, ApiFailure) and not isinstance(document, NotFound):
                self.note(f"Deployment {name}", document)
            elif isinstance(document, ApiFailure):
                found[pool.name] = SurveyedPlaceholders(name)
            else:
                found[pool.name] = read_placeholders(name, document)
        return found

    def hop_limits(self) -> Mapping[str, int]:
        """By EC2NodeClass; empty on another cloud."""
        classes = self._all("/apis/karpenter.k8s.aws/v1/ec2nodeclasses", is_optional=True)
        return {
            each["metadata"]["name"]: int(
                ((each.get("spec") or {}).get("metadataOptions") or {}).get("httpPutResponseHopLimit", 1)
            )
            for each in classes
        }

    def _target(
        self,
        scaler: InferenceScaler,
        reference: ScaleTargetRef,
        capacity_type: CapacityType | None,
        kinds: dict[tuple[str, str], ServedKind | ApiFailure],
        around: _Namespace,
    ) -> ServingTarget:
        unknown = ServingTarget(scaler, reference, capacity_type, scaler.spec.accelerators_per_replica, is_known=False)
        key = (reference.api_version, reference.kind)
        kind = kinds.get(key) or discover(self._connection, *key)
        kinds[key] = kind
        if isinstance(kind, ApiFailure):
            return self._unknown(unknown, kind.message)
        document = self._connection.get(f"{kind.collection_path(scaler.namespace)}/{reference.name}")
        if isinstance(document, NotFound):
            return self._unknown(unknown, reference.name, f"there is no such {reference.kind}: ")
        if isinstance(document, ApiFailure):
            return self._unknown(unknown, document.message)
        target = read_target(scaler, document, reference, capacity_type)
        return replace(
            target,
            autoscalers=around.autoscalers_of(reference.kind, reference.name),
            budgets=around.budgets_of(document),
            routers=() if scaler.spec.scale_down_drain_seconds is None else self._routers(target),
        )

    def _routers(self, target: ServingTarget) -> tuple[Router, ...]:
        namespace = target.scaler.namespace
        lists = [
            ("Service", self._all(f"/api/v1/namespaces/{namespace}/services")),
            ("InferencePool", self._all(f"{INFERENCE_PATH}/namespaces/{namespace}/inferencepools", is_optional=True)),
        ]
        found = (read_router(kind, document, target.labels) for kind, documents in lists for document in documents)
        return tuple(router for router in found if router is not None)

    def _unknown(self, target: ServingTarget, found: str, why: str = "") -> ServingTarget:
        self.unread.append(
            Finding(
                target.object,
                "metadata.name",
                found,
                f"{why}nothing could be checked of what InferenceScaler {'/'.join(target.scaler.key)} scales",
                "correct spec.scaleTargetRef, or create the target",
            )
        )
        return target

    def _namespace(self, namespace: str) -> _Namespace:
        claims = [
            reduce_horizontal_pod_autoscaler(each)
            for each in self._all(f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers")
        ]
        scaled = self._all(f"/apis/keda.sh/v1alpha1/namespaces/{namespace}/scaledobjects", is_optional=True)
        claims += [reduce_scaled_object(each) for each in scaled]
        budgets = self._all(f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")
        return _Namespace([claim for claim in claims if claim is not None], budgets)

    def _all(self, path: str, query: Mapping[str, str] | None = None, is_optional: bool = False) -> list[Document]:
        answer = _list(self._connection, path, query)
        if isinstance(answer, ApiFailure):
            if not (is_optional and isinstance(answer, NotFound)):
                self.note(path, answer)
            return []
        return answer

    def note(self, what: str, failure: ApiFailure) -> None:
        """Keeps that something could not be read."""
        self.unread.append(
            Finding(what, "(not read)", failure.message, "what rests on it was not checked", "run as who may read it")
        )


class _Namespace:
    """What surrounds targets in one namespace: other autoscalers, and disruption budgets."""

    def __init__(self, claims: Sequence[AutoscalerClaim], budgets: Sequence[Document]) -> None:
        self._claims = claims
        self._budgets = [(selector_from_object((each.get("spec") or {}).get("selector")), each) for each in budgets]

    def autoscalers_of(self, kind: str, name: str) -> tuple[str, ...]:
        return tuple(claim.who for claim in self._claims if (claim.kind, claim.name) == (kind, name))

    def budgets_of(self, target: Document) -> tuple[PodDisruptionBudget, ...]:
        template = (target.get("spec") or {}).get("template") or {}
        labels = (template.get("metadata") or {}).get("labels") or {}
        return tuple(
            read_disruption_budget(document)
            for selector, document in self._budgets
            if selector is not None and selector.matches(labels)
        )


def _targets(scaler: InferenceScaler) -> Sequence[tuple[ScaleTargetRef, CapacityType | None]]:
    """The target, or both of them with the kind of node that each is for."""
    references = scaler.spec.target_refs
    return [(references[0], None)] if len(references) == 1 else list(zip(references, CapacityType, strict=True))


def _feature_gates(container: Document) -> str:
    """What a container of Karpenter says of feature gates, by environment or argument."""
    environment = {each.get("name"): str(each.get("value") or "") for each in container.get("env") or ()}
    arguments = [str(each) for each in (*(container.get("command") or ()), *(container.get("args") or ()))]
    return " ".join([environment.get("FEATURE_GATES", ""), *(each for each in arguments if "feature-gates" in each)])


def _has_queue(container: Document) -> bool:
    environment = {each.get("name"): each.get("value") for each in container.get("env") or ()}
    arguments = [*(container.get("command") or ()), *(container.get("args") or ())]
    return bool(environment.get("INTERRUPTION_QUEUE")) or any("--interruption-queue" in each for each in arguments)


def _list(connection: ApiConnection, path: str, query: Mapping[str, str] | None = None) -> list[Document] | ApiFailure:
    """All objects of a list, page by page."""
    items: list[Document] = []
    token = ""
    while True:
        page_query = {"limit": str(PAGE_OBJECTS), **(query or {}), **({"continue": token} if token else {})}
        page = connection.list_page(path, page_query)
        if isinstance(page, ApiFailure):
            return page
        items += page.get("items") or ()
        token = str((page.get("metadata") or {}).get("continue") or "")
        if not token:
            return items
