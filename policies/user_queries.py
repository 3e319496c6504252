"""Which PromQL of the user's own does a policy need, and under which names are the answers looked up?"""

from __future__ import annotations

from policies.parameters import ScalingParameters
from policies.recommenders.custom import custom_query_name
from policies.recommenders.pending_requests import PENDING_REQUESTS


def user_queries(parameters: ScalingParameters) -> dict[str, str]:
    """PromQL by the name that `MetricsObservation.queries` has its answer under; empty where the policy has none."""
    signals = parameters.signals
    queries = {}
    if signals.pending_requests is not None:
        queries[PENDING_REQUESTS] = signals.pending_requests.query
    for custom in signals.custom:
        queries[custom_query_name(custom)] = custom.query
    return queries
