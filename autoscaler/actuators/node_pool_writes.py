"""Where is a NodePool written, and why was it not?"""

from __future__ import annotations

from autoscaler.kubernetes_gateway.api_failure import ApiFailure, Conflict, Forbidden, NotFound, Rejected
from policies.reasons import Reason

PATH = "/apis/karpenter.sh/v1/nodepools/{name}"


def reason_of(failure: ApiFailure, otherwise: Reason) -> Reason:
    """Why a patch that tests what was seen came to nothing; `otherwise` where the failure says no more.

    A test that does not hold is answered as Rejected: the NodePool has changed since, as with a Conflict.
    """
    match failure:
        case Rejected() | Conflict():
            return Reason.CONFLICT
        case Forbidden():
            return Reason.FORBIDDEN
        case NotFound():
            return Reason.NODE_POOL_NOT_FOUND
    return otherwise
