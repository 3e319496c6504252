"""Which keys and certificates does a control plane need, and how are they made?"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = datetime.timedelta(days=2)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Files of one certificate and its private key, PEM."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """All key material of one control plane."""

    authority: Path
    front_proxy_authority: Path
    api_server: KeyPair
    front_proxy_client: KeyPair
    clients: dict[str, KeyPair]  # by common name
    service_account_key: Path
    service_account_public_key: Path


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )


def _subject(common_name: str, organization: str | None = None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization is not None:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


class _Authority:
    """Signs certificates; its own is written to `<name>.crt`."""

    def __init__(self, directory: Path, name: str):
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(name)
        self.certificate = directory / f"{name}.crt"
        builder = self._builder(self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        signed = builder.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())
        self.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + VALID_FOR)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )

    def issue(self, file_name: str, subject: x509.Name, names: tuple[x509.GeneralName, ...] = ()) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        usage = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = self._builder(subject, key.public_key()).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        pair = KeyPair(self._directory / f"{file_name}.crt", self._directory / f"{file_name}.key")
        signed = builder.sign(self._key, hashes.SHA256())
        pair.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair


def write_certificates(directory: Path) -> Certificates:
    """Writes two authorities (cluster, front proxy), all certificates they sign, and the service-account key pair."""
    directory.mkdir(parents=True, exist_ok=True)
    cluster = _Authority(directory, "cluster-authority")
    front_proxy = _Authority(directory, "front-proxy-authority")
    api_server_names = (
        x509.DNSName("localhost"),
        x509.DNSName("kubernetes.default.svc"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("10.0.0.1")),
    )
    clients = {
        "admin": _subject("admin", "system:masters"),
        "kwok": _subject("kwok", "system:masters"),
        "system:kube-controller-manager": _subject("system:kube-controller-manager"),
        "system:kube-scheduler": _subject("system:kube-scheduler"),
    }
    service_account = ec.generate_private_key(ec.SECP256R1())
    service_account_key, public_key = directory / "service-account.key", directory / "service-account.pub"
    _write_key(service_account_key, service_account)
    public_key.write_bytes(
        service_account.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return Certificates(
        authority=cluster.certificate,
        front_proxy_authority=front_proxy.certificate,
        api_server=cluster.issue("api-server", _subject("kube-apiserver"), api_server_names),
        front_proxy_client=front_proxy.issue("front-proxy-client", _subject("front-proxy-client")),
        clients={name: cluster.issue(name.replace(":", "-"), subject) for name, subject in clients.items()},
        service_account_key=service_account_key,
        service_account_public_key=public_key,
    )
