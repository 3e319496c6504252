from __future__ import annotations

from typing import Any

import pytest

from autoscaler.api.node_template import read_node_template, read_placement

TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
NODE_POOL = {
    "metadata": {"name": "od"},
    "spec": {
        "template": {
            "metadata": {"labels": {"team": "search"}},
            "spec": {
                "taints": [TAINT, {"key": "soft", "effect": "PreferNoSchedule"}],
                "requirements": [
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["a", "b"]},
                ],
            },
        }
    },
}
EVERYWHERE: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}


def wants(key: str, operator: str, *values: str) -> dict[str, Any]:
    expression = {"key": key, "operator": operator, "values": list(values)}
    terms = [{"matchExpressions": [expression]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return EVERYWHERE | {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize(
    ("pod", "lands"),
    [
        pytest.param({}, False, id="a taint that it does not tolerate"),
        pytest.param(EVERYWHERE, True, id="it tolerates everything"),
        pytest.param({"tolerations": [{"key": "nvidia.com/gpu", "value": "true"}]}, True, id="it tolerates that taint"),
        pytest.param(
            {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"}]},
            False,
            id="it tolerates another effect",
        ),
        pytest.param(EVERYWHERE | {"nodeSelector": {"team": "search"}}, True, id="a label of the NodePool"),
        pytest.param(EVERYWHERE | {"nodeSelector": {"team": "ads"}}, False, id="another value of it"),
        pytest.param(EVERYWHERE | {"nodeSelector": {"karpenter.sh/nodepool": "od"}}, True, id="the NodePool itself"),
        pytest.param(EVERYWHERE | {"nodeSelector": {"karpenter.sh/nodepool": "x"}}, False, id="another NodePool"),
        pytest.param(EVERYWHERE | {"nodeSelector": {"logging": "on"}}, False, id="a label that its nodes lack"),
        pytest.param(EVERYWHERE | {"nodeSelector": {"kubernetes.io/os": "linux"}}, True, id="a label that nodes get"),
        pytest.param(wants("node.kubernetes.io/instance-type", "In", "b", "c"), True, id="one of its types"),
        pytest.param(wants("node.kubernetes.io/instance-type", "In", "c"), False, id="none of its types"),
        pytest.param(wants("kubernetes.io/arch", "NotIn", "amd64"), False, id="not its architecture"),
        pytest.param(wants("eks.amazonaws.com/compute-type", "NotIn", "fargate"), True, id="not what it may be"),
        pytest.param(wants("team", "Exists"), True, id="a label that is there"),
        pytest.param(wants("logging", "Exists"), False, id="a label that is not"),
        pytest.param(wants("team", "DoesNotExist"), False, id="not a label that is there"),
        pytest.param(wants("logging", "DoesNotExist"), True, id="not a label that is not there"),
    ],
)
def test_which_pods_land_on_nodes_of_a_node_pool(pod: dict[str, Any], lands: bool) -> None:
    assert read_node_template(NODE_POOL).admits(read_placement(pod)) is lands


def test_one_of_several_terms_is_enough() -> None:
    terms = [{"matchExpressions": [{"key": "team", "operator": "In", "values": [team]}]} for team in ("ads", "search")]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = EVERYWHERE | {"affinity": {"nodeAffinity": required}}
    assert read_node_template(NODE_POOL).admits(read_placement(pod))
