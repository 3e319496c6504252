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
    is_somebody_elses,
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

    A new authority is made known before anything is served by it: first the `caBundle` gets it beside the old one, and
    only at the next look, when every API server has had time to take that up, it goes into the Secret. An APIService of
    somebody else's is never touched.
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
        self._prepared: ServingMaterial | None = None

    def newest(self) -> ServingPair | str:
        """The pair in the Secret, made or renewed before where this process may write and it is due."""
        path = f"{self._secrets}/{self._settings.secret_name}"
        secret = self._connection.get(path)
        if isinstance(secret, ApiFailure) and not isinstance(secret, NotFound):
            return secret.message
        present = None if isinstance(secret, NotFound) else material_of_secret(secret)
        if present is None and not isinstance(secret, ApiFailure) and is_somebody_elses(secret):
            return f"Secret {path} is somebody else's and holds no certificate of ours: it is left alone"
        if self._may_write():
            served = self._brought_up_to_date(path, None if isinstance(secret, ApiFailure) else secret, present)
            return served if isinstance(served, str) else served.pair
        self._prepared = None
        return present.pair if present else f"Secret {path} holds no certificate yet: the leader makes it"

    def _brought_up_to_date(
        self, path: str, secret: Document | None, present: ServingMaterial | None
    ) -> ServingMaterial | str:
        """What is to be served now: the present material until a due one has been made known and written."""
        wanted = self._renewed(present)
        is_known = self._make_known(wanted, present)
        if isinstance(is_known, str):
            return present or is_known
        if not is_known:
            self._prepared = wanted
            return present or "the authority of a new certificate is being made known"
        self._prepared = None
        problem = self._write(path, secret, wanted) if wanted != present else None
        return wanted if problem is None else present or problem

    def _renewed(self, material: ServingMaterial | None) -> ServingMaterial:
        names, now_seconds = self._settings.names, self._clock.now_seconds()
        what = Due.AUTHORITY if material is None else due(material, names, now_seconds)
        if material is None or what is Due.AUTHORITY:
            return self._prepared or new_material(names, now_seconds)
        return material if what is Due.NOTHING else with_new_certificate(material, names, now_seconds)

    def _make_known(self, wanted: ServingMaterial, present: ServingMaterial | None) -> bool | str:
        """True where every APIService of ours (there may be none) knew the authority; False: it does from now on."""
        is_known = True
        for name in self._api_services:
            path = f"{API_SERVICES}/{name}"
            document = self._connection.get(path)
            if isinstance(document, NotFound):
                continue
            if isinstance(document, ApiFailure):
                return document.message
            bundle = self._wanted_bundle(document.get("spec") or {}, wanted, present)
            if bundle is None:
                continue
            answer = self._connection.patch(path, {"spec": {"caBundle": bundle}})
            if isinstance(answer, ApiFailure):
                return answer.message
            is_known = False
        return is_known

    def _wanted_bundle(
        self, spec: dict[str, Any], wanted: ServingMaterial, present: ServingMaterial | None
    ) -> str | None:
        """The `caBundle` that should stand there; None where it does, or where it is not ours to write."""
        service = spec.get("service") or {}
        ours = (self._settings.service_namespace, self._settings.service_name)
        if (service.get("namespace"), service.get("name")) != ours or spec.get("insecureSkipTLSVerify"):
            return None
        stands, now_seconds = str(spec.get("caBundle") or ""), self._clock.now_seconds()
        # What is served now stays known, however many new ones have been prepared and given up meanwhile.
        bundle = stands if present is None else bundle_with(present.authority_pem, stands, now_seconds)
        bundle = bundle_with(wanted.authority_pem, bundle, now_seconds)
        return None if bundle == stands else bundle

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
