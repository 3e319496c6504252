"""A story in simulation: spot cannot be had for a while, and then one target goes back to it node by node."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from autoscaler.commands.replay import replay_policies
from autoscaler.decision_log import read_log
from autoscaler.decision_record import DecisionRecord, differences
from autoscaler.replay.replay_request import ReplayRequest

HOLDS = "llama"
FLEET = """
profile: llama-3.3-70b-fp8-2xh100-vllm
coldStart: [{name: node, medianSeconds: 60}, {name: load, medianSeconds: 60}]
objectives: {timeToFirstTokenSeconds: 8, interTokenLatencySeconds: 0.1}
nodes:
  nodeShape: {accelerators: 4}
  dollarsPerAcceleratorHour: {onDemand: 6, spot: 2}
  nodePools:
    - {name: od, capacityType: on-demand, weight: 50, limits: {nvidia.com/gpu: "12"}, consolidateAfterSeconds: 60}
    - name: spot
      capacityType: spot
      weight: 10
      limits: {nvidia.com/gpu: "0"}
      consolidateAfterSeconds: 60
      outOfCapacity: [{atSeconds: 0, lastsSeconds: 900}]
"""
# Six replicas of half a node whatever the load: two of the three nodes could be on spot.
POLICY = """
apiVersion: tokenscaler.io/v1alpha1
kind: AcceleratorPool
metadata: {name: h100}
spec:
  mode: Manage
  nodePools: {onDemand: od, spot: spot}
  nodeShape: {accelerators: 4}
  split: {onDemandFloorPercent: 20}
---
apiVersion: tokenscaler.io/v1alpha1
kind: InferenceScaler
metadata: {name: llama, namespace: inference}
spec:
  mode: Scale
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm}
  engine: vllm
  minReplicas: 6
  maxReplicas: MAXIMUM
  signals: {waitingRequests: {perReplica: 4}}
  behavior: {scaleDown: {stabilizationWindowSeconds: 120}}
  scaleDownVictims: WholeNodes
  acceleratorPoolRef: {name: h100}
  acceleratorsPerReplica: 2
"""


def replayed(directory: Path, maximum: int) -> tuple[dict[str, Any], list[DecisionRecord]]:
    """Less than an hour of little load: the figures of the policy, and its records."""
    rows = "".join(f"{at}.0,1,2000,200\n" for at in range(0, 3300, 4))
    files = {
        "fleet.yaml": FLEET,
        "policy.yaml": POLICY.replace("MAXIMUM", str(maximum)),
        "trace.csv": f"timestamp_s,value,input_tokens,output_tokens\n{rows}",
    }
    for name, text in files.items():
        (directory / name).write_text(text)
    request = ReplayRequest(
        policies=(directory / "policy.yaml",),
        trace=str(directory / "trace.csv"),
        fleet=str(directory / "fleet.yaml"),
        json_path=directory / "report.json",
        decisions_path=directory / "decisions.jsonl",
    )
    assert replay_policies(request, Console(file=StringIO())) == 0
    figures = json.loads((directory / "report.json").read_text())["policies"][HOLDS]
    records = [each for each in read_log(directory / "decisions.jsonl") if isinstance(each, DecisionRecord)]
    return figures, records


@pytest.mark.parametrize(
    ("maximum", "counts", "limit_nodes", "said"),
    [
        pytest.param(8, {6, 8}, 2, "all 8 serve: 2 more on spot take the place", id="room for two more: node by node"),
        pytest.param(6, {6}, 3, "the maximum and the accelerators leave 0", id="no room: it stays, and that is said"),
    ],
)
def test_what_went_on_demand_goes_back(
    tmp_path: Path, maximum: int, counts: set[int], limit_nodes: int, said: str
) -> None:
    figures, records = replayed(tmp_path, maximum)
    assert {record.decision.desired_replicas for record in records} == counts
    limits = [each["nodes"] for each in figures["limits"] if each["node_pool"] == "od"]
    assert [3, *limits][-1] == limit_nodes, "one on demand and one to spare, or the three that stand there"
    assert any(said in record.decision.message for record in records)
    assert min(record.input.replicas.serving for record in records) >= 6
    assert figures["dropped"] == 0
    spoken = [record for record in records if any(step.name == "nodeMove" for step in record.decision.steps)]
    assert [differences(record) for record in spoken if differences(record)] == [], (
        "decided again, the same comes of it"
    )
