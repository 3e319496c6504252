"""The policies that the scenarios run with: quick ones of their own, and shipped presets with shorter windows."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

Document = dict[str, Any]

EXAMPLES_DIRECTORY = Path(__file__).parents[3] / "deploy" / "examples"

WAITING_PER_REPLICA = 4


def quick_policy(
    *,
    minimum: int = 1,
    maximum: int = 32,
    down_window_seconds: int = 5,
    mode: str = "Scale",
    signals: Document | None = None,
    missing_data: Document | None = None,
) -> Document:
    """Waiting requests, four a replica; any step up at once; down after a short window, in one step."""
    policy: Document = {
        "mode": mode,
        "minReplicas": minimum,
        "maxReplicas": maximum,
        "signals": signals or {"waitingRequests": {"perReplica": WAITING_PER_REPLICA}},
        "behavior": {
            "scaleUp": {
                "stabilizationWindowSeconds": 0,
                "policies": [{"type": "Percent", "value": 900, "periodSeconds": 1}],
            },
            "scaleDown": {
                "stabilizationWindowSeconds": down_window_seconds,
                "policies": [{"type": "Percent", "value": 100, "periodSeconds": 1}],
            },
        },
        # Scale-down looks back over the cold start too, where that is longer than the window.
        "coldStart": {"priorSeconds": 1},
    }
    if missing_data is not None:
        policy["missingData"] = missing_data
    return policy


def preset(file_name: str) -> Document:
    """The spec of the InferenceScaler in a shipped example."""
    documents = yaml.safe_load_all((EXAMPLES_DIRECTORY / file_name).read_text())
    return next(document["spec"] for document in documents if document["kind"] == "InferenceScaler")


def in_shorter_time(spec: Document, factor: int) -> Document:
    """A copy whose windows and periods are so many times shorter; counts, percents and signals are as shipped."""
    shorter = copy.deepcopy(spec)
    for direction in shorter["behavior"].values():
        direction["stabilizationWindowSeconds"] = direction["stabilizationWindowSeconds"] // factor
        for policy in direction["policies"]:
            policy["periodSeconds"] = policy["periodSeconds"] // factor
    shorter["coldStart"] = {"priorSeconds": 1}
    return shorter
