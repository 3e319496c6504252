"""With which certificate do we serve, and whose client certificates are looked at? Both may change while we serve."""

from __future__ import annotations

import ssl
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from autoscaler.external_metrics.caller import PeerCertificate


@dataclass(frozen=True, slots=True)
class ServingPair:
    """Our certificate (with what is between it and its authority) and its key, PEM."""

    certificate_pem: str
    key_pem: str


@dataclass(frozen=True, slots=True)
class BadPair:
    """Why a certificate and a key cannot be served with."""

    problem: str


class RenewedContext(ssl.SSLContext):
    """A server context that gives each new connection the newest certificate and authority.

    asyncio and uvloop ask a context for one object a connection; this one passes the question on to a context that is
    replaced as a whole. Connections that are open keep what they began with.
    """

    _newest: ssl.SSLContext
    _pair: ServingPair
    _authority_pem: str | None
    _lock: threading.Lock

    def __new__(cls, pair: ServingPair) -> Self:
        """Begins with a certificate, and without looking at client certificates. Raises ssl.SSLError for a bad pair."""
        self = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        self._lock = threading.Lock()
        self._pair, self._authority_pem = pair, None
        self._newest = _context(pair, None)
        return self

    def __init__(self, pair: ServingPair) -> None:
        """See `__new__`, where SSLContext is made."""

    def serve_with(self, pair: ServingPair) -> BadPair | None:
        """New connections are served with this pair; a bad one is refused, and the old one stays."""
        with self._lock:
            try:
                self._newest = _context(pair, self._authority_pem)
            except (ssl.SSLError, ValueError) as error:
                return BadPair(f"the certificate and its key cannot be served with: {error}")
            self._pair = pair
        return None

    def look_at_clients_of(self, authority_pem: str | None) -> BadPair | None:
        """New connections may show a certificate of this authority, and none of another. None: they show none."""
        with self._lock:
            try:
                self._newest = _context(self._pair, authority_pem)
            except (ssl.SSLError, ValueError) as error:
                return BadPair(f"the front proxy's authority cannot be read: {error}")
            self._authority_pem = authority_pem
        return None

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """One connection's TLS, by the newest context."""
        return self._newest.wrap_bio(*arguments, **options)


def peer_certificate(connection: ssl.SSLObject | None) -> PeerCertificate | None:
    """The client's certificate, which TLS has verified; None where it showed none."""
    shown: dict[str, Any] | None = connection.getpeercert() if connection is not None else None
    if not shown:
        return None
    names = [value for part in shown.get("subject", ()) for key, value in part if key == "commonName"]
    expires_at_seconds = float(ssl.cert_time_to_seconds(str(shown["notAfter"])))
    return PeerCertificate(str(names[-1]) if names else "", expires_at_seconds)


def _context(pair: ServingPair, authority_pem: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    # A session that is taken up again would bring the old certificate's verdict with it.
    context.options |= ssl.OP_NO_TICKET
    context.set_alpn_protocols(["http/1.1"])
    with tempfile.TemporaryDirectory(prefix="tokenscaler-") as directory:
        # OpenSSL reads keys from files only; the folder is ours alone and gone at once.
        certificate, key = Path(directory) / "tls.crt", Path(directory) / "tls.key"
        certificate.write_text(pair.certificate_pem)
        key.write_text(pair.key_pem)
        # Without a password it would ask at the terminal for that of an encrypted key.
        context.load_cert_chain(certificate, key, password="")
    if authority_pem is not None:
        context.load_verify_locations(cadata=authority_pem)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # what is in the bundle is trusted as it is
        # Optional: probes and callers with a token show none. A certificate of another authority ends the connection.
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
