"""Prints how well the capacity of a replica is learned in simulation, and what a wrong one costs.

Run by `make bench-capacity`, some seven minutes on one core for each seed. The replicas are those of the simulator,
every coefficient changed by a factor of its own (25 % deviation), so that no law that the product knows is the truth.
"""

from __future__ import annotations

import argparse

from rich.console import Console

from tests.benchmarks.capacity.learned_pools import learned_pools
from tests.benchmarks.capacity.learning_table import learning_table
from tests.benchmarks.capacity.wrong_table import wrong_table


def main() -> None:
    """Prints the chosen tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.capacity", description=__doc__)
    parser.add_argument("--only", choices=["learning", "wrong"], help="one of the two tables")
    parser.add_argument("--profiles", default="", help="only profiles with this in their name")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each pool")
    parser.add_argument("--hours", type=float, default=2.0, help="how long a wrong capacity is watched")
    arguments = parser.parse_args()
    console = Console(width=150)
    pools = list(learned_pools(arguments.profiles, arguments.seeds))
    if arguments.only in (None, "learning"):
        console.print(learning_table(pools))
    if arguments.only in (None, "wrong"):
        console.print(wrong_table(pools, arguments.hours))


if __name__ == "__main__":
    main()
