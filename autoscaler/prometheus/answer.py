"""What may come back from Prometheus: labelled numbers, or one of five failures, each as a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

from policies.reasons import Reason

LabelledValue: TypeAlias = tuple[Mapping[str, str], float]

# Prometheus >= 2.48 also writes remarks on the query itself into `warnings`; they do not say that data is missing.
_REMARK = re.compile(r"PromQL (info|warning):")
_TAG = re.compile(r"<[^>]*>")
EXCERPT_LENGTH = 240
_WRONG_TYPE = "resultType"


class FailureKind(StrEnum):
    """How a question failed."""

    UNREACHABLE = "unreachable"  # refused, no route, TLS, broken off
    TIMEOUT = "timeout"  # no whole answer in time
    REJECTED = "rejected"  # an HTTP status other than 200, or our own credentials cannot be read
    BAD_ANSWER = "badAnswer"  # 200, but not what Prometheus answers: a login page, truncated JSON, a matrix
    TOO_LARGE = "tooLarge"  # more bytes than we are willing to hold


_REASONS = {
    FailureKind.UNREACHABLE: Reason.PROMETHEUS_UNREACHABLE,
    FailureKind.TIMEOUT: Reason.PROMETHEUS_TIMEOUT,
    FailureKind.REJECTED: Reason.PROMETHEUS_REJECTED,
    FailureKind.BAD_ANSWER: Reason.PROMETHEUS_BAD_ANSWER,
    FailureKind.TOO_LARGE: Reason.PROMETHEUS_BAD_ANSWER,
}


@dataclass(frozen=True, slots=True)
class PrometheusFailure:
    """A question without an answer: of which kind, and a sentence for a person.

    `status` and `error_type` are Prometheus' own for REJECTED (`error_type` None where a proxy answered);
    `error_type` is resultType for an answer that is right and of no use, such as a range.
    """

    kind: FailureKind
    message: str
    status: int | None = None
    error_type: str | None = None

    @property
    def reason(self) -> Reason:
        """The word for log, Event, condition and metric."""
        return _REASONS[self.kind]

    @property
    def is_of_transport(self) -> bool:
        """Whether another question would very likely have failed alike."""
        return self.kind in (FailureKind.UNREACHABLE, FailureKind.TIMEOUT)

    @property
    def is_of_the_query(self) -> bool:
        """Whether the query itself is at fault: the same server may answer another one."""
        if self.kind is FailureKind.REJECTED:
            return self.status in (400, 422)
        return self.kind is FailureKind.TOO_LARGE or self.error_type == _WRONG_TYPE


@dataclass(frozen=True, slots=True)
class Vector:
    """An instant vector: labels and a number (NaN and infinities included) per series; a scalar has no labels.

    `evaluated_at_seconds` is Prometheus' clock (unix time), None for an empty answer. `warnings` are Prometheus' own;
    with `is_partial` some series may be missing (a store that did not answer).
    """

    samples: list[LabelledValue]
    evaluated_at_seconds: float | None
    warnings: tuple[str, ...] = ()
    is_scalar: bool = False

    @property
    def is_partial(self) -> bool:
        """Whether the warnings say more than a remark on the query."""
        return any(not is_remark(warning) for warning in self.warnings)


def is_remark(warning: str) -> bool:
    """Whether a warning of Prometheus speaks of the query, and not of data that may be missing."""
    return _REMARK.match(warning) is not None


def read_answer(document: Any, asked: str) -> Vector | PrometheusFailure:
    """A decoded 200 answer of /api/v1/query -> its vector, or why it is none. `asked` opens the message."""
    if not isinstance(document, dict) or document.get("status") != "success":
        return bad_answer(asked, f"a document without status success: {excerpt(repr(document))}")
    data = document.get("data")
    kind = data.get("resultType") if isinstance(data, dict) else None
    if not isinstance(data, dict) or kind not in ("vector", "scalar"):
        wrong = bad_answer(asked, f"resultType {kind!r}; ask for one number a series now (no range, no string)")
        return replace(wrong, error_type=_WRONG_TYPE)
    warnings = document.get("warnings") or ()
    try:
        if kind == "scalar":
            at, text = data["result"]
            return Vector([({}, float(text))], float(at), _texts(warnings), is_scalar=True)
        rows = data["result"]
        # A native histogram has no single number: NaN, which nobody takes for a value.
        samples = [(row["metric"], float(row["value"][1]) if "value" in row else float("nan")) for row in rows]
        at = rows[0]["value"][0] if rows and "value" in rows[0] else None
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return bad_answer(asked, f"a result that cannot be read ({type(error).__name__}: {excerpt(str(error))})")
    return Vector(samples, None if at is None else float(at), _texts(warnings))


def read_rejection(status: int, document: Any, body: bytes, location: str | None, asked: str) -> PrometheusFailure:
    """An answer with a status other than 200 -> the failure, with Prometheus' own words where it has some."""
    error_type, said = None, None
    if isinstance(document, dict) and isinstance(document.get("error"), str):
        said = excerpt(document["error"])
        error_type = document.get("errorType") if isinstance(document.get("errorType"), str) else None
    if said is None:
        said = excerpt(body.decode("utf-8", "replace")) or "an empty body"
    if location is not None:
        said = f"a redirect to {excerpt(location)}; give that address instead"
    hint = {401: "; check the token or password file", 403: "; check what this login may read", 404: "; check the path"}
    kind = FailureKind.TIMEOUT if error_type in ("timeout", "canceled") else FailureKind.REJECTED
    words = f"{status} {error_type}" if error_type else f"{status}"
    return PrometheusFailure(kind, f"{asked}: {words}: {said}{hint.get(status, '')}", status, error_type)


def bad_body(body: bytes, asked: str) -> PrometheusFailure:
    """A 200 answer that is no JSON."""
    text = body.decode("utf-8", "replace")
    if text.lstrip()[:1] == "<":
        return bad_answer(asked, f"an HTML page ({excerpt(text)}); is this a login page or another server's address?")
    if text.lstrip()[:1] in ("{", "["):
        return bad_answer(asked, f"JSON that breaks off or is damaged after {len(body)} bytes: {excerpt(text)}")
    return bad_answer(asked, f"no JSON: {excerpt(text) or 'an empty body'}")


def excerpt(text: str) -> str:
    """The beginning of a text on one line, without markup, at most 240 characters."""
    flat = " ".join(_TAG.sub(" ", text[: EXCERPT_LENGTH * 20]).split())
    return flat if len(flat) <= EXCERPT_LENGTH else flat[: EXCERPT_LENGTH - 1] + "…"


def bad_answer(asked: str, what: str) -> PrometheusFailure:
    """A 200 answer that is not what was asked for."""
    return PrometheusFailure(FailureKind.BAD_ANSWER, f"{asked}: answered 200 with {what}")


def _texts(warnings: Any) -> tuple[str, ...]:
    return tuple(excerpt(str(warning)) for warning in warnings)
