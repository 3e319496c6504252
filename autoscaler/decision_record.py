"""What is written down of one decision? Its whole input, what came of it, and enough of the result to check it by.

`DECISION_RECORD.md` describes the format. Short by form, not by loss: what has its default is left out, and so is what
follows from the rest (a vote's demand and share are among its values; what is remembered is the next record's history).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from policies.decision import DecisionStep, ScalingDecision, counterfactuals_of, decide
from policies.decision_input import DecisionInput
from policies.history import ScalingHistory
from policies.reasons import Reason
from policies.recommendation import ScalingRecommendation

# Grows when a field or a default changes its meaning or goes away, not when a field is added.
SCHEMA_VERSION = 3

JsonObject = dict[str, Any]  # a document whose members are read by their names
# What all signals of one scrape share is written at the first one alone, and at those where it is otherwise.
ALIKE_IN_ALL_SIGNALS = ("freshReplicas", "oldestAgeSeconds")
_HISTORY: TypeAdapter[ScalingHistory] = TypeAdapter(ScalingHistory)


@dataclass(frozen=True, slots=True)
class ActuationOutcome:
    """What came of the decision: written, not written and why, or nothing to write.

    `emptied_nodes` are left without any replica by it, where it was chosen which go.
    """

    reason: Reason
    message: str
    emptied_nodes: int = 0


@dataclass(frozen=True, slots=True)
class RecordedVote:
    """One vote: the replicas it asks for and the terms of its formula, or the reason and a sentence for no opinion.

    `cautious_replicas` is what it asks for if unseen replicas are full, None where that is the same. A vote that is
    advice has had no effect. Numbers have nine significant digits here: the input has all of them.
    """

    replicas: float | None = None
    cautious_replicas: float | None = None
    values: Mapping[str, float] | None = None
    reason: Reason | None = None
    message: str = ""
    is_advice: bool = False


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One limit that had something to do or to say: the count before and after it (None: as before), and why.

    What it said stands in the decision's sentence.
    """

    name: str
    before: int
    reason: Reason
    after: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """The result: who asked for what (votes by name), and what limited it, in order; the other limits let it through.

    `without` has the counts that would have come without the binding vote, and without each limit that changed the
    count; `with_advice` those with each vote that is advice only. `remembered` is a digest of what the next decision
    remembers, which the next record holds whole.
    """

    desired_replicas: int
    reason: Reason
    message: str
    remembered: str
    binding: str | None = None
    votes: Mapping[str, RecordedVote] | None = None
    steps: tuple[RecordedStep, ...] = ()
    without: Mapping[str, int] | None = None
    with_advice: Mapping[str, int] | None = None


class DecisionRecord(BaseModel):
    """One decision with its whole input and what came of it."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        ser_json_inf_nan="strings",  # so that a number that should never be there is seen
    )

    schema_version: int
    time: str
    namespace: str
    name: str
    input: DecisionInput
    decision: RecordedDecision
    actuation: ActuationOutcome

    def to_json_line(self) -> str:
        """The record as one line of JSON, without the line's end."""
        return orjson.dumps(self.document()).decode()

    def document(self) -> JsonObject:
        """The record as it stands in the line: there a path can be named, and NaN equals itself."""
        # By way of JSON, where alone a number that is not finite becomes a string.
        document: JsonObject = orjson.loads(self.model_dump_json(by_alias=True, exclude_defaults=True))
        signals = list(document["input"]["metrics"].get("signals", {}).values())
        for signal in signals:
            signal.setdefault("oldestAgeSeconds", 0.0)
        for signal in signals[1:]:
            for name in ALIKE_IN_ALL_SIGNALS:
                if signal[name] == signals[0][name]:
                    del signal[name]
        return document


class _Version(BaseModel):
    """Read first: what else a newer record holds may be unknown here."""

    schema_version: int = Field(alias="schemaVersion", ge=1)


def record_decision(
    namespace: str, name: str, decision_input: DecisionInput, decision: ScalingDecision, actuation: ActuationOutcome
) -> DecisionRecord:
    """The record of one decision; its time is the input's."""
    return DecisionRecord(
        schema_version=SCHEMA_VERSION,
        time=_time_of(decision_input),
        namespace=namespace,
        name=name,
        input=decision_input,
        decision=_recorded(decision_input, decision),
        actuation=actuation,
    )


def _time_of(decision_input: DecisionInput) -> str:
    """The input's moment as a person reads it; the bare number where no calendar goes so far."""
    try:
        moment = datetime.fromtimestamp(decision_input.now_seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{decision_input.now_seconds:g}"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _recorded(decision_input: DecisionInput, decision: ScalingDecision) -> RecordedDecision:
    otherwise = counterfactuals_of(decision_input)
    remembered = _HISTORY.dump_json(decision.next_history, exclude_defaults=True)
    return RecordedDecision(
        desired_replicas=decision.desired_replicas,
        reason=decision.reason,
        message=decision.message,
        remembered=hashlib.sha256(remembered).hexdigest()[:8],
        binding=decision.binding,
        votes={vote.recommender: _recorded_vote(vote) for vote in decision.recommendations} or None,
        steps=tuple(_recorded_step(step) for step in decision.steps if step.is_telling),
        without=otherwise.without or None,
        with_advice=otherwise.with_advice or None,
    )


def _recorded_vote(vote: ScalingRecommendation) -> RecordedVote:
    if vote.replicas is None:
        return RecordedVote(reason=vote.reason, message=vote.message, is_advice=vote.is_advice)
    return RecordedVote(
        replicas=_legible(vote.replicas),
        cautious_replicas=(
            None
            if vote.cautious_replicas is None or vote.cautious_replicas == vote.replicas
            else _legible(vote.cautious_replicas)
        ),
        values={name: _legible(value) for name, value in vote.values.items()},
        is_advice=vote.is_advice,
    )


def _legible(value: float) -> float:
    return float(f"{value:.9g}")


def _recorded_step(step: DecisionStep) -> RecordedStep:
    return RecordedStep(step.name, step.before, step.reason, None if step.after == step.before else step.after)


def read_record(line: str) -> DecisionRecord | str:
    """A record from one line of JSON, or a sentence that says what is wrong with the line."""
    try:
        version = _Version.model_validate_json(line).schema_version
        if version != SCHEMA_VERSION:
            age = "newer" if version > SCHEMA_VERSION else "older"
            return f"schemaVersion {version} is {age} than this program's {SCHEMA_VERSION}"
        return DecisionRecord.model_validate_json(orjson.dumps(_with_whole_signals(orjson.loads(line))))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"{place}: {first['msg']}" if place else first["msg"]


def _with_whole_signals(document: JsonObject) -> JsonObject:
    """The document with what its signals have in common put back into each; changed in place."""
    match document:
        case {"input": {"metrics": {"signals": {**signals}}}}:
            known = [each for each in signals.values() if isinstance(each, dict)]
            for signal in known[1:]:
                for name in ALIKE_IN_ALL_SIGNALS:
                    if name in known[0]:
                        signal.setdefault(name, known[0][name])
        case _:
            pass  # no such record, or nothing was seen: the types say
    return document


def differences(record: DecisionRecord) -> tuple[str, ...]:
    """Decides the record's input again; one sentence for each part of the decision that comes out otherwise.

    The record's `time`, by which a person looks for it, is compared with the input's too. A damaged input may be one
    that nobody could have decided: a moment beyond the calendar, a replica that can do nothing.
    """
    try:
        decided = _recorded(record.input, decide(record.input))
    except (ArithmeticError, ValueError, OSError) as error:
        return (f"input: it cannot be decided: {error}",)
    again = record.model_copy(update={"time": _time_of(record.input), "decision": decided})
    before, after = record.document(), again.document()
    return tuple(each for part in ("time", "decision") for each in _differences(part, before[part], after[part]))


def _differences(path: str, recorded: Any, again: Any) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(again, dict):
        for name in recorded | again:
            yield from _differences(f"{path}.{name}", recorded.get(name), again.get(name))
    elif isinstance(recorded, list) and isinstance(again, list) and len(recorded) == len(again):
        for index, (before, after) in enumerate(zip(recorded, again, strict=True)):
            yield from _differences(f"{path}[{index}]", before, after)
    elif recorded != again:
        yield f"{path}: recorded {json.dumps(recorded)}, decided again {json.dumps(again)}"
