"""What did a user's own PromQL say?"""

from __future__ import annotations

import math

from policies.observation import MetricsObservation, ObservationUnavailable, QueryUnknown
from policies.reasons import Reason
from policies.recommendation import NoOpinion


def known_query(metrics: MetricsObservation | ObservationUnavailable, name: str) -> float | NoOpinion:
    """The query's value, or why there is none. Negative and non-finite numbers are no answer, and never zero."""
    if isinstance(metrics, ObservationUnavailable):
        return NoOpinion(Reason.SIGNAL_UNKNOWN, metrics.message)
    answer = metrics.queries.get(name)
    if answer is None:
        return NoOpinion(Reason.SIGNAL_UNKNOWN, "the query has not been asked yet")
    if isinstance(answer, QueryUnknown):
        return NoOpinion(Reason.SIGNAL_UNKNOWN, answer.why)
    if not math.isfinite(answer.value) or answer.value < 0:
        return NoOpinion(Reason.SIGNAL_UNKNOWN, f"the query gave {answer.value}, which is no quantity of work")
    return answer.value
