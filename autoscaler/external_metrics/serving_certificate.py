"""How is our own serving certificate made, when is it due for renewal, and how does it stand in its Secret?

An authority of our own signs it, so that a renewal changes nothing for those who verify us: they know the authority,
from the `caBundle` of the APIService. Both stand in one Secret, which every replica serves from.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from autoscaler.external_metrics.tls import ServingPair

CERTIFICATE_VALIDITY = timedelta(days=90)
CERTIFICATE_RENEWED_BEFORE = timedelta(days=30)
AUTHORITY_VALIDITY = timedelta(days=3650)
AUTHORITY_RENEWED_BEFORE = timedelta(days=365)
# The clocks of those who verify may be behind ours.
BACKDATED = timedelta(hours=1)
# The newest authority and those before it: while a rotation is under way, replicas serve by either.
MAXIMUM_BUNDLED = 3


@dataclass(frozen=True, slots=True)
class ServingMaterial:
    """An authority with its key, and the pair that it has signed, PEM."""

    authority_pem: str
    authority_key_pem: str
    pair: ServingPair


class Due(Enum):
    """What is to be made anew."""

    NOTHING = "nothing"
    CERTIFICATE = "certificate"
    AUTHORITY = "authority"  # and with it the certificate


def new_material(names: Sequence[str], now_seconds: float) -> ServingMaterial:
    """An authority, and a certificate for these DNS names."""
    now = datetime.fromtimestamp(now_seconds, UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"tokenscaler-metrics-authority-{int(now_seconds)}")
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    authority = (
        _builder(subject, subject, key, key, now, AUTHORITY_VALIDITY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return ServingMaterial(_pem(authority), _key_pem(key), _signed_pair(authority, key, names, now))


def with_new_certificate(material: ServingMaterial, names: Sequence[str], now_seconds: float) -> ServingMaterial:
    """The same authority with a new certificate and a new key."""
    authority = x509.load_pem_x509_certificate(material.authority_pem.encode())
    key = serialization.load_pem_private_key(material.authority_key_pem.encode(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    now = datetime.fromtimestamp(now_seconds, UTC)
    return ServingMaterial(material.authority_pem, material.authority_key_pem, _signed_pair(authority, key, names, now))


def due(material: ServingMaterial, names: Sequence[str], now_seconds: float) -> Due:
    """What of the material must be made anew: it ends soon, is for other names, or does not belong together.

    Also what is not valid yet: a clock that was ahead has made it, and nobody would accept it until then.
    """
    now = datetime.fromtimestamp(now_seconds, UTC)
    authority = x509.load_pem_x509_certificate(material.authority_pem.encode())
    certificate = x509.load_pem_x509_certificate(material.pair.certificate_pem.encode())
    if authority.not_valid_after_utc - now < AUTHORITY_RENEWED_BEFORE or authority.not_valid_before_utc > now:
        return Due.AUTHORITY
    if certificate.not_valid_before_utc > now:
        return Due.CERTIFICATE
    if certificate.not_valid_after_utc - now < CERTIFICATE_RENEWED_BEFORE or certificate.issuer != authority.subject:
        return Due.CERTIFICATE
    served = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return Due.NOTHING if set(names) <= set(served.get_values_for_type(x509.DNSName)) else Due.CERTIFICATE


OURS: Mapping[str, str] = {"app.kubernetes.io/name": "tokenscaler"}


def secret_document(namespace: str, name: str, material: ServingMaterial) -> dict[str, Any]:
    """The Secret that holds it, of the usual type for TLS."""
    texts = {
        "tls.crt": material.pair.certificate_pem,
        "tls.key": material.pair.key_pem,
        "ca.crt": material.authority_pem,
        "ca.key": material.authority_key_pem,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"namespace": namespace, "name": name, "labels": dict(OURS)},
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()},
    }


def is_somebody_elses(document: Mapping[str, Any]) -> bool:
    """Whether a Secret has content and not our label. An empty one may have been made for us."""
    labels = (document.get("metadata") or {}).get("labels") or {}
    return bool(document.get("data")) and any(labels.get(key) != value for key, value in OURS.items())


def material_of_secret(document: Mapping[str, Any]) -> ServingMaterial | None:
    """The material in a Secret; None where it is not all there or cannot be read."""
    data = document.get("data") or {}
    try:
        texts = {
            key: base64.b64decode(data[key], validate=True).decode("ascii")
            for key in ("ca.crt", "ca.key", "tls.crt", "tls.key")
        }
        x509.load_pem_x509_certificate(texts["ca.crt"].encode())
        served = x509.load_pem_x509_certificate(texts["tls.crt"].encode())
        served.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        key = serialization.load_pem_private_key(texts["ca.key"].encode(), password=None)
    except (KeyError, TypeError, ValueError, binascii.Error, x509.ExtensionNotFound):
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        return None
    return ServingMaterial(texts["ca.crt"], texts["ca.key"], ServingPair(texts["tls.crt"], texts["tls.key"]))


def bundle_with(authority_pem: str, present_bundle: str, now_seconds: float) -> str:
    """A `caBundle` (base64 of PEM) with this authority first, and those of the present one that have not ended."""
    now = datetime.fromtimestamp(now_seconds, UTC)
    wanted = x509.load_pem_x509_certificate(authority_pem.encode())
    others = [each for each in _bundled(present_bundle) if each != wanted and each.not_valid_after_utc > now]
    kept = [wanted, *others][:MAXIMUM_BUNDLED]
    return base64.b64encode("".join(map(_pem, kept)).encode()).decode()


def _bundled(bundle: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(base64.b64decode(bundle, validate=True)) if bundle else []
    except (ValueError, binascii.Error):
        return []  # no certificates: nobody is verified by them


def _signed_pair(
    authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey, names: Sequence[str], now: datetime
) -> ServingPair:
    key = ec.generate_private_key(ec.SECP256R1())
    # Not beyond its authority's own end, or it would look good and be refused.
    validity = min(CERTIFICATE_VALIDITY, authority.not_valid_after_utc - now)
    certificate = (
        _builder(_subject(names[0][:64]), authority.subject, key, authority_key, now, validity)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return ServingPair(_pem(certificate), _key_pem(key))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    now: datetime,
    validity: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + validity)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )


def _subject(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
