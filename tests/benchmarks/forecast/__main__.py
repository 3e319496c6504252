"""Prints the forecaster's figures: accuracy on recorded loads by rolling origin, behaviour at events, and cost.

Run by `make bench-forecast`. TRACES names a folder of CSV files like those of tests/data/traces; known names get the
column, bin, days and test window listed here, series that are not in the folder are left out of the means.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from tests.benchmarks.forecast.accuracy_table import measure_accuracy
from tests.benchmarks.forecast.cost_table import measure_cost
from tests.benchmarks.forecast.event_table import measure_events

COMMITTED = Path(__file__).parents[2] / "data" / "traces"


def main() -> None:
    """Prints the chosen tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.forecast", description=__doc__)
    parser.add_argument("--traces", type=Path, default=COMMITTED, help="folder of CSV files")
    parser.add_argument("--only", choices=["accuracy", "events", "cost"])
    parser.add_argument("--pools", type=int, default=1000, help="of the cost table")
    arguments = parser.parse_args()
    console = Console(width=150)
    if arguments.only in (None, "accuracy"):
        console.print(measure_accuracy(arguments.traces))
    if arguments.only in (None, "events"):
        console.print(measure_events(arguments.traces))
    if arguments.only in (None, "cost"):
        console.print(measure_cost(arguments.pools))


if __name__ == "__main__":
    main()
