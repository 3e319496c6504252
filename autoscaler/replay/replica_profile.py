"""How fast is one serving replica? Step-time coefficients of a model on an accelerator, as data.

One engine step that computes P prompt tokens and decodes D sequences holding K tokens of context takes
`step_overhead + per_sequence x sequences + sqrt(weights^2 + (per_prefill x P + per_decode x D)^2) + per_context x K
+ per_pair x Q`, where Q sums chunk length x mean context over the prompt chunks. The root of squares joins reading the
weights (which small batches wait for) and computing (which large ones wait for).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class ReplicaProfile(BaseModel):
    """One replica: all times in seconds, all sizes in tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    name: str = Field(min_length=1)
    basis: str = Field(default="the user's own", description="Where the coefficients come from, in words.")
    accelerators_per_replica: int = Field(ge=1)
    step_overhead_seconds: float = Field(ge=0, description="Scheduler, launch and sampling of a step.")
    seconds_per_sequence: float = Field(ge=0, description="Sampling and detokenisation, per sequence in the step.")
    weight_read_seconds: float = Field(gt=0, description="Reading all weights once.")
    seconds_per_prefill_token: float = Field(gt=0, description="Matrix products and all-reduce, per prompt token.")
    seconds_per_decode_token: float = Field(gt=0, description="The same per decoding sequence (inside a CUDA graph).")
    seconds_per_context_token: float = Field(ge=0, description="Attention of decoding, per token of context read.")
    seconds_per_attended_pair: float = Field(ge=0, description="Attention of prompts, per (token, context token).")
    request_overhead_seconds: float = Field(ge=0, description="HTTP, tokenizer and first flush, outside the engine.")
    kv_capacity_tokens: int = Field(ge=1)
    block_tokens: int = Field(default=16, ge=1)
    maximum_sequences: int = Field(ge=1)
    maximum_batched_tokens: int = Field(ge=1)
    expert_read_seconds: float = Field(default=0.0, ge=0, description="Reading all experts once; 0 for dense models.")
    active_expert_share: float = Field(default=0.0, ge=0, le=1)
    reserves_whole_answer: bool = Field(
        default=False, description="Room for the whole answer is reserved on admission, so nothing is ever preempted."
    )

    @cached_property
    def longest_request_tokens(self) -> int:
        """Prompt and answer of the longest request that an empty replica can hold."""
        return self.kv_capacity_tokens - self.block_tokens


class UnknownProfileError(LookupError):
    """A profile was asked for by a name that is not there; the text lists those that are."""


class BadProfileFileError(ValueError):
    """A file with profiles could not be used; the text names the file, the profile and the field."""


def built_in_profile(name: str) -> ReplicaProfile:
    """One of the profiles of the package. Raises `UnknownProfileError`."""
    profiles = built_in_profiles()
    if name not in profiles:
        raise UnknownProfileError(f"no replica profile is called {name!r}; there are: {', '.join(sorted(profiles))}")
    return profiles[name]


def built_in_profiles() -> Mapping[str, ReplicaProfile]:
    """The profiles of the package by name."""
    source = resources.files("autoscaler.replay") / "profiles.json"
    return _parse_profiles(source.read_text(encoding="utf-8"), "the package's profiles.json")


def read_profiles(path: Path) -> Mapping[str, ReplicaProfile]:
    """The user's own profiles by name, in the package's format. Raises `BadProfileFileError` or OSError."""
    return _parse_profiles(path.read_text(encoding="utf-8"), str(path))


def _parse_profiles(text: str, where: str) -> Mapping[str, ReplicaProfile]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadProfileFileError(f"{where}, line {error.lineno}: not JSON: {error.msg}") from error
    entries = document.get("profiles") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        raise BadProfileFileError(f'{where}: wanted {{"profiles": [...]}} with at least one profile')
    profiles: dict[str, ReplicaProfile] = {}
    for position, entry in enumerate(entries, start=1):
        name = entry.get("name", f"number {position}") if isinstance(entry, dict) else f"number {position}"
        try:
            profile = ReplicaProfile.model_validate(entry)
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors(include_url=False)
            )
            raise BadProfileFileError(f"{where}, profile {name}: {problems}") from error
        if profile.name in profiles:
            raise BadProfileFileError(f"{where}: two profiles are called {profile.name!r}")
        profiles[profile.name] = profile
    return profiles
