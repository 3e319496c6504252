from __future__ import annotations

from pathlib import Path

import yaml

from autoscaler.api.custom_resource_definition import custom_resource_definitions, render

FILE = Path(__file__).parents[3] / "deploy" / "crd" / "custom_resource_definitions.yaml"


def test_the_file_is_what_the_types_say() -> None:
    assert FILE.read_text() == render(), f"write it anew: tokenscaler crd > {FILE}"


def test_what_is_printed_is_what_is_meant() -> None:
    assert list(yaml.safe_load_all(render())) == list(custom_resource_definitions())


def test_the_columns_say_how_many_wanted_how_many_why_and_since_when() -> None:
    scalers, pools = custom_resource_definitions()
    columns = [
        [
            column["name"]
            for column in kind["spec"]["versions"][0]["additionalPrinterColumns"]
            if "priority" not in column
        ]
        for kind in (scalers, pools)
    ]
    assert columns == [
        ["Mode", "Target", "Ready", "Desired", "Reason", "Since", "Active", "Able", "Age"],
        ["Mode", "Nodes", "Present", "Wanted", "Limit", "Scalers", "Enough", "Since", "Age"],
    ]


def test_our_own_kinds_have_a_status_and_no_scale() -> None:
    for kind in custom_resource_definitions():
        assert kind["spec"]["versions"][0]["subresources"] == {"status": {}}
