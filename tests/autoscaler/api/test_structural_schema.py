from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

import pytest
from kubernetes.client import V1JSONSchemaProps
from pydantic import BaseModel, Field

from autoscaler.api.accelerator_pool import AcceleratorPoolSpec, AcceleratorPoolStatus
from autoscaler.api.inference_scaler import InferenceScalerSpec
from autoscaler.api.status import InferenceScalerStatus
from autoscaler.api.structural_schema import UnsupportedSchemaError, structural_schema
from policies.parameter_model import UNIQUE_NAMES, CelRule, ParameterModel


class Colour(StrEnum):
    """A choice."""

    RED = "Red"
    BLUE = "Blue"


class Only(StrEnum):
    """No choice."""

    ONE = "One"


class Part(ParameterModel):
    """A part."""

    size_tokens: int = Field(default=3, gt=0, lt=10, description="How large.")


class Base(ParameterModel):
    low: int = 0
    cel_rules = (CelRule("self.low >= 0", "low is not negative"),)


class Derived(Base):
    high: int = 1
    cel_rules = (CelRule("self.low <= self.high", "low is not above high", ".low"),)


def property_of(annotation: Any, field: Any = ...) -> dict[str, Any]:
    model = type("Model", (ParameterModel,), {"__annotations__": {"value": annotation}, "value": field})
    schema: dict[str, Any] = structural_schema(model)["properties"]["value"]
    return schema


@pytest.mark.parametrize(
    ("annotation", "field", "expected"),
    [
        pytest.param(int, 3, {"type": "integer", "default": 3}, id="a default belongs into the schema"),
        pytest.param(int | None, None, {"type": "integer", "nullable": True}, id="T or None is nullable, no default"),
        pytest.param(
            int | None,
            Field(default=None, ge=1, description="How many."),
            {"type": "integer", "minimum": 1, "nullable": True, "description": "How many."},
            id="bounds of T or None are kept",
        ),
        pytest.param(
            Colour, ..., {"type": "string", "enum": ["Red", "Blue"], "description": "A choice."}, id="an enum"
        ),
        pytest.param(Only, ..., {"type": "string", "enum": ["One"], "description": "No choice."}, id="an enum of one"),
        pytest.param(Literal["a"], ..., {"type": "string", "enum": ["a"]}, id="const becomes an enum of one"),
        pytest.param(
            Colour,
            Field(default=Colour.RED, description="Of the wall."),
            {"type": "string", "enum": ["Red", "Blue"], "default": "Red", "description": "Of the wall."},
            id="what stands beside a reference wins",
        ),
        pytest.param(
            float,
            Field(gt=0, le=1e15),
            {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 10**15},
            id="an exclusive bound is a flag beside the bound, and whole numbers are integers",
        ),
        pytest.param(
            Part,
            Part(),
            {
                "type": "object",
                "description": "A part.",
                "default": {"sizeTokens": 3},
                "properties": {
                    "sizeTokens": {
                        "type": "integer",
                        "default": 3,
                        "minimum": 0,
                        "exclusiveMinimum": True,
                        "maximum": 10,
                        "exclusiveMaximum": True,
                        "description": "How large.",
                    }
                },
            },
            id="a reference is written out, names are in camel case",
        ),
        pytest.param(
            tuple[str, ...],
            Field(default=(), max_length=8, json_schema_extra=UNIQUE_NAMES),
            {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": 8,
                "default": [],
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            id="a list with unique names",
        ),
        pytest.param(
            dict[str, int],
            Field(max_length=4),
            {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 4},
            id="a map",
        ),
        pytest.param(datetime, ..., {"type": "string", "format": "date-time"}, id="a moment"),
    ],
)
def test_property(annotation: Any, field: Any, expected: dict[str, Any]) -> None:
    assert property_of(annotation, field) == expected


@pytest.mark.parametrize(
    ("annotation", "field", "named"),
    [
        pytest.param(int | str, ..., "Model.value: a choice between 2 types", id="a choice between types"),
        pytest.param(dict[str, Any], ..., "accept anything", id="an open object"),
        pytest.param(Any, ..., "no type", id="anything"),
        pytest.param(tuple[int, str], ..., "prefixItems", id="a list with a type for each place"),
        pytest.param(int, Field(multiple_of=3), "multipleOf", id="a keyword that is not known"),
        pytest.param(int, Field(ge=1, gt=0), "minimum and exclusiveMinimum", id="two lower bounds"),
        pytest.param(
            int, Field(json_schema_extra={"oneOf": [{"type": "integer"}]}), "oneOf", id="a choice written by hand"
        ),
    ],
)
def test_refused(annotation: Any, field: Any, named: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match=named):
        property_of(annotation, field)


class Tree(BaseModel):
    branches: tuple[Tree, ...] = ()


def test_a_recursive_model_is_refused() -> None:
    with pytest.raises(UnsupportedSchemaError, match="contains itself"):
        structural_schema(Tree)


def test_a_subclass_adds_its_rules_to_those_of_its_base() -> None:
    assert structural_schema(Derived)["x-kubernetes-validations"] == [
        {"rule": "self.low >= 0", "message": "low is not negative"},
        {"rule": "self.low <= self.high", "message": "low is not above high", "fieldPath": ".low"},
    ]


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for child in schema.get("properties", {}).values():
        yield from nodes(child)
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key])


MODELS = [InferenceScalerSpec, InferenceScalerStatus, AcceleratorPoolSpec, AcceleratorPoolStatus]


@pytest.mark.parametrize("model", [pytest.param(model, id=model.__name__) for model in MODELS])
def test_every_keyword_is_one_of_the_dialect(model: type[BaseModel]) -> None:
    # The client spells the prefix x-kubernetes- with underscores in some places.
    dialect = {name.replace("_", "-") for name in V1JSONSchemaProps.attribute_map.values()}
    for node in nodes(structural_schema(model)):
        assert node.keys() <= dialect
        assert isinstance(node.get("exclusiveMinimum", False), bool)


@pytest.mark.parametrize(
    "model", [pytest.param(InferenceScalerSpec, id="scaler"), pytest.param(AcceleratorPoolSpec, id="pool")]
)
def test_every_text_and_list_of_a_spec_is_bounded(model: type[BaseModel]) -> None:
    for node in nodes(structural_schema(model)):
        if node["type"] == "string":
            assert "maxLength" in node or "enum" in node, node
        if node["type"] == "array":
            assert "maxItems" in node, node
