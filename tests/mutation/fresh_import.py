"""How does a fault get into a function that is called while its module is imported?"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType

from tests.mutation.faults import Fault

OURS = ("autoscaler", "policies", "tests")


class FaultyImport:
    """Finds the faulty module in place of the file."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault

    def find_spec(self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        """The faulty module's, None for every other."""
        if name != self._fault.module:
            return None
        path = f"{name.replace('.', '/')}.py"
        return importlib.util.spec_from_file_location(name, path, loader=_FaultyLoader(name, path, self._fault))


class _FaultyLoader(SourceFileLoader):
    def __init__(self, name: str, path: str, fault: Fault) -> None:
        super().__init__(name, path)
        self._fault = fault

    def get_data(self, path: str) -> bytes:
        return self._fault.module_source.encode()

    def path_stats(self, path: str) -> dict[str, float]:
        raise OSError("there is no compiled file of a faulty module")


def forget_imports(fault: Fault) -> None:
    """From here on our modules are imported anew, one of them with the fault."""
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        if not name.startswith("tests.mutation"):
            del sys.modules[name]
    sys.meta_path.insert(0, FaultyImport(fault))
