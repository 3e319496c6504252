"""How are names and numbers written safely into PromQL, and is a text of somebody else one whole expression?"""

from __future__ import annotations

from collections.abc import Iterable

_REGULAR_EXPRESSION_SIGNS = set(".+*?()[]{}|^$\\")
_OPENING = {"(": ")", "[": "]", "{": "}"}

# A longer list of namespaces costs more to send with every selector than it saves: then all namespaces are asked for
# and the rows of others are dropped here.
MAXIMUM_MATCHER_CHARACTERS = 2000


def quoted(text: str) -> str:
    """A PromQL string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def one_of(label: str, values: Iterable[str]) -> str:
    """A matcher for series whose label is one of the values; for very many values one that only wants the label."""
    names = sorted(values)
    if len(names) == 1:
        return f"{label}={quoted(names[0])}"
    pattern = "|".join("".join(f"\\{sign}" if sign in _REGULAR_EXPRESSION_SIGNS else sign for sign in n) for n in names)
    if len(pattern) > MAXIMUM_MATCHER_CHARACTERS:
        return f'{label}!=""'
    return f"{label}=~{quoted(pattern)}"


def is_self_contained(promql: str) -> bool:
    """Whether the text stays inside parentheses that are put around it.

    Brackets that close what was opened before, an open string and the like would let one user's text reach into the
    neighbour's when several are sent as one query. Says nothing about whether the expression is right.
    """
    closing: list[str] = []
    position = 0
    while position < len(promql):
        sign = promql[position]
        if sign in "\"'`":
            end = _end_of_string(promql, position)
            if end is None:
                return False
            position = end
        elif sign == "#":
            end_of_line = promql.find("\n", position)
            position = len(promql) if end_of_line < 0 else end_of_line
        elif sign in _OPENING:
            closing.append(_OPENING[sign])
        elif sign in ")]}" and (not closing or closing.pop() != sign):
            return False
        position += 1
    return not closing and bool(promql.strip())


def _end_of_string(promql: str, start: int) -> int | None:
    quote, position = promql[start], start + 1
    while position < len(promql):
        if promql[position] == "\\" and quote != "`":
            position += 1
        elif promql[position] == quote:
            return position
        position += 1
    return None
