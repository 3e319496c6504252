"""What was the external scaler told: where it listens, and with which certificates."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class ExternalScalerSettings(BaseModel):
    """Settings of KEDA's external scaler. Without certificates there is none: it is never served in the clear."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str
    port: int = Field(ge=0, le=65_535)
    certificate_directory: Path = Field(description="Folder with tls.crt, tls.key, and ca.crt that signs KEDA's own.")
