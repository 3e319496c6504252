"""What may the controller's account do of what it must? Asked of the API server in its name.

Nothing is changed: one patch that changes nothing is sent with dryRun=All.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autoscaler.api.accelerator_pool import AcceleratorPool, AcceleratorPoolMode
from autoscaler.api.prewarm import PrewarmMethod
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.node_pool_checks.survey_types import MissingRight, PatchRight, SurveyedNodePool

KARPENTER_PATH = "/apis/karpenter.sh/v1"

_UNKNOWN_LAUNCHES = "a NodePool that has no capacity to buy is not noticed: pods wait there for nodes that never come"
_UNKNOWN_DAEMONS = "what DaemonSets take of a node is not reckoned: limits may hold too few nodes"
_NO_BUFFER = "no CapacityBuffer is made or changed: nodes come with the replicas"
MANAGING_RIGHTS: tuple[tuple[MissingRight, dict[str, str]], ...] = (
    (
        MissingRight("list", "nodeclaims.karpenter.sh", _UNKNOWN_LAUNCHES, "deploy/overlays/node-pools"),
        {"group": "karpenter.sh", "resource": "nodeclaims"},
    ),
    (
        MissingRight("list", "daemonsets.apps", _UNKNOWN_DAEMONS, "deploy/overlays/node-pools"),
        {"group": "apps", "resource": "daemonsets"},
    ),
)
BUFFER_RIGHTS: tuple[tuple[MissingRight, dict[str, str]], ...] = (
    *(
        (
            MissingRight(verb, "capacitybuffers.autoscaling.x-k8s.io", _NO_BUFFER, "deploy/overlays/capacity-buffers"),
            {"group": "autoscaling.x-k8s.io", "resource": "capacitybuffers"},
        )
        for verb in ("list", "create", "patch", "delete")
    ),
    (
        MissingRight("create", "podtemplates", _NO_BUFFER, "deploy/overlays/capacity-buffers"),
        {"group": "", "resource": "podtemplates"},
    ),
)


class AccountRights:
    """The rights of a ServiceAccount, NAMESPACE/NAME. `note` takes what could not be asked."""

    def __init__(self, connection: ApiConnection, account: str, note: Callable[[str, ApiFailure], None]) -> None:
        self._connection = connection
        self._account = account
        self._note = note

    def to_patch(self, node_pools: Sequence[SurveyedNodePool]) -> Mapping[str, PatchRight]:
        """Whether it may patch each NodePool, by its name, and what came of trying."""
        return {each.name: PatchRight(self._may_patch(each), self._dry_run(each)) for each in node_pools}

    def missing(self, pools: Sequence[AcceleratorPool]) -> tuple[MissingRight, ...]:
        """Of what is needed beside patching NodePools; nothing is asked where nothing is managed."""
        needed: list[tuple[MissingRight, dict[str, Any]]] = []
        if any(pool.spec.mode is AcceleratorPoolMode.MANAGE for pool in pools):
            needed += MANAGING_RIGHTS
        if any(_wants_buffer(pool) for pool in pools):
            namespace = self._account.partition("/")[0]
            needed += [(right, {**what, "namespace": namespace}) for right, what in BUFFER_RIGHTS]
        return tuple(right for right, what in needed if self._may({**what, "verb": right.verb}) is False)

    def _may_patch(self, node_pool: SurveyedNodePool) -> bool | None:
        attributes = {"group": "karpenter.sh", "resource": "nodepools", "name": node_pool.name, "verb": "patch"}
        return self._may(attributes)

    def _may(self, attributes: Mapping[str, str]) -> bool | None:
        """Whether the account may do that; None where it could not be asked, which is told."""
        namespace, _, name = self._account.partition("/")
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{namespace}:{name}",
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
                "resourceAttributes": dict(attributes),
            },
        }
        answer = self._connection.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        if isinstance(answer, ApiFailure):
            self._note(f"the rights of ServiceAccount {self._account}", answer)
            return None
        return bool((answer.get("status") or {}).get("allowed"))

    def _dry_run(self, node_pool: SurveyedNodePool) -> str:
        """What a patch that changes nothing comes to; it is refused where admission refuses it, or our own right."""
        path = f"{KARPENTER_PATH}/nodepools/{node_pool.name}"
        answer = self._connection.patch(path, {"spec": {"limits": dict(node_pool.limits)}}, query={"dryRun": "All"})
        return answer.message if isinstance(answer, ApiFailure) else ""


def _wants_buffer(pool: AcceleratorPool) -> bool:
    held = pool.spec.held_ready
    return held is not None and held.method is PrewarmMethod.CAPACITY_BUFFER
