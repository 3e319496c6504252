"""The base of every rule's parameters: frozen, camelCase outside, unknown fields refused, and CEL rules for the CRD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema


@dataclass(frozen=True, slots=True)
class CelRule:
    """What a model's own Python check says, once more as a CEL expression that the API server evaluates.

    The message is a fixed sentence: the API server counts a message that is put together as too costly. `field_path`
    (such as ".minReplicas") is where it reports the problem; without it, at the object that the rule stands on.
    """

    rule: str
    message: str
    field_path: str | None = None

    def document(self) -> dict[str, str]:
        """The entry of `x-kubernetes-validations`."""
        document = {"rule": self.rule, "message": self.message}
        return document if self.field_path is None else document | {"fieldPath": self.field_path}


class ParameterModel(BaseModel):
    """A group of knobs as a user writes them. A field states unit, bounds, default and source in its description.

    `cel_rules` stand beside the validator that checks the same; a subclass adds its own to those of its bases.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    cel_rules: ClassVar[tuple[CelRule, ...]] = ()

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler.resolve_ref_schema(handler(core_schema))
        rules = [rule.document() for base in reversed(cls.__mro__) for rule in vars(base).get("cel_rules", ())]
        if rules:
            schema["x-kubernetes-validations"] = rules
        return schema


UNIQUE_NAMES: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
"""`json_schema_extra` of a list whose items have unique names: the API server refuses a name that comes twice."""
