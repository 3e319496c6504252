"""The base of every rule's parameters: frozen, camelCase outside, unknown fields refused."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class ParameterModel(BaseModel):
    """A group of knobs as a user writes them. A field states unit, bounds, default and source in its description."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)
