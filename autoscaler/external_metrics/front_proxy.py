"""Whose word is taken for who a caller is? The API server's, by its front-proxy certificate, and nobody else's.

The API server publishes in ConfigMap kube-system/extension-apiserver-authentication by which authority its certificate
is signed, which names may stand in it, and in which headers it says who the caller is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from autoscaler.external_metrics.caller import Caller, Headers, PeerCertificate

NAMESPACE = "kube-system"
CONFIG_MAP = "extension-apiserver-authentication"


@dataclass(frozen=True, slots=True)
class FrontProxyTrust:
    """Who may speak for others, and how. No names: every certificate of the authority may."""

    authority_pem: str
    allowed_names: tuple[str, ...]
    username_headers: tuple[str, ...]
    uid_headers: tuple[str, ...]
    group_headers: tuple[str, ...]
    extra_header_prefixes: tuple[str, ...]

    def trusts(self, certificate: PeerCertificate, now_seconds: float) -> bool:
        """Whether the holder of this certificate may say who the caller is."""
        if now_seconds > certificate.expires_at_seconds:
            return False  # the connection has outlived it
        return not self.allowed_names or certificate.common_name in self.allowed_names

    def caller(self, headers: Headers) -> Caller | None:
        """Who the headers say is asking; None where they name nobody."""
        name = _first(headers, self.username_headers)
        if not name:
            return None
        return Caller(
            name=name,
            uid=_first(headers, self.uid_headers),
            groups=tuple(value for header in self.group_headers for value in _values(headers, header)),
            extra=self._extra(headers),
        )

    def _extra(self, headers: Headers) -> dict[str, tuple[str, ...]]:
        extra: dict[str, tuple[str, ...]] = {}
        for prefix in self.extra_header_prefixes:
            start = prefix.lower().encode()
            for name, value in headers:
                if name.startswith(start):
                    key = unquote(name[len(start) :].decode("latin-1"))
                    extra[key] = (*extra.get(key, ()), _text(value))
        return extra


@dataclass(frozen=True, slots=True)
class NoTrust:
    """Why nobody's word is taken for who a caller is."""

    problem: str


def trust_of_config_map(document: Mapping[str, Any]) -> FrontProxyTrust | NoTrust:
    """What the ConfigMap says; NoTrust where the cluster has no front proxy, or says nonsense."""
    data = document.get("data")
    data = data if isinstance(data, Mapping) else {}
    authority = str(data.get("requestheader-client-ca-file") or "")
    if not authority:
        return NoTrust(f"ConfigMap {NAMESPACE}/{CONFIG_MAP} names no requestheader-client-ca-file")
    try:
        return FrontProxyTrust(
            authority_pem=authority,
            allowed_names=_names(data, "requestheader-allowed-names"),
            username_headers=_names(data, "requestheader-username-headers"),
            uid_headers=_names(data, "requestheader-uid-headers"),
            group_headers=_names(data, "requestheader-group-headers"),
            extra_header_prefixes=_names(data, "requestheader-extra-headers-prefix"),
        )
    except ValueError as error:
        return NoTrust(f"ConfigMap {NAMESPACE}/{CONFIG_MAP}: {error}")


def _names(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    text = data.get(key)
    if not text:
        return ()
    names = json.loads(str(text))  # raises ValueError too
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{key} is no list of texts")
    return tuple(names)


def _first(headers: Headers, names: tuple[str, ...]) -> str:
    return next((value for name in names for value in _values(headers, name) if value), "")


def _values(headers: Headers, name: str) -> list[str]:
    wanted = name.lower().encode()
    return [_text(value) for header, value in headers if header == wanted]


def _text(value: bytes) -> str:
    # As the API server writes it: a user may have a name of any script.
    return value.decode(errors="replace")
