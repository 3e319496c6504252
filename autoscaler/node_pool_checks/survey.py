"""Reads what the checks judge. Nothing is changed: one patch that changes nothing is sent with dryRun=All."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from autoscaler.api.accelerator_pool import AcceleratorPool, AcceleratorPoolMode, parse_accelerator_pool
from autoscaler.api.accelerators import accelerators_of_template
from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
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
from autoscaler.node_pool_checks.survey_types import (
    NODE_POOL_KEY,
    AcceleratorDaemon,
    Karpenter,
    PatchRight,
    PodDisruptionBudget,
    ServingTarget,
    Survey,
    SurveyedNodePool,
    Version,
    read_disruption_budget,
    read_node_pool,
    read_target,
    version_of,
)

OWN_PATH = "/apis/tokenscaler.io/v1alpha1"
KARPENTER_PATH = "/apis/karpenter.sh/v1"
PAGE_OBJECTS = 500

Document = dict[str, Any]


def survey_cluster(connection: ApiConnection, account: str, quota_cpus: int | None) -> Survey | ApiFailure:
    """Everything that the checks need; the failure where not even the AcceleratorPools can be read.

    `account` is the controller's ServiceAccount as NAMESPACE/NAME, `quota_cpus` the cloud's quota.
    """
    pools = _list(connection, f"{OWN_PATH}/acceleratorpools")
    if isinstance(pools, ApiFailure):
        return pools
    reader = _Reader(connection)
    accepted = [pool for each in pools if isinstance(pool := parse_accelerator_pool(each), AcceleratorPool)]
    node_pools = reader.node_pools()
    return Survey(
        account=account,
        kubernetes=reader.kubernetes(),
        karpenter=reader.karpenter(),
        pools=tuple(accepted),
        node_pools=node_pools,
        targets=reader.targets({pool.name for pool in accepted}),
        rights=reader.rights(_managed(accepted, node_pools), account),
        priorities=reader.priorities(),
        daemons=reader.daemons(),
        quota_cpus=quota_cpus,
        unread=tuple(reader.unread),
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

    def kubernetes(self) -> Version | None:
        answer = self._connection.get("/version")
        return None if isinstance(answer, ApiFailure) else version_of(str(answer.get("gitVersion", "")))

    def karpenter(self) -> Karpenter:
        served = self._connection.get(KARPENTER_PATH)
        names = set() if isinstance(served, ApiFailure) else {str(each.get("name")) for each in served["resources"]}
        group = self._connection.get("/apis/autoscaling.x-k8s.io")
        found = Karpenter(
            serves_v1="nodepools" in names,
            has_static_replicas="nodepools/scale" in names,
            has_capacity_buffers=not isinstance(group, ApiFailure),
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
        )

    def node_pools(self) -> Mapping[str, SurveyedNodePool]:
        documents = self._all(f"{KARPENTER_PATH}/nodepools", is_optional=True)
        nodes = self._all("/api/v1/nodes", {"labelSelector": NODE_POOL_KEY}) if documents else []
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
                found[scaler.spec.accelerator_pool_ref.name].append(self._target(scaler, kinds, around))
        return {name: tuple(targets) for name, targets in found.items()}

    def rights(self, node_pools: Sequence[SurveyedNodePool], account: str) -> Mapping[str, PatchRight]:
        return {each.name: PatchRight(self._may_patch(each, account), self._dry_run(each)) for each in node_pools}

    def priorities(self) -> Mapping[str, int]:
        classes = self._all("/apis/scheduling.k8s.io/v1/priorityclasses")
        return {each["metadata"]["name"]: int(each.get("value", 0)) for each in classes}

    def daemons(self) -> tuple[AcceleratorDaemon, ...]:
        found = []
        for document in self._all("/apis/apps/v1/daemonsets"):
            accelerators = accelerators_of_template(document)
            if accelerators:
                metadata = document["metadata"]
                found.append(AcceleratorDaemon(f"{metadata['namespace']}/{metadata['name']}", accelerators))
        return tuple(found)

    def _target(
        self, scaler: InferenceScaler, kinds: dict[tuple[str, str], ServedKind | ApiFailure], around: _Namespace
    ) -> ServingTarget:
        reference = scaler.spec.first_target_ref
        key = (reference.api_version, reference.kind)
        kind = kinds.get(key) or discover(self._connection, *key)
        kinds[key] = kind
        if isinstance(kind, ApiFailure):
            return self._unknown(scaler, kind.message)
        document = self._connection.get(f"{kind.collection_path(scaler.namespace)}/{reference.name}")
        if isinstance(document, NotFound):
            return self._unknown(scaler, reference.name, f"there is no such {reference.kind}: ")
        if isinstance(document, ApiFailure):
            return self._unknown(scaler, document.message)
        return replace(
            read_target(scaler, document),
            autoscalers=around.autoscalers_of(reference.kind, reference.name),
            budgets=around.budgets_of(document),
        )

    def _unknown(self, scaler: InferenceScaler, found: str, why: str = "") -> ServingTarget:
        target = ServingTarget(scaler, scaler.spec.accelerators_per_replica, is_known=False)
        self.unread.append(
            Finding(
                target.object,
                "metadata.name",
                found,
                f"{why}nothing could be checked of what InferenceScaler {'/'.join(scaler.key)} scales",
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

    def _may_patch(self, node_pool: SurveyedNodePool, account: str) -> bool | None:
        namespace, _, name = account.partition("/")
        attributes = {"group": "karpenter.sh", "resource": "nodepools", "name": node_pool.name, "verb": "patch"}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{namespace}:{name}",
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
                "resourceAttributes": attributes,
            },
        }
        answer = self._connection.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        if isinstance(answer, ApiFailure):
            self._note(f"the rights of ServiceAccount {account}", answer)
            return None
        return bool((answer.get("status") or {}).get("allowed"))

    def _dry_run(self, node_pool: SurveyedNodePool) -> str:
        """What a patch that changes nothing comes to; it is refused where admission refuses it, or our own right."""
        path = f"{KARPENTER_PATH}/nodepools/{node_pool.name}"
        answer = self._connection.patch(path, {"spec": {"limits": dict(node_pool.limits)}}, query={"dryRun": "All"})
        return answer.message if isinstance(answer, ApiFailure) else ""

    def _all(self, path: str, query: Mapping[str, str] | None = None, is_optional: bool = False) -> list[Document]:
        answer = _list(self._connection, path, query)
        if isinstance(answer, ApiFailure):
            if not (is_optional and isinstance(answer, NotFound)):
                self._note(path, answer)
            return []
        return answer

    def _note(self, what: str, failure: ApiFailure) -> None:
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
