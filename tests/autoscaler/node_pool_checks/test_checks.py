"""Every finding of the preflight: a cluster that is as it should be, and what one change of it leads to."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from autoscaler.api.accelerator_pool import AcceleratorPool, parse_accelerator_pool
from autoscaler.api.inference_scaler import InferenceScaler, ScaleTargetRef, parse_inference_scaler
from autoscaler.api.node_template import PodPlacement
from autoscaler.api.pod_requests import NO_REQUESTS, PodRequests
from autoscaler.api.taints import Toleration
from autoscaler.node_pool_checks.checks import judge
from autoscaler.node_pool_checks.survey_types import (
    Karpenter,
    MissingRight,
    PatchRight,
    PodDisruptionBudget,
    ServingTarget,
    Survey,
    SurveyedDaemon,
    SurveyedNodePool,
    SurveyedPlaceholders,
    read_disruption_budget,
    read_node_pool,
    read_router,
    read_target,
    version_of,
)
from policies.capacity_split import CapacityType

Document = dict[str, Any]

CAPACITY = {"nvidia.com/gpu": "8", "cpu": "192", "memory": "2048Gi"}
POOL: Document = {
    "apiVersion": "tokenscaler.io/v1alpha1",
    "kind": "AcceleratorPool",
    "metadata": {"name": "h100"},
    "spec": {
        "mode": "Manage",
        "latencyClass": "Interactive",
        "nodePools": {"onDemand": "od", "spot": "spot"},
        "nodeShape": {"accelerators": 8, "cpu": 192, "memory": "2048Gi"},
        "split": {"onDemandFloorPercent": 20},
        "ceilings": {"accelerators": 256},
    },
}
SCALER: Document = {
    "apiVersion": "tokenscaler.io/v1alpha1",
    "kind": "InferenceScaler",
    "metadata": {"name": "chat", "namespace": "inference"},
    "spec": {
        "mode": "Scale",
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm"},
        "engine": "vllm",
        "minReplicas": 4,
        "maxReplicas": 32,
        "acceleratorPoolRef": {"name": "h100"},
    },
}
DEPLOYMENT: Document = {
    "metadata": {"name": "vllm", "namespace": "inference"},
    "spec": {
        "template": {
            "metadata": {"labels": {"app": "vllm"}},
            "spec": {
                "nodeSelector": {"accelerator": "h100"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                "terminationGracePeriodSeconds": 100,
                "containers": [{"resources": {"limits": {"nvidia.com/gpu": "8", "cpu": "180", "memory": "1800Gi"}}}],
            },
        },
    },
}


def _node_pool(name: str, capacity_type: str) -> Document:
    return {
        "metadata": {"name": name, "generation": 3},
        "spec": {
            "limits": {"nvidia.com/gpu": "64", "cpu": "1536"},
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30m"},
            "template": {
                "metadata": {"labels": {"accelerator": "h100"}},
                "spec": {
                    "expireAfter": "Never",
                    "terminationGracePeriod": "30m",
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
                    "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}],
                    "requirements": [
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity_type]},
                        {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "In", "values": ["8"]},
                    ],
                },
            },
        },
        "status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 3}]},
    }


def _changed(document: Document, changes: Mapping[str, Any]) -> Document:
    """A copy with values at paths such as spec/limits/cpu; None takes a key away."""
    result = copy.deepcopy(document)
    for path, value in changes.items():
        *parents, last = path.replace("\\/", "\0").split("/")
        node: Any = result
        for parent in parents:
            node = node[int(parent)] if isinstance(node, list) else node.setdefault(parent.replace("\0", "/"), {})
        key = last.replace("\0", "/")
        if value is None:
            del node[key]
        else:
            node[int(key) if isinstance(node, list) else key] = value
    return result


def _survey(
    pool: Mapping[str, Any] | None = None,
    scaler: Mapping[str, Any] | None = None,
    target: Mapping[str, Any] | None = None,
    od: Mapping[str, Any] | None = None,
    spot: Mapping[str, Any] | None = None,
) -> Survey:
    """The cluster as it should be, with changes of its documents by path."""
    parsed_pool = parse_accelerator_pool(_changed(POOL, pool or {}))
    parsed_scaler = parse_inference_scaler(_changed(SCALER, scaler or {}))
    assert isinstance(parsed_pool, AcceleratorPool), parsed_pool
    assert isinstance(parsed_scaler, InferenceScaler), parsed_scaler
    node_pools = (
        read_node_pool(_changed(_node_pool("od", "on-demand"), {"spec/weight": 10} | dict(od or {})), [CAPACITY]),
        read_node_pool(_changed(_node_pool("spot", "spot"), spot or {}), [CAPACITY]),
    )
    return Survey(
        account="tokenscaler-system/tokenscaler",
        kubernetes=(1, 36, 0),
        karpenter=Karpenter((1, 14, 1), has_interruption_queue=True),
        pools=(parsed_pool,),
        node_pools={each.name: each for each in node_pools},
        targets={"h100": (read_target(parsed_scaler, _changed(DEPLOYMENT, target or {})),)},
        rights={"od": PatchRight(True), "spot": PatchRight(True)},
    )


def _with_target(**changes: Any) -> Survey:
    survey = _survey()
    (target,) = survey.targets["h100"]
    return replace(survey, targets={"h100": (replace(target, **changes),)})


SERVING = {"spec/template/metadata/labels/tokenscaler.io\\/serving": "true"}


def _draining(target: Mapping[str, Any] | None = None, **services: Mapping[str, str]) -> Survey:
    """A scaler that drains, a target with the label, and Services by name and selector."""
    drain = {"spec/scaleDownVictims": "WholeNodes", "spec/scaleDownDrainSeconds": 120}
    survey = _survey(scaler=drain, target=SERVING if target is None else target)
    (found,) = survey.targets["h100"]
    documents = [
        {"metadata": {"namespace": "inference", "name": name}, "spec": {"selector": selector}}
        for name, selector in services.items()
    ]
    routers = (read_router("Service", document, found.labels) for document in documents)
    found = replace(found, routers=tuple(router for router in routers if router is not None))
    return replace(survey, targets={"h100": (found,)})


def _with_node_pool(name: str, **changes: Any) -> Survey:
    survey = _survey()
    node_pools = dict(survey.node_pools)
    node_pools[name] = replace(node_pools.get(name) or SurveyedNodePool(name, 1), **changes)
    return replace(survey, node_pools=node_pools)


def test_a_cluster_as_it_should_be_has_no_finding() -> None:
    assert judge(_survey()) == ()


BUDGET = {"metadata": {"namespace": "inference", "name": "vllm"}, "spec": {"maxUnavailable": 0}}
GPU = "nvidia.com\\/gpu"
APPLIED = [{"manager": "argocd-controller", "operation": "Apply", "fieldsV1": {"f:spec": {"f:limits": {}}}}]
APPLIED_COUNT = [{"manager": "helm", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]


ON_ALL = PodPlacement(tolerations=(Toleration("", "Exists", "", ""),))
CAPACITY_TYPE = "spec/template/spec/nodeSelector/karpenter.sh\\/capacity-type"


def _with_daemon(daemon: SurveyedDaemon, **changes: Any) -> Survey:
    return replace(_survey(), daemons=(daemon,), **changes)


def _split_targets(on_demand: Mapping[str, Any] | None = None, spot: Mapping[str, Any] | None = None) -> Survey:
    """Two Deployments, each on its kind of node."""
    survey = _survey()
    (target,) = survey.targets["h100"]
    found = []
    for kind, changes in ((CapacityType.ON_DEMAND, on_demand), (CapacityType.SPOT, spot)):
        document = _changed(DEPLOYMENT, {CAPACITY_TYPE: kind.value} | dict(changes or {}))
        reference = ScaleTargetRef(apiVersion="apps/v1", kind="Deployment", name=f"vllm-{kind.value}")
        found.append(read_target(target.scaler, document, reference, kind))
    return replace(survey, targets={"h100": tuple(found)})


def _warming(method: str, **changes: Any) -> Survey:
    reference = {"namespace": "inference", "name": "warm"} if method == "PlaceholderPods" else None
    survey = _survey(pool={"spec/prewarm": {"method": method, "placeholderRef": reference}})
    return replace(survey, **{"karpenter": _karpenter(), **changes})


def _karpenter(**changes: Any) -> Karpenter:
    """With all that CapacityBuffers need."""
    gates = "CapacityBuffer=true"
    karpenter = Karpenter((1, 14, 1), has_interruption_queue=True, has_capacity_buffers=True, feature_gates=gates)
    return replace(karpenter, **changes)


def _placeholders(**changes: Any) -> dict[str, Any]:
    placeholders = SurveyedPlaceholders("inference/warm", 8, "warm", ON_ALL)
    return {"placeholders": {"h100": replace(placeholders, **changes)}, "priorities": {"warm": -10, "low": -(2**26)}}


DOLLARS = {"spec/nodeDollarsPerHour": {"onDemand": "50", "spot": "20"}}
WATCHER = SurveyedDaemon("system/watcher", NO_REQUESTS, ON_ALL, is_drain_watcher=True)


def _stranger(**changes: Any) -> Callable[[], Survey]:
    values = {"accelerator": ("h100",)}
    return lambda: _with_node_pool("other", limits={"nvidia.com/gpu": "8"}, values=values, **changes)


CASES = [
    pytest.param(
        lambda: replace(_survey(), karpenter=Karpenter(serves_v1=False), node_pools={}),
        "CustomResourceDefinition nodepools.karpenter.sh",
        "spec.versions",
        "there is no NodePool",
        id="Karpenter is not installed",
    ),
    pytest.param(
        lambda: replace(_survey(), karpenter=Karpenter((1, 12, 3))),
        "Deployment of Karpenter",
        "app.kubernetes.io/version",
        "not made for Kubernetes 1.36",
        id="Karpenter is too old for this Kubernetes",
    ),
    pytest.param(
        lambda: replace(_survey(od={"spec/limits/nodes": "8"}), karpenter=Karpenter((1, 10, 0)), kubernetes=(1, 34, 2)),
        "NodePool od",
        "spec.limits.nodes",
        "does not look at it",
        id="Karpenter is too old for a limit of nodes",
    ),
    pytest.param(
        lambda: replace(_survey(), karpenter=Karpenter((1, 14, 1), has_interruption_queue=False)),
        "NodePool spot",
        "spec.template.spec.requirements[karpenter.sh/capacity-type]",
        "nobody hears of the two minutes' notice",
        id="spot without an interruption queue",
    ),
    pytest.param(
        lambda: replace(_survey(), node_pools={"od": _survey().node_pools["od"]}),
        "AcceleratorPool h100",
        "spec.nodePools.spot",
        "there is no such NodePool",
        id="a NodePool that does not exist",
    ),
    pytest.param(
        lambda: _survey(
            od={"status/conditions/0": {"type": "Ready", "status": "False", "message": "NodeClassReady=False"}}
        ),
        "NodePool od",
        "status.conditions[Ready]",
        "makes no node",
        id="a NodePool that is not Ready",
    ),
    pytest.param(
        lambda: _survey(od={"metadata/generation": 4}),
        "NodePool od",
        "status.conditions[Ready].observedGeneration",
        "has not judged the spec",
        id="a NodePool whose spec nobody has judged yet",
    ),
    pytest.param(
        lambda: _survey(od={"spec/replicas": 3}),
        "NodePool od",
        "spec.replicas",
        "the number of its nodes is fixed",
        id="a static NodePool",
    ),
    pytest.param(
        lambda: _survey(od={"spec/template/spec/requirements/0/values": ["spot", "on-demand"]}),
        "NodePool od",
        "spec.template.spec.requirements[karpenter.sh/capacity-type]",
        "its split is not what the nodes are",
        id="an on-demand NodePool that may buy spot",
    ),
    pytest.param(
        lambda: _survey(od={"spec/template/spec/requirements/1/values": ["1", "8"]}),
        "NodePool od",
        "spec.template.spec.requirements[karpenter.k8s.aws/instance-gpu-count]",
        "where nodes differ",
        id="a NodePool that buys nodes of different sizes",
    ),
    pytest.param(
        lambda: _with_node_pool("od", capacities=({"nvidia.com/gpu": "8"}, {"nvidia.com/gpu": "4"})),
        "NodePool od",
        "status.capacity[nvidia.com/gpu] of its nodes",
        "where nodes differ",
        id="nodes of different sizes in one NodePool",
    ),
    pytest.param(
        lambda: _with_node_pool("od", capacities=(CAPACITY | {"cpu": "208"},)),
        "AcceleratorPool h100",
        "spec.nodeShape",
        "for the nodes that are there",
        id="a node that brings more than the shape says",
    ),
    pytest.param(
        lambda: _with_node_pool("od", capacities=(CAPACITY | {"nvidia.com/gpu": "4"},)),
        "AcceleratorPool h100",
        "spec.nodeShape",
        "for the nodes that are there",
        id="a node that has fewer accelerators than the shape says",
    ),
    pytest.param(
        lambda: _survey(od={"spec/limits": {"cpu": "1536"}}),
        "NodePool od",
        "spec.limits[nvidia.com/gpu]",
        "nothing caps the accelerators",
        id="no limit on accelerators",
    ),
    pytest.param(
        lambda: _survey(od={"spec/limits": {"nodes": "8"}}),
        "NodePool od",
        "spec.limits.nodes",
        "a burst passes over it",
        id="a limit of nodes alone",
    ),
    pytest.param(
        lambda: _survey(od={"spec/limits/ephemeral-storage": "8Ti"}),
        "NodePool od",
        "spec.limits.ephemeral-storage",
        "nobody can say how many nodes",
        id="a limited key that the shape does not name",
    ),
    pytest.param(
        lambda: _survey(od={"spec/limits": {"nvidia.com/gpu": "7", "cpu": "192"}}),
        "NodePool od",
        "spec.limits.nvidia.com/gpu",
        "not one node may come",
        id="a limit below one whole node",
    ),
    pytest.param(
        lambda: _survey(od={"spec/limits": {"nvidia.com/gpu": "256", "cpu": "2000"}}),
        "NodePool od",
        "spec.limits.cpu",
        "used up after 10 nodes of 8 accelerators, where nvidia.com/gpu 256 allows 32",
        id="a limit of CPUs that binds long before the accelerators'",
    ),
    pytest.param(
        lambda: _survey(od={f"spec/limits/{GPU}": "68"}),
        "NodePool od",
        "spec.limits[nvidia.com/gpu]",
        "4 of them are no whole node",
        id="a limit with a rest",
    ),
    pytest.param(
        lambda: _survey(pool={"spec/ceilings/accelerators": 24}),
        "AcceleratorPool h100",
        "spec.ceilings.accelerators",
        "minReplicas of its scalers take 32 accelerators",
        id="a ceiling below what is promised",
    ),
    pytest.param(
        lambda: _survey(pool={"spec/mode": "Observe"}),
        "AcceleratorPool h100",
        "spec.mode",
        "maxReplicas of its scalers take 256 accelerators, its NodePools' limits hold 128",
        id="limits that nobody keeps in step and that hold too little",
    ),
    pytest.param(
        lambda: replace(_survey(), quota_cpus=4000),
        "AcceleratorPool h100",
        "spec.ceilings.accelerators",
        "a quota of 4000 vCPU holds fewer",
        id="ceilings beyond the cloud's quota",
    ),
    pytest.param(
        lambda: replace(_survey(), rights={"od": PatchRight(False)}),
        "NodePool od",
        "verb patch for ServiceAccount tokenscaler-system/tokenscaler",
        "its limits are never written",
        id="no right to patch a NodePool",
    ),
    pytest.param(
        lambda: replace(_survey(), rights={"od": PatchRight(True, "patch: denied by policy x")}),
        "NodePool od",
        "spec.limits (a patch with dryRun=All that changes nothing)",
        "denied by policy x",
        id="a patch that admission refuses",
    ),
    pytest.param(
        lambda: _survey(od={"metadata/managedFields": APPLIED}),
        "NodePool od",
        "metadata.managedFields (spec.limits)",
        "the limits fall back",
        id="limits that GitOps applies again and again",
    ),
    pytest.param(
        lambda: _with_target(autoscalers=("HorizontalPodAutoscaler inference/vllm",)),
        "Deployment inference/vllm",
        "spec.replicas",
        "writes no count while another autoscaler does",
        id="an HPA on the same target",
    ),
    pytest.param(
        lambda: _survey(target={"metadata/managedFields": APPLIED_COUNT}),
        "Deployment inference/vllm",
        "metadata.managedFields (spec.replicas)",
        "the count jumps back",
        id="a count that a chart applies again and again",
    ),
    pytest.param(
        lambda: _survey(od={"spec/template/spec/taints": []}),
        "NodePool od",
        "spec.template.spec.taints",
        "keeps a whole node from being empty",
        id="accelerator nodes without a taint",
    ),
    pytest.param(
        lambda: _survey(target={"spec/template/spec/containers/0/resources/limits/cpu": "192"}),
        "Deployment inference/vllm",
        "spec.template.spec.containers[].resources.requests[cpu]",
        "no node ever fits",
        id="a pod that asks for all CPUs of a node",
    ),
    pytest.param(
        lambda: _survey(target={"spec/template/spec/nodeSelector/karpenter.sh\\/nodepool": "od"}),
        "Deployment inference/vllm",
        "spec.template.spec.nodeSelector",
        "its pods never land on NodePool spot",
        id="a selector that leaves out one of the two NodePools",
    ),
    pytest.param(
        _stranger(),
        "Deployment inference/vllm",
        "spec.template.spec.nodeSelector",
        "may land on NodePools other too",
        id="a selector that matches a third NodePool",
    ),
    pytest.param(
        lambda: _survey(target={"spec/template/spec/tolerations/0/key": "team"}),
        "Deployment inference/vllm",
        "spec.template.spec.tolerations",
        "never land there",
        id="a taint that the pods do not tolerate",
    ),
    pytest.param(
        lambda: replace(_with_target(priority_class="pause"), priorities={"pause": -1_000_000_000}),
        "PriorityClass pause",
        "value",
        "for empty and removes it",
        id="a priority by which Karpenter takes a node for empty",
    ),
    pytest.param(
        lambda: replace(_survey(), daemons=(SurveyedDaemon("monitoring/dcgm", PodRequests(accelerators=8), ON_ALL),)),
        "DaemonSet monitoring/dcgm",
        "spec.template.spec.containers[].resources.limits[nvidia.com/gpu]",
        "fit on none",
        id="a DaemonSet that asks for accelerators",
    ),
    pytest.param(
        lambda: _with_daemon(SurveyedDaemon("logs/agent", PodRequests(cpu_millis=13_000), ON_ALL)),
        "Deployment inference/vllm",
        "spec.template.spec.containers[].resources.requests[cpu]",
        "leave less of the 192 that a node has",
        id="a DaemonSet that leaves too few CPUs",
    ),
    pytest.param(
        lambda: _with_daemon(WATCHER, hop_limits={"gpu": 1}),
        "DaemonSet system/watcher",
        "spec.template.spec.hostNetwork",
        "never hears of a spot notice",
        id="a drain watcher that is a hop too far from the metadata service",
    ),
    pytest.param(
        lambda: _split_targets(spot={"spec/template/spec/terminationGracePeriodSeconds": 600}),
        "Deployment inference/vllm-spot",
        "spec.template.spec.terminationGracePeriodSeconds",
        "cut off without a word",
        id="a grace period that is longer than spot's notice, of the second target",
    ),
    pytest.param(
        lambda: _split_targets(spot={CAPACITY_TYPE: "on-demand"}),
        "Deployment inference/vllm-spot",
        "spec.template.spec.nodeSelector",
        "n",
        id="a second target that lands on the first one's nodes",
    ),
    pytest.param(
        lambda: _survey(od={"spec/weight": 1}, spot={"spec/weight": 1}),
        "NodePool od",
        "spec.weight",
        "the floor is not kept while nodes come",
        id="a NodePool on demand that does not come first",
    ),
    pytest.param(
        lambda: _survey(od={"spec/template/spec/terminationGracePeriod": None}),
        "NodePool od",
        "spec.template.spec.terminationGracePeriod",
        "waits for ever",
        id="a node that may drain for ever",
    ),
    pytest.param(
        lambda: replace(_survey(), missing_rights=(MissingRight("list", "daemonsets.apps", "no", "deploy/x"),)),
        "ServiceAccount tokenscaler-system/tokenscaler",
        "verb list on daemonsets.apps",
        "no",
        id="a right that the controller lacks",
    ),
    pytest.param(
        lambda: replace(_survey(), ceiling_per_hour=10**9),
        "AcceleratorPool h100",
        "spec.nodeDollarsPerHour",
        "NodePriceUnknown",
        id="a ceiling for all pools, and one without prices",
    ),
    pytest.param(
        lambda: replace(_survey(pool=DOLLARS), ceiling_per_hour=100 * 10**6),
        "the controller",
        "--ceiling-dollars-per-hour",
        "take nodes for 110 dollars an hour",
        id="a ceiling for all pools below what is promised",
    ),
    pytest.param(
        lambda: _survey(pool=DOLLARS | {"spec/ceilings/dollarsPerHour": "60"}),
        "AcceleratorPool h100",
        "spec.ceilings.dollarsPerHour",
        "take nodes for 110 dollars an hour",
        id="a ceiling in dollars below what is promised",
    ),
    pytest.param(
        lambda: _warming("CapacityBuffer", karpenter=_karpenter(has_capacity_buffers=False)),
        "AcceleratorPool h100",
        "spec.prewarm.method",
        "nodes come with the replicas",
        id="a buffer where there is no definition",
    ),
    pytest.param(
        lambda: replace(_warming("CapacityBuffer", karpenter=_karpenter(version=(1, 13, 0))), kubernetes=(1, 35, 0)),
        "AcceleratorPool h100",
        "spec.prewarm.method",
        "nodes come with the replicas",
        id="a buffer for which Karpenter is too old",
    ),
    pytest.param(
        lambda: _warming("CapacityBuffer", karpenter=_karpenter(feature_gates="NodeRepair=true")),
        "AcceleratorPool h100",
        "spec.prewarm.method",
        "nodes come with the replicas",
        id="a buffer whose feature gate is off",
    ),
    pytest.param(
        lambda: _warming("PlaceholderPods", **_placeholders(accelerators=None)),
        "AcceleratorPool h100",
        "spec.prewarm.placeholderRef",
        "no such Deployment",
        id="placeholders that are not there",
    ),
    pytest.param(
        lambda: _warming("PlaceholderPods", **_placeholders(placement=PodPlacement())),
        "Deployment inference/warm",
        "spec.template.spec (nodeSelector, affinity, tolerations)",
        "never land on NodePool od",
        id="placeholders that never land on the nodes",
    ),
    pytest.param(
        lambda: _warming("PlaceholderPods", **_placeholders(priority_class="")),
        "Deployment inference/warm",
        "spec.template.spec.priorityClassName",
        "replicas do not take their place",
        id="placeholders that do not give way",
    ),
    pytest.param(
        lambda: _warming("PlaceholderPods", **_placeholders(priority_class="low")),
        "PriorityClass low",
        "value",
        "for empty and removes it",
        id="placeholders that Karpenter does not see",
    ),
    pytest.param(
        lambda: _survey(pool={"spec/split": None}),
        "AcceleratorPool h100",
        "spec.split",
        "gets no node",
        id="a spot NodePool without a split",
    ),
    pytest.param(
        lambda: _survey(pool={"spec/split": {"spotCapPercent": 30}}, scaler={"spec/minReplicas": 3}),
        "AcceleratorPool h100",
        "spec.split",
        "at least 70 % of 3 nodes is 3; spot begins at 4 nodes",
        id="a cap on spot that leaves none at the minimum",
    ),
    pytest.param(
        lambda: _survey(od={"spec/disruption/consolidationPolicy": "WhenEmptyOrUnderutilized"}),
        "NodePool od",
        "spec.disruption.consolidationPolicy",
        "AcceleratorPool h100 is Interactive: nodes whose replicas work are emptied too",
        id="consolidation that moves serving pods",
    ),
    pytest.param(
        lambda: _survey(od={"spec/disruption/consolidateAfter": "5m"}),
        "NodePool od",
        "spec.disruption.consolidateAfter",
        "a node goes 25 min sooner, which saves 3.33 accelerator-hours",
        id="interactive nodes that go too soon",
    ),
    pytest.param(
        lambda: _survey(od={"spec/disruption/budgets": [{"nodes": "0"}]}),
        "NodePool od",
        "spec.disruption.budgets",
        "no node is ever disrupted",
        id="a disruption budget that is always closed",
    ),
    pytest.param(
        lambda: _survey(target={"spec/template/spec/terminationGracePeriodSeconds": 600}),
        "Deployment inference/vllm",
        "spec.template.spec.terminationGracePeriodSeconds",
        "cut off without a word",
        id="a grace period that is longer than spot's notice",
    ),
    pytest.param(
        lambda: _with_target(budgets=(read_disruption_budget(BUDGET),)),
        "PodDisruptionBudget inference/vllm",
        "spec",
        "nodes are never drained, and on spot they die with the node",
        id="a disruption budget that blocks every eviction",
    ),
    pytest.param(
        lambda: _with_target(
            budgets=tuple(PodDisruptionBudget(name, 1, "maxUnavailable 1", False) for name in ("n/a", "n/b"))
        ),
        "Deployment inference/vllm",
        "PodDisruptionBudgets",
        "cannot be evicted at all",
        id="two disruption budgets for the same pods",
    ),
    pytest.param(
        lambda: _survey(target={"spec/template/metadata/annotations/karpenter.sh\\/do-not-disrupt": "true"}),
        "Deployment inference/vllm",
        "spec.template.metadata.annotations[karpenter.sh/do-not-disrupt]",
        "its pods die with the node",
        id="pods on spot that may not be disrupted",
    ),
    pytest.param(
        lambda: _survey(od={"spec/template/spec/terminationGracePeriod": "1m"}),
        "NodePool od",
        "spec.template.spec.terminationGracePeriod",
        "have 100 s of grace",
        id="a node that ends before its pods may",
    ),
    pytest.param(
        lambda: _draining(target={}),
        "Deployment inference/vllm",
        "spec.template.metadata.labels[tokenscaler.io/serving]",
        "no replica is drained",
        id="replicas that are to be drained have no label for it",
    ),
    pytest.param(
        lambda: _draining(target=SERVING | {"spec/selector/matchLabels/tokenscaler.io\\/serving": "true"}),
        "Deployment inference/vllm",
        "spec.selector",
        "would be replaced and left to itself",
        id="a Deployment that selects by the label",
    ),
    pytest.param(
        lambda: _draining(chat={"app": "vllm"}),
        "Service inference/chat",
        "spec.selector",
        "goes on sending requests to replicas of Deployment inference/vllm",
        id="a Service that does not select by the label",
    ),
]


@pytest.mark.parametrize(("survey", "about", "field", "consequence"), CASES)
def test_what_is_wrong_is_found_and_nothing_else(
    survey: Callable[[], Survey], about: str, field: str, consequence: str
) -> None:
    findings = judge(survey())

    # Once for each NodePool that the pods are to land on.
    assert {(each.object, each.field) for each in findings} == {(about, field)}, findings
    for finding in findings:
        assert consequence in finding.consequence
        assert finding.value
        assert finding.fix


NO_FINDING = [
    pytest.param(_split_targets, id="two targets, each on its kind of node"),
    pytest.param(
        lambda: _split_targets(on_demand={"spec/template/spec/terminationGracePeriodSeconds": 600}),
        id="a long grace period on demand",
    ),
    pytest.param(lambda: _warming("CapacityBuffer"), id="a buffer that Karpenter serves"),
    pytest.param(lambda: _warming("PlaceholderPods", **_placeholders()), id="placeholders that hold nodes"),
    pytest.param(lambda: _with_daemon(WATCHER, hop_limits={"gpu": 2}), id="a watcher that may go two hops"),
    pytest.param(
        lambda: _with_daemon(SurveyedDaemon("a/b", PodRequests(accelerators=8))), id="a DaemonSet that lands elsewhere"
    ),
    pytest.param(
        lambda: replace(_survey(pool={"spec/mode": "Observe", "spec/latencyClass": None}), rights={}, targets={}),
        id="an observed pool that nobody uses",
    ),
    pytest.param(lambda: replace(_survey(), karpenter=Karpenter()), id="a Karpenter whose version is not known"),
    pytest.param(
        lambda: _survey(od={"metadata/managedFields": [APPLIED[0] | {"manager": "kubectl-edit"}]}),
        id="limits that were once set by hand",
    ),
    pytest.param(lambda: _with_target(is_known=False, autoscalers=(), budgets=()), id="a target that was not found"),
    pytest.param(_draining, id="replicas that are drained, and no Service of which anybody knows"),
    pytest.param(
        lambda: _draining(
            chat={"app": "vllm", "tokenscaler.io/serving": "true"}, scrape={"app": "vllm"}, other={"app": "other"}
        ),
        id="a Service that selects by the label, beside one that scrapes",
    ),
    pytest.param(
        lambda: _survey(od={"spec/disruption/budgets": [{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "1"}]}),
        id="a disruption budget that is closed for one reason",
    ),
]


@pytest.mark.parametrize("survey", NO_FINDING)
def test_nothing_is_found_in(survey: Callable[[], Survey]) -> None:
    assert judge(survey()) == ()


@pytest.mark.parametrize(("text", "version"), [("v1.14.1", (1, 14, 1)), ("1.37", (1, 37, 0)), ("latest", None)])
def test_versions_are_read(text: str, version: tuple[int, int, int] | None) -> None:
    assert version_of(text) == version


def test_a_target_without_template_has_nothing_but_its_scaler() -> None:
    scaler = parse_inference_scaler(SCALER)
    assert isinstance(scaler, InferenceScaler)
    assert read_target(scaler, {"metadata": {"name": "x"}}) == ServingTarget(scaler, scaler.spec.first_target_ref)
