"""A policy whose file has AcceleratorPools is tuned with them, on a fleet that has nodes."""

from __future__ import annotations

from pathlib import Path

from autoscaler.replay.replay_request import ReplayRequest
from autoscaler.tuning.contender import Variant, replayed
from autoscaler.tuning.scenes import Part
from autoscaler.tuning.tuning_input import InputRefused, TuneRequest, TuningInput, read_input
from tests.autoscaler.replay.test_node_agreement import POOL, SCALER
from tests.autoscaler.replay.test_node_description import FLEET


def read(directory: Path, policy: str, fleet: str = FLEET) -> TuningInput | InputRefused:
    files = {"policy.yaml": policy, "fleet.yaml": fleet}
    rows = [f"{at},1,500,50" for at in range(1, 200)]
    files["trace.csv"] = "\n".join(["timestamp_s,value,input_tokens,output_tokens", *rows])
    for name, text in files.items():
        (directory / name).write_text(text)
    path = directory / "policy.yaml"
    load = ReplayRequest((path,), trace=str(directory / "trace.csv"), fleet=str(directory / "fleet.yaml"))
    out, search = directory / "tuned.yaml", ("behavior.scaleUp.stabilizationWindowSeconds=0..60",)
    return read_input(TuneRequest(path, (load,), out, directory / "t.html", directory / "study", search))


def test_every_variant_has_the_accelerator_pools_of_the_file(tmp_path: Path) -> None:
    found = read(tmp_path, f"{POOL}---\n{SCALER}")
    assert isinstance(found, TuningInput), found
    pools = found.policy.replayed.accelerator_pools
    assert [each.pool.name for each in pools] == ["h100"]
    (scene,) = found.scenes
    stage = scene.stage(Part.SEARCH)
    drawn = stage.load.draw(1)
    policy = replayed(Variant(found.policy.content, {}, pools), stage, drawn, 1)
    assert policy is not None
    result = stage.run(policy, drawn, 1)
    assert result.nodes is not None
    # It has limited spot, which the FLEET.yaml leaves without limits.
    assert any(change.node_pool == "spot" for change in result.nodes.limit_changes)


def test_another_accelerator_pool_is_another_study(tmp_path: Path) -> None:
    def subject(pool: str) -> str:
        found = read(tmp_path, f"{pool}---\n{SCALER}")
        assert isinstance(found, TuningInput), found
        policy = tmp_path / "policy.yaml"
        load = ReplayRequest((policy,), trace="t.csv")
        return found.subject(TuneRequest(policy, (load,), policy, policy, policy))["policy"]

    assert subject(POOL) != subject(POOL.replace("20}", "50}"))


def test_what_policy_and_fleet_say_differently_is_refused(tmp_path: Path) -> None:
    refused = read(tmp_path, f"{POOL.replace('onDemand: od', 'onDemand: other')}---\n{SCALER}")
    assert isinstance(refused, InputRefused)
    assert any("names NodePool other, and the fleet has od, spot" in problem for problem in refused.problems)


def test_what_is_assumed_of_nodes_is_named(tmp_path: Path) -> None:
    found = read(tmp_path, SCALER)
    assert isinstance(found, TuningInput), found
    assert "chat: no AcceleratorPool; its nodes have the limits of the FLEET.yaml" in found.assumptions
