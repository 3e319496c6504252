"""What the metadata of a ScaledObject's trigger means."""

from __future__ import annotations

import pytest

from autoscaler.external_metrics.values import DESIRED_REPLICAS
from autoscaler.keda_external_scaler.trigger import InvalidTrigger, Trigger, read_trigger

WAITING = {"metric": "waiting-requests", "threshold": "4"}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param(
            {}, Trigger("inference", "llama", DESIRED_REPLICAS, 1.0, 0.0), id="nothing said is the decided count"
        ),
        pytest.param(
            {"inferenceScaler": "chat"},
            Trigger("inference", "chat", DESIRED_REPLICAS, 1.0, 0.0),
            id="the InferenceScaler may have another name than the ScaledObject",
        ),
        pytest.param(
            {
                "scalerAddress": "tokenscaler:9443",
                "enableTLS": "true",
                "unsafeSsl": "false",
                "scalerAddressFromEnv": "",
            },
            Trigger("inference", "llama", DESIRED_REPLICAS, 1.0, 0.0),
            id="what KEDA reads itself is no business of ours",
        ),
        pytest.param(
            {**WAITING, "activationThreshold": " 2.5 "},
            Trigger("inference", "llama", "waiting-requests", 4.0, 2.5),
            id="a signal with its share and its activation",
        ),
        pytest.param(
            {"threshold": "1"},
            Trigger("inference", "llama", DESIRED_REPLICAS, 1.0, 0.0),
            id="a decided count by the share of one",
        ),
    ],
)
def test_a_trigger_is_read(metadata: dict[str, str], expected: Trigger) -> None:
    assert read_trigger("inference", "llama", metadata) == expected


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        pytest.param({"treshold": "4"}, "metadata.treshold is not known", id="a misspelt key is refused"),
        pytest.param({"metric": "waiting-requests"}, "metadata.threshold is missing", id="a signal needs a share"),
        pytest.param({"threshold": "2"}, "can only be 1", id="a decided count cannot be divided"),
        pytest.param(WAITING | {"threshold": "0"}, "not from 0.001", id="no share of zero"),
        pytest.param(WAITING | {"threshold": "nan"}, "is not a number", id="no share of NaN"),
        pytest.param(WAITING | {"threshold": "1e30"}, "to 1e+15", id="no share that no quantity can be"),
        pytest.param(WAITING | {"threshold": "0.0004"}, "not from 0.001", id="no share that a quantity makes zero"),
        pytest.param(WAITING | {"threshold": "-1"}, "zero or more", id="no negative share"),
        pytest.param(WAITING | {"activationThreshold": "lots"}, "'lots' is not", id="no activation by a word"),
    ],
)
def test_a_trigger_that_means_nothing_names_its_field(metadata: dict[str, str], message: str) -> None:
    trigger = read_trigger("inference", "llama", metadata)

    assert isinstance(trigger, InvalidTrigger)
    assert message in trigger.message


def test_a_scaled_object_without_a_name_is_refused() -> None:
    assert isinstance(read_trigger("inference", "", {}), InvalidTrigger)
