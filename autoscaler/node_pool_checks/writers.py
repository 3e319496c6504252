"""Who else writes what we write: limits of NodePools, counts of targets? And may we?"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.api.accelerator_pool import AcceleratorPoolMode
from autoscaler.finding import Finding
from autoscaler.node_pool_checks.survey_types import Survey
from policies.parameters import Mode


def check_writers(survey: Survey) -> Iterator[Finding]:
    """Other writers of limits, where they are managed, and of counts, where they are scaled."""
    for pool, node_pool in survey.pairs():
        if pool.spec.mode is AcceleratorPoolMode.MANAGE and node_pool.limit_appliers:
            yield Finding(
                node_pool.object,
                "metadata.managedFields (spec.limits)",
                ", ".join(node_pool.limit_appliers),
                "whenever it applies its copy the limits fall back, and we leave them alone for minutes each time",
                "take spec.limits out of the applied file (Argo CD: ignoreDifferences), or mode: Observe",
            )
    for pool in survey.pools:
        for target in survey.targets_of(pool):
            if target.autoscalers and target.scaler.spec.mode is not Mode.EXTERNAL_METRIC:
                yield Finding(
                    target.object,
                    "spec.replicas",
                    f"steered by {', '.join(target.autoscalers)}",
                    f"InferenceScaler {'/'.join(target.scaler.key)} writes no count while another autoscaler does",
                    "delete the other one, or mode: ExternalMetric",
                )
            if target.replica_appliers and target.scaler.spec.mode in (Mode.SCALE, Mode.SCALE_UP_ONLY):
                yield Finding(
                    target.object,
                    "metadata.managedFields (spec.replicas)",
                    ", ".join(target.replica_appliers),
                    "whenever it applies its copy the count jumps back to what the file says",
                    "take spec.replicas out of the applied file",
                )


def check_rights(survey: Survey) -> Iterator[Finding]:
    """Whether the controller may patch the NodePools that it is to manage, and whether a patch is accepted."""
    for pool, node_pool in survey.pairs():
        right = survey.rights.get(node_pool.name)
        if right is None or pool.spec.mode is not AcceleratorPoolMode.MANAGE:
            continue
        if right.is_allowed is False:
            yield Finding(
                node_pool.object,
                f"verb patch for ServiceAccount {survey.account}",
                "not allowed",
                "its limits are never written: LimitsInStep is False, Forbidden",
                f"name {node_pool.name} in resourceNames of deploy/overlays/node-pools/role_node_pools.yaml",
            )
        if right.dry_run_problem:
            yield Finding(
                node_pool.object,
                "spec.limits (a patch with dryRun=All that changes nothing)",
                "refused",
                right.dry_run_problem,
                "mend what the API server, or an admission policy, says",
            )
    for missing in survey.missing_rights:
        yield Finding(
            f"ServiceAccount {survey.account}",
            f"verb {missing.verb} on {missing.resource}",
            "not allowed",
            missing.consequence,
            f"the role of {missing.granted_by}",
        )
