"""Where is Prometheus, how does one log in, how long may it take, and how are its labels called?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator


def _base_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no http:// or https:// address of a Prometheus")
    if parts.query or parts.fragment:
        raise ValueError(f"{url!r}: a query or fragment cannot be part of the address; use query_parameters")
    if parts.username or parts.password:
        # The address stands in logs and error messages.
        raise ValueError("a name and password in the address would be logged; use basic_auth_*")
    for suffix in ("/api/v1/query", "/api/v1"):
        if parts.path.rstrip("/").endswith(suffix):
            raise ValueError(f"{url!r}: leave {suffix} off, it is added")
    return url.rstrip("/")


class PrometheusSettings(BaseModel):
    """The process's Prometheus (Thanos, Mimir, Cortex, VictoriaMetrics). Secrets are files, re-read on change."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Annotated[str, AfterValidator(_base_url)] = Field(
        description="Address without /api/v1, with the path prefix where there is one (Mimir: .../prometheus)."
    )
    bearer_token_file: Path | None = None
    basic_auth_username: str | None = None
    basic_auth_password_file: Path | None = None
    ca_file: Path | None = Field(default=None, description="Certificates to trust instead of the system's.")
    client_certificate_file: Path | None = None
    client_key_file: Path | None = None
    insecure_skip_verify: bool = False
    proxy_url: str | None = Field(default=None, description="The environment's proxy settings are not used.")
    headers: dict[str, str] = Field(default={}, description="Sent with each request, for example X-Scope-OrgID.")
    query_parameters: dict[str, str] = Field(default={}, description="Sent with each query: Thanos' dedup and others.")
    connect_timeout_seconds: float = Field(default=1.0, gt=0, le=60)
    read_timeout_seconds: float = Field(default=4.0, gt=0, le=300)
    round_seconds: float = Field(
        default=5.0, gt=0, le=300, description="All queries of one tick are answered, or given up, within this time."
    )
    maximum_answer_bytes: int = Field(default=64 * 1024 * 1024, ge=1024, description="After decompression.")
    threads: int = Field(default=8, ge=1, le=64)

    def for_the_past(self) -> Self:
        """The same server, asked about weeks: one question at a time, and an answer may take a minute."""
        return self.model_copy(update={"read_timeout_seconds": 60.0, "round_seconds": 60.0, "threads": 1})

    @model_validator(mode="after")
    def _login_is_complete(self) -> Self:
        if (self.basic_auth_username is None) != (self.basic_auth_password_file is None):
            raise ValueError("basic_auth_username and basic_auth_password_file go together")
        if self.bearer_token_file is not None and self.basic_auth_username is not None:
            raise ValueError("bearer_token_file and basic_auth_username exclude each other")
        if self.client_key_file is not None and self.client_certificate_file is None:
            raise ValueError("client_key_file needs client_certificate_file")
        return self


LabelName = Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")]


class QuerySettings(BaseModel):
    """How the signals are asked for; windows in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    namespace_label: LabelName = "namespace"
    pod_label: LabelName = "pod"
    rate_window_seconds: int = Field(
        default=60, ge=4, le=600, description="Counters become rates over it; at least four scrape intervals."
    )
    latency_window_seconds: int = Field(default=120, ge=4, le=3600, description="For latency quantiles.")
    request_window_seconds: int = Field(
        default=120, ge=60, le=3600, description="For requests' lengths and the prefix-cache hit share."
    )
    slow_interval_seconds: float = Field(
        default=60.0, ge=1, le=110, description="How often what changes slowly is asked for (cache sizes, quantiles)."
    )
    maximum_queries_per_tick: int = Field(default=12, ge=10, le=64)
    user_queries_per_request: int = Field(default=40, ge=1, le=200)
