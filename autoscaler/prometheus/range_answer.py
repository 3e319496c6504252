"""What may come back from a range query: series of numbers at even steps, or one of the failures of any question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoscaler.prometheus.answer import PrometheusFailure, bad_answer, excerpt, is_remark


@dataclass(frozen=True, slots=True)
class RangeQuestion:
    """A range query: a value at each of `steps` moments, `step_seconds` apart, the last at `ends_at_seconds`."""

    name: str
    promql: str
    ends_at_seconds: float
    step_seconds: int
    steps: int

    @property
    def starts_at_seconds(self) -> float:
        """The first moment."""
        return self.ends_at_seconds - self.step_seconds * (self.steps - 1)


@dataclass(frozen=True, slots=True)
class RangeSeries:
    """One series: its labels and its value at each moment, NaN where it has none."""

    labels: Mapping[str, str]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RangeVector:
    """The series of a range query. With `is_partial` some may be missing (a store that did not answer)."""

    series: list[RangeSeries]
    warnings: tuple[str, ...] = ()

    @property
    def is_partial(self) -> bool:
        """Whether the warnings say more than a remark on the query."""
        return any(not is_remark(warning) for warning in self.warnings)


def read_range(document: Any, question: RangeQuestion, asked: str) -> RangeVector | PrometheusFailure:
    """A decoded 200 answer of /api/v1/query_range -> its series, or why it is none. `asked` opens the message."""
    if not isinstance(document, dict) or document.get("status") != "success":
        return bad_answer(asked, f"a document without status success: {excerpt(repr(document))}")
    data = document.get("data")
    if not isinstance(data, dict) or data.get("resultType") != "matrix":
        return bad_answer(asked, "no range of numbers")
    try:
        series = [RangeSeries(row["metric"], _values(row.get("values", ()), question)) for row in data["result"]]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return bad_answer(asked, f"a result that cannot be read ({type(error).__name__}: {excerpt(str(error))})")
    return RangeVector(series, tuple(excerpt(str(warning)) for warning in document.get("warnings") or ()))


def _values(rows: Any, question: RangeQuestion) -> NDArray[np.float64]:
    values = np.full(question.steps, np.nan)
    for moment, text in rows:
        place = round((float(moment) - question.starts_at_seconds) / question.step_seconds)
        if 0 <= place < question.steps:
            values[place] = float(text)
    return values
