"""What does a Kubernetes document of our own kinds say, and what is wrong with it, in sentences with field paths?

The API server has defaulted and pruned what comes from it; a file has seen neither. Both are read alike, and as the API
server reads them: numbers are not taken from strings, 3.0 is the integer 3, and null where no null is allowed is the
same as nothing.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from autoscaler.api.structural_schema import JsonObject, structural_schema

SpecT = TypeVar("SpecT", bound=BaseModel)

GROUP = "tokenscaler.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL)
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_TOP_LEVEL_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")

# What is wanted, by pydantic's error type; the placeholders are its context values.
_WANTED = {
    "bool_type": "true or false",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "model_type": "an object with fields",
    "string_type": "a text (put it in quotes)",
    "tuple_type": "a list",
    "finite_number": "a finite number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "string_too_short": "at least {min_length} characters long",
    "string_too_long": "at most {max_length} characters long",
    "too_short": "a list of at least {min_length} items",
    "too_long": "a list of at most {max_length} items",
    "enum": "{expected}",
}


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """Who an object is. A file may leave out all but the name: uid "", generation 0, created at 0.0."""

    namespace: str
    name: str
    uid: str
    generation: int
    created_at_seconds: float


@dataclass(frozen=True, slots=True)
class ParsedObject(Generic[SpecT]):
    """An accepted document. `status` is its own as it stands (may be empty)."""

    meta: ObjectMeta
    spec: SpecT
    status: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RefusedObject:
    """A document that is not taken: one sentence a problem. `meta` is as much of it as could be read."""

    meta: ObjectMeta
    status: dict[str, Any]
    problems: tuple[str, ...]


def parse_object(
    document: Mapping[str, Any], kind: str, spec_model: type[SpecT], *, is_namespaced: bool
) -> ParsedObject[SpecT] | RefusedObject:
    """The document's metadata and spec, or everything that is wrong with it. Never raises for a bad document."""
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    meta = _read_meta(metadata, is_namespaced)
    status = document.get("status")
    status = dict(status) if isinstance(status, Mapping) else {}
    problems = [*_head_problems(document, kind), *_name_problems(metadata, meta, is_namespaced)]
    spec = document.get("spec")
    if not isinstance(spec, Mapping):
        problems.append(
            "spec is missing" if spec is None else f"spec is {_shown(spec)}; it must be an object with fields"
        )
        return RefusedObject(meta, status, tuple(problems))
    parsed = read_fields(spec, spec_model, "spec")
    if isinstance(parsed, tuple):
        return RefusedObject(meta, status, (*problems, *parsed))
    return RefusedObject(meta, status, tuple(problems)) if problems else ParsedObject(meta, parsed, status)


def read_fields(fields: Mapping[str, Any], model: type[SpecT], path: str) -> SpecT | tuple[str, ...]:
    """The model made of the fields, or one sentence for each problem; `path` is where the fields stand."""
    schema = _schema(model)
    readable = _as_the_api_server_reads(dict(fields), schema)
    try:
        return model.model_validate_json(json.dumps(readable, default=str), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        found = error.errors(include_url=False)
        return tuple(_sentence(details, schema, path) for details in found if not _follows_from_others(details, found))


def rfc3339_seconds(moment: Any) -> float | None:
    """Unix time of a timestamp as Kubernetes writes it (YAML may have made a datetime of it); None if it is none."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            return None
    if not isinstance(moment, datetime):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


_schema = cache(structural_schema)


def _read_meta(metadata: Mapping[str, Any], is_namespaced: bool) -> ObjectMeta:
    generation = metadata.get("generation")
    return ObjectMeta(
        namespace=str(metadata.get("namespace") or "default") if is_namespaced else "",
        name=str(metadata.get("name") or ""),
        uid=str(metadata.get("uid") or ""),
        generation=generation if isinstance(generation, int) else 0,
        created_at_seconds=rfc3339_seconds(metadata.get("creationTimestamp")) or 0.0,
    )


def _head_problems(document: Mapping[str, Any], kind: str) -> list[str]:
    problems = [
        f"{field} is {_shown(document.get(field))}; it must be {wanted}"
        for field, wanted in (("apiVersion", API_VERSION), ("kind", kind))
        if document.get(field) != wanted
    ]
    return problems + [_unknown_field(str(name), "", _TOP_LEVEL_FIELDS) for name in document.keys() - _TOP_LEVEL_FIELDS]


def _name_problems(metadata: Mapping[str, Any], meta: ObjectMeta, is_namespaced: bool) -> list[str]:
    problems = []
    if not meta.name:
        problems.append("metadata.name is missing")
    elif len(meta.name) > 253 or not _NAME.fullmatch(meta.name):
        problems.append(
            f"metadata.name is {_shown(meta.name)}; it must be lower case letters, digits, dashes and dots, at most 253"
        )
    if is_namespaced and (len(meta.namespace) > 63 or not _NAMESPACE.fullmatch(meta.namespace)):
        problems.append(
            f"metadata.namespace is {_shown(meta.namespace)}; it must be a label: lower case letters, digits, dashes, "
            "at most 63"
        )
    if not is_namespaced and metadata.get("namespace"):
        problems.append("metadata.namespace must be left out: the kind is cluster-scoped")
    return problems


def _as_the_api_server_reads(value: Any, schema: Mapping[str, Any]) -> Any:
    """Without nulls where none is allowed, and with whole numbers as integers."""
    if isinstance(value, Mapping):
        properties = schema.get("properties", {})
        return {
            name: _as_the_api_server_reads(member, properties.get(name, {}))
            for name, member in value.items()
            if member is not None or name not in properties or properties[name].get("nullable")
        }
    if isinstance(value, list | tuple):
        return [_as_the_api_server_reads(item, schema.get("items", {})) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _follows_from_others(details: ErrorDetails, found: Sequence[ErrorDetails]) -> bool:
    """A list of which an item is bad is called too short as well, because bad items are not counted."""
    location = details["loc"]
    return details["type"] == "too_short" and any(
        other["loc"][: len(location)] == location and len(other["loc"]) > len(location) for other in found
    )


def _sentence(details: ErrorDetails, schema: JsonObject, path: str) -> str:
    location = details["loc"]
    place, context, kind = path + _path(location), details.get("ctx", {}), details["type"]
    if kind == "missing":
        return f"{place} is missing"
    if kind == "extra_forbidden":
        around = _at(schema, location[:-1])
        return _unknown_field(str(location[-1]), path + _path(location[:-1]), tuple(around.get("properties", ())))
    if kind == "value_error":
        return f"{place}: {context['error']}"
    if kind == "string_pattern_mismatch":
        meaning = _at(schema, location).get("description", f"a text that matches {context['pattern']}")
        return f"{place} is {_shown(details['input'])}, which is not of the wanted form: {meaning}"
    if kind not in _WANTED:
        return f"{place}: {details['msg']}"
    bounds = {name: f"{bound:g}" if isinstance(bound, float) else bound for name, bound in context.items()}
    return f"{place} is {_shown(details['input'])}; it must be {_WANTED[kind].format(**bounds)}"


def _unknown_field(name: str, path: str, known: Sequence[str]) -> str:
    place = f"{path}.{name}" if path else name
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
    return f"{place} is not a known field; {hint}"


def _path(location: Sequence[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)


def _at(schema: Mapping[str, Any], location: Sequence[str | int]) -> Mapping[str, Any]:
    for part in location:
        schema = schema.get("items", {}) if isinstance(part, int) else schema.get("properties", {}).get(part, {})
    return schema


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."
