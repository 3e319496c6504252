"""A process that competes for a Lease and writes its identity into a ConfigMap as often as its fence allows.

Run as a program: lease_holder.py KUBECONFIG NAMESPACE IDENTITY. It ends on SIGTERM after giving the lease back.
"""

from __future__ import annotations

import random
import signal
import sys
import threading

from autoscaler.clock import SystemClock
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.connection import connect
from autoscaler.kubernetes_gateway.lease_elector import LeaseElector

WRITE_EVERY_SECONDS = 0.1


def main(kubeconfig: str, namespace: str, identity: str) -> None:
    """Competes and writes until SIGTERM."""
    connection = connect(kubeconfig)
    elector = LeaseElector(connection, namespace, "contended", identity, SystemClock(), random.random)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    elector.start()
    count = 0
    while not stop.wait(WRITE_EVERY_SECONDS):
        if not elector.fence():
            continue
        count += 1
        body = {"data": {"writer": identity, "count": str(count)}}
        result = connection.patch(f"/api/v1/namespaces/{namespace}/configmaps/contended", body)
        if isinstance(result, ApiFailure):
            print(result.message, flush=True)
    elector.stop()


if __name__ == "__main__":
    main(*sys.argv[1:4])
