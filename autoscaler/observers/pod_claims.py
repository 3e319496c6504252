"""Which pods are taken for two targets' at once, where their owners do not tell whose they are?"""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.observers.scaler_claims import TargetName

# Every pool is looked at once a tick; a target that has not claimed a pod for so long does so no more.
CLAIM_SECONDS = 120.0


class PodClaims:
    """Remembers which targets' selectors have matched a pod of unknown owner."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str], dict[TargetName, float]] = {}

    def rival(self, target: TargetName, pods: Iterable[str], now_seconds: float) -> tuple[TargetName, str] | None:
        """Another target that one of these pods is taken for too, and that pod; None where there is none.

        `pods` are the names of those that the target's selector matches and nobody is known to own.
        """
        found = None
        for name in pods:
            claims = self._claims.setdefault((target[0], name), {})
            claims[target] = now_seconds
            if found is None and len(claims) > 1:
                other = next(
                    (each for each in claims if each != target and _is_recent(claims[each], now_seconds)), None
                )
                found = None if other is None else (other, name)
        return found

    def forget_old(self, now_seconds: float) -> None:
        """Drops the claims that nobody has renewed."""
        self._claims = {
            pod: recent
            for pod, claims in self._claims.items()
            if (recent := {target: at for target, at in claims.items() if _is_recent(at, now_seconds)})
        }


def _is_recent(at_seconds: float, now_seconds: float) -> bool:
    return now_seconds - at_seconds <= CLAIM_SECONDS
