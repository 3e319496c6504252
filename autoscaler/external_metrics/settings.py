"""What was the metrics API told: where it listens, as which Service it is known, and whose certificate it serves."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

_LABEL = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"


SERVICE_ACCOUNT_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class ForwardSettings(BaseModel):
    """Where the other provider of external metrics is, and how we come to it.

    Either we ask as ourselves, by a bearer token, or as a front proxy for the caller, by a certificate that the other
    provider trusts for that.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str = Field(description="An https address; a path may follow.")
    authority: Path | None = Field(default=None, description="CA of its certificate. None: those of the system.")
    token: Path = SERVICE_ACCOUNT_TOKEN
    front_proxy_directory: Path | None = Field(default=None, description="Folder with tls.crt and tls.key.")

    @field_validator("url")
    @classmethod
    def _is_https(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"{url}: an https:// address is wanted")
        return url


class MetricsApiSettings(BaseModel):
    """Settings of the metrics API. Without a certificate folder it makes its certificate itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str
    port: int = Field(ge=0, le=65_535)
    service_namespace: str = Field(pattern=_LABEL)
    service_name: str = Field(default="tokenscaler-metrics", pattern=_LABEL)
    certificate_directory: Path | None = None
    forward_to: ForwardSettings | None = Field(default=None, description="None: what we do not know is not found.")

    @property
    def names(self) -> tuple[str, ...]:
        """The DNS names under which it is verified; the API server asks for the first."""
        first = f"{self.service_name}.{self.service_namespace}.svc"
        return (first, f"{first}.cluster.local")

    @property
    def secret_name(self) -> str:
        """Of the Secret that holds the certificate that it makes itself."""
        return f"{self.service_name}-certificate"
