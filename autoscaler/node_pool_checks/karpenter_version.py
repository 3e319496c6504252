"""Is Karpenter there, of a version that works with this Kubernetes and does what the NodePools rely on?"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.finding import Finding
from autoscaler.node_pool_checks.survey_types import CAPACITY_TYPE_KEY, Survey, SurveyedNodePool, Version

AWS_GROUP = "karpenter.k8s.aws"

# The first Karpenter that works with a minor version of Kubernetes, by Karpenter's compatibility matrix.
FIRST_FOR_KUBERNETES: dict[int, Version] = {
    31: (1, 0, 5),
    32: (1, 2, 0),
    33: (1, 5, 0),
    34: (1, 6, 0),
    35: (1, 9, 0),
    36: (1, 13, 0),
}
# Before it the key `nodes` of limits was not looked at.
NODES_LIMIT_SINCE: Version = (1, 11, 0)


def check_karpenter_version(survey: Survey) -> Iterator[Finding]:
    """Findings about Karpenter itself; about its version only where its Deployment was found."""
    karpenter = survey.karpenter
    if not karpenter.serves_v1:
        yield Finding(
            "CustomResourceDefinition nodepools.karpenter.sh",
            "spec.versions",
            "no v1",
            "there is no NodePool whose limits could be set, and mode Manage does nothing",
            "install Karpenter 1.0 or later, or take mode: Observe",
        )
        return
    if karpenter.version is None:
        return
    if survey.kubernetes is not None:
        minor = min(survey.kubernetes[1], max(FIRST_FOR_KUBERNETES))
        first = FIRST_FOR_KUBERNETES.get(minor)
        if first is not None and karpenter.version < first:
            yield Finding(
                "Deployment of Karpenter",
                "app.kubernetes.io/version",
                _words(karpenter.version),
                f"it is not made for Kubernetes {survey.kubernetes[0]}.{survey.kubernetes[1]}: nodes may not come",
                f"update Karpenter to {_words(first)} or later",
            )
    if karpenter.version < NODES_LIMIT_SINCE:
        for _, node_pool in survey.pairs():
            if "nodes" in node_pool.limits:
                yield Finding(
                    node_pool.object,
                    "spec.limits.nodes",
                    node_pool.limits["nodes"],
                    f"Karpenter {_words(karpenter.version)} does not look at it, so it caps nothing",
                    f"limit nvidia.com/gpu, or update Karpenter to {_words(NODES_LIMIT_SINCE)} or later",
                )


def check_interruptions(survey: Survey) -> Iterator[Finding]:
    """Whether Karpenter hears of spot interruptions: on AWS by a queue that somebody has to set up."""
    yield from _deaf_watchers(survey)
    if survey.karpenter.has_interruption_queue is not False:
        return
    for _, node_pool in survey.pairs():
        if node_pool.node_class_group == AWS_GROUP and buys_spot(node_pool):
            yield Finding(
                node_pool.object,
                f"spec.template.spec.requirements[{CAPACITY_TYPE_KEY}]",
                "spot, and Karpenter has no interruption queue",
                "nobody hears of the two minutes' notice: nodes die with the requests on them, and their replacement "
                "begins afterwards",
                "set INTERRUPTION_QUEUE (settings.interruptionQueue of the chart) with its EventBridge rules, or run a "
                "drain watcher on the nodes",
            )


def _deaf_watchers(survey: Survey) -> Iterator[Finding]:
    """A drain watcher on the pod network is one hop too far from the metadata service, where one hop is allowed."""
    for _, node_pool in survey.pairs():
        hops = survey.hop_limits.get(node_pool.node_class)
        for daemon in survey.daemons:
            is_deaf = daemon.is_drain_watcher and not daemon.uses_host_network and hops is not None and hops < 2
            if is_deaf and node_pool.template.admits(daemon.placement):
                yield Finding(
                    f"DaemonSet {daemon.name}",
                    "spec.template.spec.hostNetwork",
                    f"false, and EC2NodeClass {node_pool.node_class} allows {hops} hop to the metadata service",
                    "it never hears of a spot notice, and is not Ready",
                    "hostNetwork: true",
                    (f"spec.metadataOptions.httpPutResponseHopLimit 2 of EC2NodeClass {node_pool.node_class}",),
                )


def buys_spot(node_pool: SurveyedNodePool) -> bool:
    """Whether a NodePool may buy spot: also where it does not say, since nothing forbids it then."""
    return "spot" in node_pool.values.get(CAPACITY_TYPE_KEY, ("spot",))


def _words(version: Version) -> str:
    return ".".join(map(str, version))
