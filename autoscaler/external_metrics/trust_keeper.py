"""Who keeps certificate and front-proxy trust up to date? A thread that looks every few seconds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from autoscaler.external_metrics.certificate_source import CertificateSource, Kubernetes
from autoscaler.external_metrics.front_proxy import (
    CONFIG_MAP,
    NAMESPACE,
    FrontProxyTrust,
    NoTrust,
    trust_of_config_map,
)
from autoscaler.external_metrics.tls import RenewedContext, ServingPair
from autoscaler.kubernetes_gateway.api_failure import ApiFailure

logger = logging.getLogger(__name__)

CONFIG_MAP_PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{CONFIG_MAP}"
# Certificates are rotated with hours of overlap, and a few small reads in five seconds are nothing.
LOOK_SECONDS = 5.0
# While something is missing the API cannot be used at all.
MISSING_LOOK_SECONDS = 1.0


class TrustKeeper:
    """Looks at the ConfigMap and at the certificate's source, and renews what is served with."""

    def __init__(
        self,
        connection: Kubernetes,
        source: CertificateSource,
        context: RenewedContext,
        on_new_authority: Callable[[], None],
    ) -> None:
        """`on_new_authority` is called when connections that are open were judged by an authority of the past."""
        self._connection = connection
        self._source = source
        self._context = context
        self._on_new_authority = on_new_authority
        self._trust: FrontProxyTrust | NoTrust = NoTrust("the front proxy's authority has not been read yet")
        self._served: ServingPair | None = None
        self._certificate_problem: str | None = "the serving certificate has not been read yet"
        self._logged: dict[str, str | None] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics-api-trust", daemon=True)

    @property
    def trust(self) -> FrontProxyTrust | NoTrust:
        """Who may speak for others, as last read."""
        return self._trust

    def not_ready_because(self) -> str | None:
        """What is still missing before anybody can be answered; None when all is there."""
        if self._served is None:
            return f"metrics API: {self._certificate_problem}"
        return f"metrics API: {self._trust.problem}" if isinstance(self._trust, NoTrust) else None

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it. Also right where it was never started."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(5.0)

    def look(self) -> None:
        """Takes up what has changed. What cannot be read now stays as it was."""
        self._look_at_certificate()
        self._look_at_trust()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.look()
            self._stopping.wait(LOOK_SECONDS if self.not_ready_because() is None else MISSING_LOOK_SECONDS)

    def _look_at_certificate(self) -> None:
        pair = self._source.newest()
        if isinstance(pair, ServingPair) and pair != self._served:
            bad = self._context.serve_with(pair)
            if bad is None:
                self._served = pair
                logger.info("the metrics API serves with a new certificate")
            else:
                pair = bad.problem
        self._certificate_problem = pair if isinstance(pair, str) else None
        self._log("the serving certificate cannot be renewed", self._certificate_problem)

    def _look_at_trust(self) -> None:
        document = self._connection.get(CONFIG_MAP_PATH)
        if isinstance(document, ApiFailure):
            if isinstance(self._trust, NoTrust):
                self._trust = NoTrust(document.message)
            self._log("the front proxy's authority cannot be read", document.message)
            return
        trust = trust_of_config_map(document)
        if trust == self._trust:
            return
        before = self._trust
        authority = None if isinstance(trust, NoTrust) else trust.authority_pem
        bad = self._context.look_at_clients_of(authority)
        problem = bad or (trust if isinstance(trust, NoTrust) else None)
        self._log("callers of the API server are not taken at its word", problem.problem if problem else None)
        if bad is not None:
            return
        self._trust = trust
        if isinstance(before, FrontProxyTrust) and authority != before.authority_pem:
            self._on_new_authority()

    def _log(self, what: str, problem: str | None) -> None:
        """Once for each problem, not once for each look."""
        if problem is not None and self._logged.get(what) != problem:
            logger.warning(what, extra={"problem": problem})
        self._logged[what] = problem
