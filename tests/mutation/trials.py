"""Do the tests that reach a fault find it?

The tests are collected once. Each fault is then tried in a process of its own, forked from that one: there the code of
the function is exchanged and its tests are run until one fails. Which tests reach a function is measured in such a
process too, so that the one that all are forked from is as it was after the imports. A function that no test calls may
have been called by an import: then the process begins with the imports, and runs all tests.
"""

from __future__ import annotations
import __future__

import gc
import json
import os
import signal
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from functools import _lru_cache_wrapper, partial
from io import StringIO
from itertools import accumulate
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from tests.mutation.faults import Fault
from tests.mutation.fresh_import import forget_imports

# A fault may make a loop that ends late or never: ten times what its tests took, and some seconds to start with.
PATIENCE = 10.0
LEAST_SECONDS = 10.0
NO_TRIAL = 3
PYTEST_ARGUMENTS = ("-q", "-s", "-p", "no:xdist", "-p", "no:cacheprovider")


@dataclass(slots=True)
class Trials:
    """A pytest plugin that tries faults where the tests would be run."""

    faults: Iterable[Fault]
    package: str
    most_seconds: float
    after_each: Callable[[Fault, str], None]
    _is_trial: bool = field(default=False, init=False)
    _has_checked_imports: bool = field(default=False, init=False)
    failing: set[str] = field(default_factory=set, init=False)
    """Tests that fail without any fault: they tell nothing, and are left out."""

    def pytest_configure(self) -> None:
        """An example that fails is enough: to look for a smaller one would take as long as a hundred faults."""
        from hypothesis import Phase, settings  # not before pytest, which rewrites its asserts

        known = settings.get_profile(settings.get_current_profile_name())
        settings.register_profile("faults", known, phases=(Phase.explicit, Phase.generate))
        settings.load_profile("faults")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Failed(f"{session.testsfailed} tests could not be collected")
        functions = _functions_of(self.package)
        gc.freeze()
        reach = self._reach(session, functions)
        with suppress(KeyboardInterrupt):  # what has been tried by then is a result
            self._try_all(session, functions, reach)
        return True

    def _try_all(self, session: pytest.Session, functions: dict[str, list[FunctionType]], reach: _Reach) -> None:
        for fault in self.faults:
            tests = reach.tests(fault, self.most_seconds)
            seconds = LEAST_SECONDS + PATIENCE * sum(reach.seconds[item.nodeid] for item in tests or session.items)
            if tests:
                verdict = _in_a_fork(partial(self._try, fault, functions[fault.place], tests), seconds)
            else:
                arguments = [*session.config.args, *(f"--deselect={name}" for name in sorted(self.failing))]
                self._check_fresh_imports(fault, arguments)
                verdict = _in_a_fork(partial(_try_anew, fault, arguments), seconds)
            self.after_each(fault, verdict)

    def _check_fresh_imports(self, fault: Fault, arguments: Sequence[str]) -> None:
        """Once: that the tests are green where modules are imported anew without a fault."""
        if not self._has_checked_imports:
            without = replace(fault, module_source=Path(f"{fault.module.replace('.', '/')}.py").read_text("utf-8"))
            if _in_a_fork(partial(_try_anew, without, arguments), 600) != "survived":
                raise RuntimeError("after fresh imports a test fails without any fault")
            self._has_checked_imports = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self._is_trial:
            os._exit(1)
        elif report.failed:
            self.failing.add(report.nodeid)

    def _reach(self, session: pytest.Session, functions: dict[str, list[FunctionType]]) -> _Reach:
        with tempfile.TemporaryDirectory() as folder:
            seen = Path(folder) / "reach.json"
            if _in_a_fork(partial(self._measure, session, functions, seen), 600) != "survived":
                raise RuntimeError("the tests do not come to an end without any fault")
            reached, seconds, failing = json.loads(seen.read_text(encoding="utf-8"))
        self.failing = set(failing)
        return _Reach.of([item for item in session.items if item.nodeid not in self.failing], reached, seconds)

    def _measure(self, session: pytest.Session, functions: dict[str, list[FunctionType]], seen: Path) -> None:
        caches = [each for each in gc.get_objects() if isinstance(each, _lru_cache_wrapper)]
        called: set[str] = set()
        _note_calls(functions, called)
        reached: dict[str, list[str]] = {}
        seconds: dict[str, float] = {}
        for number, item in enumerate(session.items):
            for cache in caches:
                cache.cache_clear()
            called.clear()
            began = os.times().user
            _run(item, session.items[number + 1 : number + 2])
            seconds[item.nodeid] = os.times().user - began
            reached[item.nodeid] = sorted(called)
        seen.write_text(json.dumps([reached, seconds, sorted(self.failing)]), encoding="utf-8")

    def _try(self, fault: Fault, functions: Sequence[FunctionType], tests: Sequence[pytest.Item]) -> None:
        self._is_trial = True
        try:
            _exchange(fault, functions)
        except (KeyError, ValueError, SyntaxError):
            os._exit(NO_TRIAL)
        for number, item in enumerate(tests):
            _run(item, tests[number + 1 : number + 2])


@dataclass(frozen=True, slots=True)
class _Reach:
    items_by_place: dict[str, list[pytest.Item]]
    seconds: dict[str, float]

    @classmethod
    def of(cls, items: Sequence[pytest.Item], reached: dict[str, list[str]], seconds: dict[str, float]) -> _Reach:
        by_place: defaultdict[str, list[pytest.Item]] = defaultdict(list)
        for item in items:
            for place in reached[item.nodeid]:
                by_place[place].append(item)
        return cls(dict(by_place), seconds)

    def tests(self, fault: Fault, most_seconds: float) -> list[pytest.Item]:
        """Those that call the function: the module's own, and of the others the quickest, for as long as was asked."""
        own_name = f"test_{fault.module.rpartition('.')[2]}.py"
        found = sorted(self.items_by_place.get(fault.place, []), key=lambda item: self.seconds[item.nodeid])
        own = [item for item in found if item.path.name == own_name]
        others = [item for item in found if item.path.name != own_name]
        ends = accumulate(self.seconds[item.nodeid] for item in others)
        return own + [item for item, end in zip(others, ends, strict=True) if end <= most_seconds]


def _run(item: pytest.Item, following: Sequence[pytest.Item]) -> None:
    item.ihook.pytest_runtest_protocol(item=item, nextitem=following[0] if following else None)


def _functions_of(package: str) -> dict[str, list[FunctionType]]:
    found: defaultdict[str, list[FunctionType]] = defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__module__ and each.__module__.partition(".")[0] == package:
            found[f"{each.__module__}.{each.__qualname__}"].append(each)
    return found


def _note_calls(functions: dict[str, list[FunctionType]], called: set[str]) -> None:
    """From here on each function that is called adds its name to the set."""
    for place, each in functions.items():
        for number, function in enumerate(each):
            if "<" in place or function.__code__.co_freevars:  # made by a function, such as those of a dataclass
                continue
            right = FunctionType(
                function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
            )
            right.__kwdefaults__ = function.__kwdefaults__
            name = f"_right_{place.replace('.', '_')}_{number}"
            function.__globals__.update({name: right, "_called": called})
            source = f"def noting(*given, **named):\n    _called.add({place!r})\n    return {name}(*given, **named)"
            made: dict[str, Any] = {}
            exec(source, {}, made)
            function.__code__ = made["noting"].__code__


def _exchange(fault: Fault, functions: Sequence[FunctionType]) -> None:
    """Whoever holds the function goes on with the faulty code: a module that imported it, a property, a table."""
    compiled = compile(fault.source, f"<{fault.place}>", "exec", __future__.annotations.compiler_flag)
    for function in functions:
        made: dict[str, Any] = {}
        exec(compiled, function.__globals__, made)
        faulty = made[function.__name__]
        function.__code__ = faulty.__code__
        function.__defaults__ = faulty.__defaults__
        function.__kwdefaults__ = faulty.__kwdefaults__


def _try_anew(fault: Fault, arguments: Sequence[str]) -> None:
    forget_imports(fault)
    os._exit(pytest.main(["-x", *PYTEST_ARGUMENTS, *arguments]) != pytest.ExitCode.OK)


def _in_a_fork(work: Callable[[], None], cpu_seconds: float) -> str:
    """What became of the work: survived, killed, timeout where it took longer than allowed, untried."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        try:
            work()
            os._exit(0)
        finally:  # whatever was raised: by a test, or by pytest because of the fault
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) == signal.SIGPROF else "killed"
    return {0: "survived", NO_TRIAL: "untried"}.get(os.WEXITSTATUS(status), "killed")


def try_faults(trials: Trials, tests: Sequence[str]) -> list[str]:
    """Tries them all; the tests that were left out. Raises RuntimeError with what pytest said where it could not."""
    said = StringIO()
    with redirect_stdout(said):
        code = pytest.main([*PYTEST_ARGUMENTS, *tests], plugins=[trials])
    if code != pytest.ExitCode.OK:
        raise RuntimeError(said.getvalue())
    return sorted(trials.failing)
