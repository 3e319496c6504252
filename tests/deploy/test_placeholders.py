"""The placeholders that are shipped give way at once, and hold their nodes until then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
# From here on Karpenter takes a pod for one that costs nothing to evict, and its node for empty.
COSTS_NOTHING = -(2**25)


def test_placeholders_hold_their_nodes_and_give_way() -> None:
    documents = yaml.safe_load_all((DEPLOY / "placeholder-pods" / "placeholders.yaml").read_text())
    by_kind: dict[str, dict[str, Any]] = {document["kind"]: document for document in documents}
    priority, deployment = by_kind["PriorityClass"], by_kind["Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    assert COSTS_NOTHING < priority["value"] < 0
    assert priority["preemptionPolicy"] == "Never"
    assert pod["priorityClassName"] == priority["metadata"]["name"]
    assert (deployment["spec"]["replicas"], pod["terminationGracePeriodSeconds"]) == (0, 0)
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}, "a whole node"


def test_the_example_names_the_placeholders_that_are_shipped() -> None:
    documents = yaml.safe_load_all((DEPLOY / "examples" / "two-capacity-types.yaml").read_text())
    pool = next(document for document in documents if document["kind"] == "AcceleratorPool")
    shipped = yaml.safe_load_all((DEPLOY / "placeholder-pods" / "placeholders.yaml").read_text())
    deployment = next(document for document in shipped if document["kind"] == "Deployment")
    reference = pool["spec"]["prewarm"]["placeholderRef"]
    assert reference == {name: deployment["metadata"][name] for name in ("namespace", "name")}
