"""How many small faults in `policies/` does a test find? Prints the score by module, and the names of the survivors.

    python -m tests.mutation                               # everything: hours of one core
    python -m tests.mutation policies/history.py --tests tests/policies/test_history.py

mutmut makes the faults and runs the tests of the functions that they are in, in a copy of the tree: `.mutation`. There,
`mutmut show NAME` prints a fault afterwards, such as `policies.wording.x_number__mutmut_2`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".mutation"
COPIED = ("autoscaler", "deploy", "forecasting", "policies", "tests")
# The tables, and not the laws: a law that tries two hundred inputs finds most faults too, and takes a minute to do so.
TESTS = ("tests/policies", "tests/parity/test_hpa_cases.py")
_RESULT = re.compile(r"^\s*(policies\.\S+?)__mutmut_(\d+): (.+)$", re.MULTILINE)
# A fault that makes the tests run on for ever is found out too.
FOUND = frozenset({"killed", "timeout", "suspicious", "segfault"})


def main() -> int:
    """Runs the mutants of the modules (globs below the top of the tree); 0 where at least nine in ten were found."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("modules", nargs="*", default=["policies/*.py", "policies/**/*.py"])
    parser.add_argument("--tests", nargs="*", default=TESTS, help="files and folders of the tests that are run")
    arguments = parser.parse_args()
    _copy_tree()
    _configure(arguments.modules, arguments.tests)
    mutmut = str(Path(sys.executable).with_name("mutmut"))
    run = subprocess.run([mutmut, "run", "--max-children", "1"], cwd=WORK, stdout=sys.stderr, check=False)
    results = subprocess.run([mutmut, "results", "--all", "true"], cwd=WORK, capture_output=True, text=True, check=True)
    found, missed = _counted(results.stdout)
    for module in sorted(found | missed):
        _print_line(module, found[module], missed[module])
    _print_line("all", found.total(), missed.total())
    for survivor in _survivors(results.stdout):
        print(survivor)
    is_good = found.total() >= 0.9 * (found.total() + missed.total()) > 0
    return 0 if is_good and run.returncode in (0, 1) else 1


def _copy_tree() -> None:
    # Anew each time: mutmut takes a file for done that was there before, also where other modules were asked for then.
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir()
    for name in COPIED:
        shutil.copytree(ROOT / name, WORK / name, ignore=shutil.ignore_patterns("__pycache__"))


def _configure(modules: Sequence[str], tests: Sequence[str]) -> None:
    own = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    options = {
        "source_paths": ["policies"],
        "only_mutate": list(modules),
        "also_copy": ["autoscaler", "deploy", "forecasting"],
        "pytest_add_cli_args": ["-p", "no:xdist", "-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": list(tests),
    }
    lines = (f"{name} = {values!r}\n".replace("'", '"') for name, values in options.items())
    (WORK / "pyproject.toml").write_text(f"{own}\n[tool.mutmut]\n{''.join(lines)}", encoding="utf-8")


def _counted(results: str) -> tuple[Counter[str], Counter[str]]:
    found: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for function, _, verdict in _RESULT.findall(results):
        if verdict == "not checked":
            continue
        counts = found if verdict in FOUND else missed
        counts[function.rpartition(".")[0]] += 1
    return found, missed


def _survivors(results: str) -> list[str]:
    numbers: defaultdict[str, list[str]] = defaultdict(list)
    for function, number, verdict in _RESULT.findall(results):
        if verdict not in FOUND and verdict != "not checked":
            numbers[function].append(number)
    return [f"missed: {function} {', '.join(each)}" for function, each in sorted(numbers.items())]


def _print_line(what: str, found: int, missed: int) -> None:
    share = 100 * found / (found + missed) if found + missed else 100.0
    print(f"{what:45}{found:6} of {found + missed:5} found  {share:5.1f} %")


if __name__ == "__main__":
    sys.exit(main())
