"""Where does the serving certificate come from, and who sees to it that it is renewed and known?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from autoscaler.clock import Clock
from autoscaler.external_metrics.serving_certificate import (
    Due,
    ServingMaterial,
    bundle_with,
    due,
    material_of_secret,
    new_material,
    secret_document,
    with_new_certificate,
)
from autoscaler.external_metrics.settings import MetricsApiSettings
from autoscaler.external_metrics.tls import ServingPair
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, NotFound
from autoscaler.kubernetes_gateway.connection import Document

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


class CertificateSource(Protocol):
    """Gives the pair to serve with. May block on a disk or on the API server."""

    def newest(self) -> ServingPair | str:
        """The pair as it is now, or a sentence that says why there is none."""
        ...


class CertificateFiles:
    """`tls.crt` and `tls.key` in a folder, as cert-manager's Secret is mounted; somebody else renews them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def newest(self) -> ServingPair | str:
        """What stands in the files now."""
        try:
            certificate = (self._directory / "tls.crt").read_text(encoding="ascii")
            key = (self._directory / "tls.key").read_text(encoding="ascii")
        except OSError as error:
            return f"cannot read {error.filename}: {error.strerror}"
        except ValueError as error:
            return f"{self._directory}: not PEM: {error}"
        return ServingPair(certificate, key)


class Kubernetes(Protocol):
    """The part of a connection to the API server that is used here."""

    def get(self, path: str) -> Document | ApiFailure:
        """The document at `path`."""
        ...

    def create(self, path: str, body: Document) -> Document | ApiFailure:
        """The created document."""
        ...

    def update(self, path: str, body: Document) -> Document | ApiFailure:
        """The replaced document; Conflict where it has changed since it was read."""
        ...

    def patch(self, path: str, body: Document) -> Document | ApiFailure:
        """The document after a merge patch."""
        ...


class OwnCertificate:
    """A certificate in a Secret, from which all replicas serve. Who leads makes it, renews it, and makes it known.

    The authority is made known before anything is served by it: first the `caBundle` holds the old and the new one,
    then the Secret changes. An APIService of somebody else's is never touched.
    """

    def __init__(
        self,
        connection: Kubernetes,
        settings: MetricsApiSettings,
        may_write: Callable[[], bool],
        clock: Clock,
        api_services: tuple[str, ...],
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._may_write = may_write
        self._clock = clock
        self._api_services = api_services
        self._secrets = f"/api/v1/namespaces/{settings.service_namespace}/secrets"

    def newest(self) -> ServingPair | str:
        """The pair in the Secret, made or renewed before where this process may write and it is due."""
        path = f"{self._secrets}/{self._settings.secret_name}"
        secret = self._connection.get(path)
        if isinstance(secret, ApiFailure) and not isinstance(secret, NotFound):
            return secret.message
        material = None if isinstance(secret, NotFound) else material_of_secret(secret)
        if not self._may_write():
            return material.pair if material else f"Secret {path} holds no certificate yet: the leader makes it"
        renewed = self._renewed(material)
        problem = self._make_known(renewed)
        if problem is not None:
            return material.pair if material else problem
        if renewed != material:
            problem = self._write(path, None if isinstance(secret, ApiFailure) else secret, renewed)
            if problem is not None:
                return material.pair if material else problem
        return renewed.pair

    def _renewed(self, material: ServingMaterial | None) -> ServingMaterial:
        names, now_seconds = self._settings.names, self._clock.now_seconds()
        what = Due.AUTHORITY if material is None else due(material, names, now_seconds)
        if material is None or what is Due.AUTHORITY:
            return new_material(names, now_seconds)
        return material if what is Due.NOTHING else with_new_certificate(material, names, now_seconds)

    def _make_known(self, material: ServingMaterial) -> str | None:
        """A problem, or None where every APIService of ours (there may be none) knows the authority."""
        for name in self._api_services:
            path = f"{API_SERVICES}/{name}"
            document = self._connection.get(path)
            if isinstance(document, NotFound):
                continue
            if isinstance(document, ApiFailure):
                return document.message
            bundle = self._wanted_bundle(document.get("spec") or {}, material)
            if bundle is None:
                continue
            answer = self._connection.patch(path, {"spec": {"caBundle": bundle}})
            if isinstance(answer, ApiFailure):
                return answer.message
        return None

    def _wanted_bundle(self, spec: dict[str, Any], material: ServingMaterial) -> str | None:
        """The `caBundle` that should stand there; None where it does, or where it is not ours to write."""
        service = spec.get("service") or {}
        ours = (self._settings.service_namespace, self._settings.service_name)
        if (service.get("namespace"), service.get("name")) != ours or spec.get("insecureSkipTLSVerify"):
            return None
        present = str(spec.get("caBundle") or "")
        wanted = bundle_with(material.authority_pem, present, self._clock.now_seconds())
        return None if wanted == present else wanted

    def _write(self, path: str, present: Document | None, material: ServingMaterial) -> str | None:
        document = secret_document(self._settings.service_namespace, self._settings.secret_name, material)
        if present is None:
            answer = self._connection.create(self._secrets, document)
        else:
            metadata = {**present["metadata"], "labels": document["metadata"]["labels"]}
            metadata.pop("managedFields", None)
            # The type of a Secret cannot be changed; what is ours in it can.
            document |= {"metadata": metadata, "type": present.get("type", document["type"])}
            answer = self._connection.update(path, document)
        return answer.message if isinstance(answer, ApiFailure) else None
