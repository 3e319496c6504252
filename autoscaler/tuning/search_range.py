"""What does `--search PARAM=RANGE` ask for, and is it a range that the parameter may have?"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache

from autoscaler.api.inference_scaler import InferenceScalerSpec
from autoscaler.api.structural_schema import JsonObject, structural_schema
from autoscaler.reference.knobs import Knob, knobs
from autoscaler.tuning.dimension import Choice, Dimension, NumberRange, Value, shown_value

EXAMPLES = "behavior.scaleDown.stabilizationWindowSeconds=60..900, signals.tokenRate.perReplicaPerSecond=100k..300k"
# From this ratio of its ends on a range is searched by the logarithm, unless it says otherwise.
WIDE_RATIO = 10.0
# What a replay cannot judge: who the pool is, what may be written, and who yields to whom.
_NOT_SEARCHED = ("mode", "engine", "scaleTargetRef", "acceleratorPoolRef", "acceleratorsPerReplica", "priority")
_SUFFIXES = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_NUMBER = r"([+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?)([kMG]?)"
_RANGE = re.compile(rf"{_NUMBER}\.\.{_NUMBER}(?::(log|linear))?")
_INDEX = re.compile(r"\[\d+\]")


@cache
def _searchable() -> Mapping[str, Knob]:
    """The parameters of an InferenceScaler that are numbers, words of a list, or true and false, by path."""
    found = {}
    for knob in knobs(structural_schema(InferenceScalerSpec)):
        is_single = knob.schema["type"] in ("integer", "number", "boolean") or "enum" in knob.schema
        if is_single and knob.path.partition(".")[0] not in _NOT_SEARCHED:
            found[knob.path] = knob
    return found


def read_range(text: str) -> Dimension | str:
    """One `PARAM=RANGE`, or what is wrong with it.

    PARAM is a path into the spec; [0] is the first item of a list. RANGE is LOW..HIGH (numbers may end in k, M or G),
    with `:log` or `:linear` behind it where the scale is not to be chosen by its width, or values between commas, with
    or without braces around them.
    """
    path, is_given, asked = (part.strip() for part in text.partition("="))
    if not is_given or not path or not asked:
        return f"--search {text}: PARAM=RANGE is wanted, such as {EXAMPLES}"
    knob = _searchable().get(_INDEX.sub("[]", path))
    if knob is None:
        return f"--search {text}: {_unknown(path)}"
    if ".." in asked:
        return _number_range(text, path, asked, knob)
    return _choice(text, path, asked, knob)


def _unknown(path: str) -> str:
    general = _INDEX.sub("[]", path)
    if general.partition(".")[0] in _NOT_SEARCHED:
        return f"{path} is nothing that a replay can judge"
    if f"{general}[]" in {known[: len(general) + 2] for known in _searchable()}:
        return f"{path} is a list; name one of its items, such as {path}[0]"
    inside = [known for known in _searchable() if known.startswith(f"{general}.")]
    if inside:
        return f"{path} is a block; name a field of it: {', '.join(inside)}"
    # What is meant is mostly the right last word under the wrong block, or a slip in a word.
    same_end = [known for known in _searchable() if known.rpartition(".")[2] == general.rpartition(".")[2]]
    near = same_end or difflib.get_close_matches(general, _searchable(), n=2, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(_searchable())}"
    return f"{path} is no parameter of an InferenceScaler that is a number, a word or true and false; {hint}"


def _number_range(text: str, path: str, asked: str, knob: Knob) -> Dimension | str:
    kind = knob.schema["type"]
    if kind not in ("integer", "number"):
        return f"--search {text}: {path} is no number; give its values, such as {path}={_values_of(knob)}"
    found = _RANGE.fullmatch(asked)
    if found is None:
        return f"--search {text}: {asked} is no range; LOW..HIGH is wanted, such as 60..900, 100k..300k or 0.1..0.5:log"
    low, high = _number(found[1], found[2]), _number(found[3], found[4])
    if not low < high:
        return f"--search {text}: {found[1]}{found[2]} is not below {found[3]}{found[4]}"
    is_whole = kind == "integer"
    if is_whole and not (low.is_integer() and high.is_integer()):
        return f"--search {text}: {path} is a whole number"
    for end in (low, high):
        if not _is_allowed(end, knob.schema):
            return f"--search {text}: {path} may be {bounds(knob.schema)}{_unit(knob)}, not {shown_value(end)}"
    if found[5] == "log" and low <= 0:
        return f"--search {text}: a logarithmic range begins above 0"
    is_log = found[5] == "log" or (found[5] is None and low > 0 and high / low >= WIDE_RATIO)
    return NumberRange(path, low, high, is_whole, is_log)


def _choice(text: str, path: str, asked: str, knob: Knob) -> Dimension | str:
    if asked.startswith("{") != asked.endswith("}"):
        return f"--search {text}: {asked} lacks a brace; in a shell put the whole in quotes, or leave both braces out"
    values: list[Value] = []
    for word in (each.strip() for each in asked.strip("{}").split(",")):
        value = _value(word, knob.schema)
        if isinstance(value, _NotAllowed):
            allowed = f"{bounds(knob.schema)}{_unit(knob)}"
            return f"--search {text}: {path} may be {allowed}, not {word or 'nothing'}"
        if value not in values:
            values.append(value)
    if len(values) < 2:
        return f"--search {text}: a range LOW..HIGH or several values, such as {_values_of(knob)}, are wanted"
    return Choice(path, tuple(values))


class _NotAllowed:
    """A word that is no value of the parameter."""


def _value(word: str, schema: JsonObject) -> Value | _NotAllowed:
    if word == "null":
        return None if schema.get("nullable") else _NotAllowed()
    if schema["type"] == "boolean":
        return {"true": True, "false": False}.get(word, _NotAllowed())
    if "enum" in schema:
        return word if word in schema["enum"] else _NotAllowed()
    found = re.fullmatch(_NUMBER, word)
    if found is None:
        return _NotAllowed()
    number = _number(found[1], found[2])
    if not _is_allowed(number, schema) or (schema["type"] == "integer" and not number.is_integer()):
        return _NotAllowed()
    return int(number) if schema["type"] == "integer" else number


def _number(digits: str, suffix: str) -> float:
    return float(digits) * _SUFFIXES[suffix]


def _is_allowed(number: float, schema: JsonObject) -> bool:
    least, most = schema["minimum"], schema["maximum"]
    return least <= number <= most and not (schema.get("exclusiveMinimum") and number == least)


def bounds(schema: JsonObject) -> str:
    """What a value may be, in words."""
    if schema["type"] == "boolean":
        return "true or false"
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    above = "above " if schema.get("exclusiveMinimum") else ""
    return f"{above}{schema['minimum']:,} to {schema['maximum']:,}".replace(",", " ")


def _unit(knob: Knob) -> str:
    return f" ({knob.unit})" if knob.unit else ""


def _values_of(knob: Knob) -> str:
    if knob.schema["type"] == "boolean":
        return "true,false"
    return ",".join(map(str, knob.schema.get("enum", (1, 2))))
