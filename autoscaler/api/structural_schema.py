"""How does a pydantic model look in the structural schema dialect of Kubernetes CRDs?

Pydantic writes JSON Schema 2020-12; an API server takes an older dialect, prunes what it does not know and refuses what
it cannot evaluate. What this converter does not know it refuses too, so no rule is lost on the way without being seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

# JSON as it comes from pydantic and goes into YAML; its shape is checked key by key below.
JsonObject = dict[str, Any]

# Kept as they are: the two dialects agree on their meaning.
_SAME_MEANING = frozenset(
    {
        "description",
        "enum",
        "format",
        "maximum",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minimum",
        "minItems",
        "minLength",
        "minProperties",
        "pattern",
        "required",
        "type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
    }
)
# The API server prunes unknown fields by itself, and titles repeat the field names.
_DROPPED = frozenset({"title", "default"})


class UnsupportedSchemaError(ValueError):
    """A model says something that a structural schema cannot say, or that this converter does not know."""


def structural_schema(model: type[BaseModel]) -> JsonObject:
    """The structural schema of a model, with camelCase names, defaults and CEL rules.

    Raises UnsupportedSchemaError, naming the place, for choices between types (other than `T | None`), open objects and
    every keyword that is not known.
    """
    schema = model.model_json_schema(by_alias=True, mode="validation")
    definitions = schema.pop("$defs", {})
    return _convert(schema, definitions, model.__name__, ())


def _convert(
    node: Mapping[str, Any], definitions: Mapping[str, Any], place: str, inside: tuple[str, ...]
) -> JsonObject:
    node, inside = _inline(node, definitions, place, inside)
    if "anyOf" in node:
        node, is_nullable = _without_null(node, definitions, place)
        converted = _convert(node, definitions, place, inside)
        return converted | {"nullable": True} if is_nullable else converted
    converted = {}
    for keyword, value in node.items():
        if keyword in _SAME_MEANING:
            converted[keyword] = _plain(value)
        elif keyword == "properties":
            converted[keyword] = {
                name: _property(child, definitions, f"{place}.{name}", inside) for name, child in value.items()
            }
        elif keyword == "items":
            converted[keyword] = _convert(value, definitions, f"{place}[]", inside)
        elif keyword == "additionalProperties":
            converted |= _additional_properties(value, definitions, place, inside)
        elif keyword == "const":
            converted["enum"] = [value]
        elif keyword in {"exclusiveMinimum", "exclusiveMaximum"}:
            converted |= _exclusive_bound(node, keyword, place)
        elif keyword not in _DROPPED:
            raise UnsupportedSchemaError(f"{place}: {keyword} has no known place in a structural schema")
    if "type" not in converted:
        raise UnsupportedSchemaError(f"{place}: no type; a structural schema needs one everywhere")
    return converted


def _property(
    node: Mapping[str, Any], definitions: Mapping[str, Any], place: str, inside: tuple[str, ...]
) -> JsonObject:
    converted = _convert(node, definitions, place, inside)
    # A default of null would say that null is a value of its own; leaving the field out says the same.
    if node.get("default") is not None:
        converted["default"] = _without_null_members(node["default"])
    return converted


def _inline(
    node: Mapping[str, Any], definitions: Mapping[str, Any], place: str, inside: tuple[str, ...]
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The node with its `$ref` replaced by the definition; what stands beside the `$ref` wins."""
    reference = node.get("$ref")
    if reference is None:
        return node, inside
    name = reference.removeprefix("#/$defs/")
    if name in inside:
        raise UnsupportedSchemaError(f"{place}: {name} contains itself; a structural schema cannot be recursive")
    beside = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
    return _inline({**definitions[name], **beside}, definitions, place, (*inside, name))


def _without_null(
    node: Mapping[str, Any], definitions: Mapping[str, Any], place: str
) -> tuple[Mapping[str, Any], bool]:
    choices = [choice for choice in node["anyOf"] if choice.get("type") != "null"]
    if len(choices) != 1:
        raise UnsupportedSchemaError(
            f"{place}: a choice between {len(choices)} types; write optional sibling fields and a CEL rule instead"
        )
    beside = {keyword: value for keyword, value in node.items() if keyword != "anyOf"}
    return {**choices[0], **beside}, len(choices) < len(node["anyOf"])


def _additional_properties(
    value: bool | Mapping[str, Any], definitions: Mapping[str, Any], place: str, inside: tuple[str, ...]
) -> JsonObject:
    if value is False:
        return {}
    if value is True:
        raise UnsupportedSchemaError(f"{place}: additionalProperties: true would accept anything")
    return {"additionalProperties": _convert(value, definitions, f"{place}{{}}", inside)}


def _exclusive_bound(node: Mapping[str, Any], keyword: str, place: str) -> JsonObject:
    bound = keyword.replace("exclusiveM", "m")
    if bound in node:
        raise UnsupportedSchemaError(
            f"{place}: {bound} and {keyword} together; in a structural schema one qualifies the other"
        )
    return {bound: _plain(node[keyword]), keyword: True}


def _plain(value: Any) -> Any:
    """A whole number as an integer, so that 1e15 is not written in a form that YAML parsers read differently."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _without_null_members(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null_members(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without_null_members(member) for member in value]
    return _plain(value)
