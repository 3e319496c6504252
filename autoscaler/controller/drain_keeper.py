"""Who is out of the router although nobody wants it to go? Asked once a tick, of all pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from autoscaler.controller.pool_report import PoolReport, says_something


class Router(Protocol):
    """Knows who is to be out of the router."""

    def put_back_others(self) -> None:
        """Puts back whoever is out and was not wanted out since the last time."""
        ...

    def forget_all(self) -> None:
        """Drops who was wanted out."""
        ...


class DrainKeeper:
    """A Keeper that has pods put back: the load has returned, the policy has changed, or its scaler is gone."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def keep(self, reports: Sequence[PoolReport]) -> None:
        """Just after a start, before all targets have been read, nobody can say yet who is to go."""
        if all(map(says_something, reports)):
            self._router.put_back_others()

    def forget_all(self) -> None:
        """Drops what is remembered; the pods tell the rest."""
        self._router.forget_all()
