"""The example of a drain watcher starts the program that there is, with the rights that it uses."""

from __future__ import annotations

from pathlib import Path

import yaml
from typer.testing import CliRunner

from autoscaler.cli import app

EXAMPLE = Path(__file__).parents[2] / "deploy" / "examples" / "drain-watcher" / "drain-watcher.yaml"
DOCUMENTS = {each["kind"]: each for each in yaml.safe_load_all(EXAMPLE.read_text())}


def test_its_arguments_are_known() -> None:
    (container,) = DOCUMENTS["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    command, *options = container["args"]
    known = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
    assert [option for option in options if option.partition("=")[0] not in known] == []
    assert {each["name"] for each in container["env"]} == {"TOKENSCALER_NODE"}


def test_its_rights_are_to_read_and_to_patch_nodes() -> None:
    assert DOCUMENTS["ClusterRole"]["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}]
    assert (
        DOCUMENTS["DaemonSet"]["spec"]["template"]["spec"]["serviceAccountName"]
        == (DOCUMENTS["ServiceAccount"]["metadata"]["name"])
    )
