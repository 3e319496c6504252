"""The imperative shell: reads the cluster and Prometheus, asks `policies.decision.decide`, and carries the answer out.

Read in this order: `controller/reconcile.py` (the eight steps), `wiring.py` (what is plugged into them),
`observers/` and `actuators/` (the ports), then the adapter you came for.
"""

import os

# OpenBLAS starts a thread per core otherwise, which makes small fits 8 to 75 times slower. Before numpy's import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
