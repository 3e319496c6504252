"""How many small faults in `policies/` does a test find? Prints the score by module, and the faults that were missed.

python -m tests.mutation                                        # 400 of them, drawn over all modules
python -m tests.mutation --sample all policies/history.py       # every one in one module
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import TextIO

from tests.mutation.explained import Explanations
from tests.mutation.faults import Fault, FaultyModule, faulty_module
from tests.mutation.trials import Trials, try_faults

ROOT = Path(__file__).parents[2]
# The tables, and not the laws: a law that tries two hundred inputs finds most faults too, and takes a minute to do so.
TESTS = (
    "tests/policies",
    "tests/parity/test_hpa_cases.py",
    "tests/autoscaler/api/test_custom_resource_definition.py",
)
GOAL = 0.9


@dataclass(slots=True)
class Tally:
    """What became of the faults, by module."""

    explanations: Explanations
    by_module: dict[str, Counter[str]] = field(default_factory=dict)
    missed: list[Fault] = field(default_factory=list)
    out: TextIO = sys.stdout

    def add(self, fault: Fault, verdict: str) -> None:
        if verdict == "survived":
            if self.explanations.of(fault) is not None:
                verdict = "explained"
            else:
                self.missed.append(fault)
                print(f"missed in {fault.place}\n    - {fault.before}\n    + {fault.after}", file=self.out, flush=True)
        counts = self.by_module.setdefault(fault.module, Counter())
        counts[verdict] += 1
        tried = sum(each.total() for each in self.by_module.values())
        if tried % 50 == 0:
            print(f"{tried} tried, {len(self.missed)} missed", file=sys.stderr, flush=True)


def main() -> int:
    """Tries the faults that were asked for; 0 where at least nine in ten were found."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("modules", nargs="*", default=["policies/**/*.py"], help="globs below the top of the tree")
    parser.add_argument("--sample", default="400", help="how many faults, or all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="of the tests of other modules, for each fault")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="files and folders of the tests that are run")
    arguments = parser.parse_args()
    modules = [faulty_module(path, ROOT) for path in _paths(arguments.modules)]
    drawn = _drawn(modules, arguments.sample, arguments.seed)
    tally = Tally(Explanations())
    failing = try_faults(
        Trials(_faults(modules, drawn, arguments.seed), "policies", arguments.seconds, tally.add),
        arguments.tests,
    )
    for name in failing:
        print(f"left out, for it fails without a fault: {name}")
    total = sum(len(module.mutations) for module in modules)
    tried = sum(counts.total() for counts in tally.by_module.values())
    print(f"{tried} of {total} faults tried, {sum(map(len, drawn))} drawn with seed {arguments.seed}")
    return 0 if _report(tally) >= GOAL else 1


def _paths(globs: Sequence[str]) -> list[Path]:
    return sorted({path for each in globs for path in ROOT.glob(each)})


def _faults(modules: Sequence[FaultyModule], drawn: Sequence[Sequence[int]], seed: int) -> Iterator[Fault]:
    # In no order, so that a run that is stopped has tried a part of each module.
    each = [(module, number) for module, numbers in zip(modules, drawn, strict=True) for number in numbers]
    random.Random(seed).shuffle(each)
    return (module.fault(number) for module, number in each)


def _drawn(modules: Sequence[FaultyModule], sample: str, seed: int) -> list[list[int]]:
    """The numbers of the faults to try, by module: of each its share of the sample, rounded so that the sum holds."""
    sizes = [len(module.mutations) for module in modules]
    count = sum(sizes) if sample == "all" else min(int(sample), sum(sizes))
    ends = [round(count * sum(sizes[: number + 1]) / sum(sizes)) for number in range(len(sizes))]
    chance = random.Random(seed)
    return [
        sorted(chance.sample(range(size), end - start))
        for size, start, end in zip(sizes, [0, *ends[:-1]], ends, strict=True)
    ]


def _report(tally: Tally) -> float:
    """Prints the table; the share that was found of those that a test can find."""
    columns = ("killed", "timeout", "survived", "explained", "untried")
    print(f"\n{'':52}{'tried':>9}" + "".join(f"{column:>10}" for column in columns))
    whole: Counter[str] = Counter()
    for module, counts in sorted(tally.by_module.items()):
        _print_row(module, counts, columns)
        whole += counts
    _print_row("all", whole, columns)
    found = whole["killed"] + whole["timeout"]
    count = found + whole["survived"]
    low, high = _interval(found, count)
    share = found / count if count else 1.0
    print(f"\nfound {found} of {count}: {share:.1%} (95 % interval {low:.1%} to {high:.1%})")
    print(f"beside them {whole['explained']} that no test can find (tests/mutation/explained.toml)")
    return share


def _print_row(what: str, counts: Counter[str], columns: Sequence[str]) -> None:
    print(f"{what:52}{counts.total():9}" + "".join(f"{counts[column]:10}" for column in columns))


def _interval(found: int, count: int) -> tuple[float, float]:
    """Wilson's interval of a share, at 95 %."""
    if count == 0:
        return 0.0, 1.0
    z = 1.96
    share = found / count
    middle = share + z * z / (2 * count)
    spread = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - spread) / (1 + z * z / count), (middle + spread) / (1 + z * z / count)


if __name__ == "__main__":
    sys.exit(main())
