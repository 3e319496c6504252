"""What was the metrics API told: where it listens, as which Service it is known, and whose certificate it serves."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

_LABEL = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"


class MetricsApiSettings(BaseModel):
    """Settings of the metrics API. Without a certificate folder it makes its certificate itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str
    port: int = Field(ge=0, le=65_535)
    service_namespace: str = Field(pattern=_LABEL)
    service_name: str = Field(default="tokenscaler-metrics", pattern=_LABEL)
    certificate_directory: Path | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The DNS names under which it is verified; the API server asks for the first."""
        first = f"{self.service_name}.{self.service_namespace}.svc"
        return (first, f"{first}.cluster.local")

    @property
    def secret_name(self) -> str:
        """Of the Secret that holds the certificate that it makes itself."""
        return f"{self.service_name}-certificate"
