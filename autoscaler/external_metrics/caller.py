"""Who is asking?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CALLER_STATE = "caller"
"""Under this name a request's state holds the Caller, once it is known."""


FORWARDED_HEADER = "X-Tokenscaler-Forwarded"
"""A question that we have passed on bears it: should it come back to us, it goes no further."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A user of the cluster, by the API server's own word or by a TokenReview."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """A client certificate that TLS has verified against the front proxy's authority."""

    common_name: str
    expires_at_seconds: float


Headers = tuple[tuple[bytes, bytes], ...] | list[tuple[bytes, bytes]]
"""Headers of a request: names in lower case, in the order they came."""
