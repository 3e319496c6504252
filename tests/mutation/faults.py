"""Which small faults can be made in a module of `policies/`?

mutmut says what is changed (a `<` to a `<=`, a number to the next, an argument to None). Left out are the words of a
sentence: a string with a space in it, or one inside an f-string, is for people; what it must say stands in
`tests/policies/test_sentences.py`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
from mutmut.mutation.file_mutation import Mutation, create_mutations, deep_replace


@dataclass(frozen=True, slots=True)
class Fault:
    """One changed function, alone and in its whole module; `before` and `after` are the lines that differ."""

    module: str
    function: str
    source: str
    module_source: str
    before: str
    after: str

    @property
    def place(self) -> str:
        """The function's full name, such as `policies.history.ScalingHistory.with_rescale`."""
        return f"{self.module}.{self.function}"


@dataclass(frozen=True, slots=True)
class FaultyModule:
    """A module and the faults that can be made in it. Writing one out takes time: it is done where it is asked for."""

    name: str
    tree: cst.Module
    decorated: dict[str, cst.FunctionDef]
    mutations: tuple[tuple[str, cst.FunctionDef, Mutation], ...]

    def fault(self, number: int) -> Fault:
        """The fault by its number."""
        name, node, mutation = self.mutations[number]
        faulty = deep_replace(node, mutation.original_node, mutation.mutated_node)
        assert isinstance(faulty, cst.FunctionDef)
        right, wrong = self.tree.code_for_node(node), self.tree.code_for_node(faulty)
        in_place = self.decorated[name]
        whole = deep_replace(self.tree, in_place, faulty.with_changes(decorators=in_place.decorators))
        assert isinstance(whole, cst.Module)
        return Fault(self.name, name, wrong, whole.code, _new_lines(wrong, right), _new_lines(right, wrong))


def faulty_module(path: Path, root: Path) -> FaultyModule:
    """The faults of the module's functions, in their order. Decorated ones have theirs too: the decorator stays."""
    tree = cst.parse_module(path.read_text(encoding="utf-8"))
    bare = tree.visit(_WithoutDecorators())
    bare, mutations, _, _ = create_mutations(str(path), bare.code)
    names = {node: name for name, node in _functions(bare)}
    within_sentences = _Words()
    bare.visit(within_sentences)
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    kept = tuple(_of_functions(mutations, names, within_sentences.found))
    return FaultyModule(name, tree, dict(_functions(tree)), kept)


class _Words(cst.CSTVisitor):
    """Finds the strings inside f-strings, such as the noun that is counted."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[cst.CSTNode] = set()
        self._depth = 0

    def visit_FormattedString(self, node: cst.FormattedString) -> None:  # noqa: N802
        self._depth += 1

    def leave_FormattedString(self, original_node: cst.FormattedString) -> None:  # noqa: N802
        self._depth -= 1

    def visit_SimpleString(self, node: cst.SimpleString) -> None:  # noqa: N802
        if self._depth:
            self.found.add(node)


class _WithoutDecorators(cst.CSTTransformer):
    """mutmut leaves decorated functions alone, since it would have to decorate each fault anew."""

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:  # noqa: N802
        return updated_node.with_changes(decorators=[])


def _functions(tree: cst.Module) -> Iterator[tuple[str, cst.FunctionDef]]:
    for statement in tree.body:
        if isinstance(statement, cst.FunctionDef):
            yield statement.name.value, statement
        elif isinstance(statement, cst.ClassDef):
            for member in statement.body.body:
                if isinstance(member, cst.FunctionDef):
                    yield f"{statement.name.value}.{member.name.value}", member


def _of_functions(
    mutations: list[Mutation], names: dict[cst.FunctionDef, str], words: set[cst.CSTNode]
) -> Iterator[tuple[str, cst.FunctionDef, Mutation]]:
    for mutation in mutations:
        node = mutation.contained_by_top_level_function
        changed = mutation.original_node
        if isinstance(node, cst.FunctionDef) and changed not in words and not _is_sentence(changed):
            yield names[node], node, mutation


def _is_sentence(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleString) and " " in node.value


def _new_lines(before: str, after: str) -> str:
    """The lines of the second that the first has not, as one line."""
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return " ".join(line[2:].strip() for line in lines if line.startswith("+ "))
