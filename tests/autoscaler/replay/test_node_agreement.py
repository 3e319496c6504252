"""AcceleratorPools of a policy's file on a fleet's nodes: what is replayed, what is assumed, what is refused."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from autoscaler.commands.replay import replay_policies
from autoscaler.replay.policy_files import PoliciesRefused, ReplayedPolicy, read_policies
from autoscaler.replay.replay_request import ReplayRequest
from tests.autoscaler.replay.test_node_description import FLEET

POOL = """\
apiVersion: tokenscaler.io/v1alpha1
kind: AcceleratorPool
metadata: {name: h100}
spec:
  mode: Manage
  nodePools: {onDemand: od, spot: spot}
  nodeShape: {accelerators: 8, cpu: 192}
  split: {onDemandFloorPercent: 20}
"""
SCALER = """\
apiVersion: tokenscaler.io/v1alpha1
kind: InferenceScaler
metadata: {name: chat, namespace: inference}
spec:
  mode: Scale
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm-chat}
  engine: vllm
  minReplicas: 1
  maxReplicas: 8
  signals: {tokensInFlight: {}}
  acceleratorPoolRef: {name: h100}
"""


def policies(directory: Path, text: str) -> tuple[ReplayedPolicy, ...] | PoliciesRefused:
    path = directory / "policy.yaml"
    path.write_text(text)
    return read_policies([path])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(f"{POOL}---\n{SCALER}", ["h100"], id="the pool that it refers to"),
        pytest.param(f"{SCALER}---\n{POOL}", ["h100"], id="wherever that stands in the file"),
        pytest.param(f"{POOL.replace('h100', 'a100')}---\n{SCALER}", [], id="no other pool"),
        pytest.param(f"{POOL}---\n{SCALER.replace('  acceleratorPoolRef: {name: h100}', '')}", [], id="no reference"),
    ],
)
def test_a_policy_has_the_accelerator_pool_of_its_file_that_it_refers_to(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    found = policies(tmp_path, text)
    assert not isinstance(found, PoliciesRefused)
    (policy,) = found
    assert [each.pool.name for each in policy.accelerator_pools] == names


def test_a_pool_that_cannot_be_read_is_refused_with_its_line(tmp_path: Path) -> None:
    found = policies(tmp_path, f"{SCALER}---\n{POOL.replace('mode: Manage', 'mode: Own')}")
    assert isinstance(found, PoliciesRefused)
    assert found.problems[0].startswith(f'{tmp_path / "policy.yaml"}, line 17: spec.mode is "Own"; it must be')


class Ran:
    """A short replay: how it ended and what it said."""

    def __init__(self, directory: Path, policy: str, fleet: str | None) -> None:
        path, trace = directory / "policy.yaml", directory / "trace.csv"
        path.write_text(policy)
        rows = [f"{at},1,500,50" for at in range(1, 40)]
        trace.write_text("\n".join(["timestamp_s,value,input_tokens,output_tokens", *rows]))
        named = None
        if fleet is not None:
            named = str(directory / "fleet.yaml")
            Path(named).write_text(fleet)
        screen = StringIO()
        request = ReplayRequest(policies=(path,), trace=str(trace), fleet=named)
        self.code = replay_policies(request, Console(file=screen, width=250))
        self.screen = screen.getvalue()


@pytest.mark.parametrize(
    ("policy", "fleet", "assumed"),
    [
        pytest.param(
            f"{POOL}---\n{SCALER}",
            None,
            "chat: AcceleratorPool h100 is left out, as the fleet has no nodes; describe them under nodes",
            id="a fleet without nodes",
        ),
        pytest.param(
            f"{POOL.replace('Manage', 'Observe')}---\n{SCALER}",
            FLEET,
            "chat: AcceleratorPool h100 is in mode Observe; replayed as if it were Manage",
            id="a pool that only observes",
        ),
        pytest.param(
            POOL.replace("Manage", "Observe").replace("  nodeShape: {accelerators: 8, cpu: 192}\n", "")
            + f"---\n{SCALER}",
            FLEET,
            "chat: AcceleratorPool h100 has no nodeShape, so limits stay as the FLEET.yaml states them",
            id="a pool that cannot be managed",
        ),
        pytest.param(SCALER, FLEET, "chat: no AcceleratorPool; its nodes have the limits of the FLEET.yaml", id="none"),
        pytest.param(
            SCALER,
            FLEET.replace('      limits: {nvidia.com/gpu: "16", cpu: "384"}\n', ""),
            "chat: no AcceleratorPool; its nodes have no limits",
            id="none, and no limits",
        ),
    ],
)
def test_what_is_assumed_is_named(tmp_path: Path, policy: str, fleet: str | None, assumed: str) -> None:
    ran = Ran(tmp_path, policy, fleet)
    assert ran.code == 0
    assert f"assumed: {assumed}" in ran.screen


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        pytest.param(
            POOL.replace("onDemand: od", "onDemand: other") + f"---\n{SCALER}",
            "policy.yaml, line 1: AcceleratorPool h100 names NodePool other, and the fleet has od, spot; add it to",
            id="a NodePool that the fleet does not have",
        ),
        pytest.param(
            POOL.replace("{onDemand: od, spot: spot}", "{onDemand: spot}").replace(
                "  split: {onDemandFloorPercent: 20}\n", ""
            )
            + f"---\n{SCALER}",
            "line 1: AcceleratorPool h100 takes NodePool spot for on-demand, and in the FLEET.yaml it is spot; correct",
            id="spot taken for on-demand",
        ),
        pytest.param(
            POOL.replace("accelerators: 8", "accelerators: 4") + f"---\n{SCALER}",
            "a node has nvidia.com/gpu 4 there and 8 in the FLEET.yaml; correct the one that is wrong",
            id="another shape of a node",
        ),
        pytest.param(
            f"{POOL}---\n{SCALER}  acceleratorsPerReplica: 4\n",
            "chat: acceleratorsPerReplica is 4, and a replica of llama-3.3-70b-fp8-2xh100-vllm has 2; correct it, or",
            id="another size of a replica",
        ),
    ],
)
def test_what_policy_and_fleet_say_differently_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str, problem: str
) -> None:
    assert Ran(tmp_path, policy, FLEET).code == 2
    assert problem in capsys.readouterr().err
