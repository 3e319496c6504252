"""Is the optimiser there? It comes with an extra of the package."""

from __future__ import annotations

from importlib.util import find_spec


def missing_optimiser() -> str | None:
    """What to do where it is not there; None where it is."""
    return None if find_spec("optuna") else "needs optuna: pip install tokenscaler[tune]"
