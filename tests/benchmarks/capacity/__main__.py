"""Prints how well the capacity of a replica is learned in simulation, and what a wrong one costs.

Run by `make bench-capacity`, some ten minutes on one core. The replicas are those of the simulator, every coefficient
changed by a factor of its own (25 % deviation), so that no law that the product knows is the truth.
"""

from __future__ import annotations

import argparse

from rich.console import Console

from tests.benchmarks.capacity.learning_table import measure_learning
from tests.benchmarks.capacity.wrong_table import measure_wrong


def main() -> None:
    """Prints the chosen tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.capacity", description=__doc__)
    parser.add_argument("--only", choices=["learning", "wrong"])
    parser.add_argument("--profiles", default="", help="only profiles with this in their name")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each pool")
    arguments = parser.parse_args()
    console = Console(width=150)
    if arguments.only in (None, "learning"):
        console.print(measure_learning(arguments.profiles, arguments.seeds))
    if arguments.only in (None, "wrong"):
        console.print(measure_wrong(arguments.profiles, arguments.seeds))


if __name__ == "__main__":
    main()
