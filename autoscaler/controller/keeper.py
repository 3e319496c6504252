"""The port of what is brought in order once a tick, after the counts have been written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from autoscaler.controller.pool_report import PoolReport


class Keeper(Protocol):
    """Keeps something in the cluster as the reports of a tick ask for it, whoever left it as it is."""

    def keep(self, reports: Sequence[PoolReport]) -> None:
        """Brings it to what these reports, of all pools, ask for. May wait for the network."""
        ...

    def forget_all(self) -> None:
        """Drops what is remembered: somebody else has decided since."""
        ...
