"""Which metric sequences are played to a real HPA? Each row is one HPA, its start, and its metrics sync by sync.

Syncs are two seconds apart, and all windows and periods are an odd number of seconds: so no age is ever near the end
of a window, and a machine that is late by half a second decides the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SYNC_SECONDS = 2.0

# One metric at one sync: a sum, the values of several series, or nothing (the metric is not there).
Value = float | tuple[float, ...] | None


@dataclass(frozen=True)
class PlayedMetric:
    """One External metric: its target and its value at each sync."""

    target: float
    values: tuple[Value, ...]
    target_type: str = "AverageValue"


@dataclass(frozen=True)
class HPAPlay:
    """One HPA. `is_ours` says whether our policies can say the same; else only `policies.hpa` is compared.

    `set_by_others` is the count that somebody else has given the target by then, by sync.
    """

    name: str
    start: int
    behavior: Mapping[str, Any] | None
    metrics: tuple[PlayedMetric, ...]
    minimum: int = 1
    maximum: int = 20
    is_ours: bool = True
    set_by_others: Mapping[int, int] = field(default_factory=dict)

    @property
    def syncs(self) -> int:
        """How many syncs it lasts."""
        return len(self.metrics[0].values)


def _metric(target: float, *replicas: Value, target_type: str = "AverageValue") -> PlayedMetric:
    """The metric that asks for so many replicas, sync by sync."""
    return PlayedMetric(target, tuple(_times(count, target) for count in replicas), target_type)


def _times(count: Value, target: float) -> Value:
    if count is None:
        return None
    return tuple(part * target for part in count) if isinstance(count, tuple) else count * target


def _rules(
    window: int, *policies: tuple[str, int, int], select: str = "Max", tolerance: float = 0.1
) -> Mapping[str, Any]:
    return {
        "stabilizationWindowSeconds": window,
        "selectPolicy": select,
        "policies": [{"type": kind, "value": value, "periodSeconds": period} for kind, value, period in policies],
        "tolerance": tolerance,
    }


FREELY = ("Percent", 900, 1)
ALL = ("Percent", 100, 1)
UP_AT_ONCE = _rules(0, FREELY)
DOWN_AT_ONCE = _rules(1, ALL)

PLAYS = (
    HPAPlay(
        "a step goes up at once and comes down after the window",
        start=2,
        behavior={"scaleUp": UP_AT_ONCE, "scaleDown": _rules(9, ALL)},
        metrics=(_metric(10.0, *[2] * 2, *[9] * 3, *[3] * 8, *[7] * 2, *[2.5] * 8),),
    ),
    HPAPlay(
        "a new peak within the window holds the count up, and the highest of the window is what remains",
        start=4,
        behavior={"scaleUp": UP_AT_ONCE, "scaleDown": _rules(7, ALL)},
        metrics=(_metric(3.0, 4, 10, 6, 5, 8, 4, 4, 4, 6, 3, 3, 3, 3, 3, 12, 2, 2, 2, 2, 2, 2, 2),),
    ),
    HPAPlay(
        "growth takes the lowest of its window: a spike shorter than that is no growth",
        start=3,
        behavior={"scaleUp": _rules(5, FREELY), "scaleDown": _rules(5, ALL)},
        metrics=(_metric(10.0, 3, 3, 9, 9, 3, 3, 8, 8, 7, 9, 9, 12, 6, 12, 12, 12, 12, 2, 2, 12, 2, 2, 2, 2),),
    ),
    HPAPlay(
        "windows in both directions hold a load that swings",
        start=5,
        behavior={"scaleUp": _rules(3, FREELY), "scaleDown": _rules(11, ALL)},
        metrics=(_metric(1.0, *[8, 4] * 4, *[8, 8, 4] * 3, *[2] * 8),),
    ),
    HPAPlay(
        "autoscaling/v2's own rates: 4 pods or 100 percent in 15 s, whichever is more",
        start=1,
        behavior={
            "scaleUp": _rules(0, ("Pods", 4, 15), ("Percent", 100, 15)),
            "scaleDown": _rules(3, ("Percent", 100, 15)),
        },
        metrics=(_metric(10.0, *[19] * 21, *[1] * 4),),
    ),
    HPAPlay(
        "of two policies the smaller change may rule",
        start=2,
        behavior={
            "scaleUp": _rules(0, ("Pods", 3, 5), ("Percent", 100, 5), select="Min"),
            "scaleDown": _rules(1, ("Pods", 2, 7), ("Percent", 50, 3), select="Min"),
        },
        metrics=(_metric(10.0, *[18] * 11, *[1] * 14),),
    ),
    HPAPlay(
        "one pod at a time, and what has just been added is netted against what may be taken away",
        start=6,
        behavior={"scaleUp": _rules(0, ("Pods", 3, 7)), "scaleDown": _rules(1, ("Pods", 1, 3))},
        metrics=(_metric(10.0, *[12] * 3, *[4] * 5, *[11] * 4, *[3] * 3, *[9] * 4, *[3] * 6),),
    ),
    HPAPlay(
        "a period of one direction reaches further back than the other direction keeps its events",
        start=4,
        behavior={"scaleUp": _rules(0, ("Pods", 1, 9)), "scaleDown": _rules(1, ("Pods", 1, 1))},
        metrics=(_metric(10.0, 9, 9, 2, 2, 9, 9, 2, 2, 2, 9, 9, 9, 9, 9, 2, 9, 2, 9, 9, 9, 9, 9),),
    ),
    HPAPlay(
        "growth that is disabled never happens; shrinking does",
        start=6,
        behavior={"scaleUp": _rules(0, FREELY, select="Disabled"), "scaleDown": DOWN_AT_ONCE},
        metrics=(_metric(10.0, 9, 9, 5, 5, 9, 12, 3, 3, 9, 2, 2, 20),),
    ),
    HPAPlay(
        "shrinking that is disabled never happens; growth does",
        start=3,
        behavior={"scaleUp": UP_AT_ONCE, "scaleDown": _rules(1, ALL, select="Disabled")},
        metrics=(_metric(10.0, 2, 2, 5, 5, 2, 1, 6, 3, 9, 2, 2, 1),),
    ),
    HPAPlay(
        "the tolerance is judged per direction, and its ends belong to the band",
        start=10,
        behavior={"scaleUp": _rules(0, FREELY, tolerance=0.1), "scaleDown": _rules(1, ALL, tolerance=0.2)},
        metrics=(_metric(10.0, *[10.9, 11.0, 8.1, 8.0, 10.9] * 2, *[11.1] * 3, 12.2, 13.3, 13.2, *[10.3] * 3),),
    ),
    HPAPlay(
        "no tolerance at all: every thousandth counts",
        start=5,
        behavior={"scaleUp": _rules(0, FREELY, tolerance=0), "scaleDown": _rules(1, ALL, tolerance=0)},
        metrics=(_metric(1.0, 5.0, 5.001, 5.001, 6.0, 5.999, 6.001, 5.001, 5.0, 4.999, 4.001, 4.0, 3.999),),
    ),
    HPAPlay(
        "a fifth that floats cannot hold: targets and tolerances in tenths",
        start=3,
        behavior={"scaleUp": _rules(0, FREELY, tolerance=0.3), "scaleDown": _rules(1, ALL, tolerance=0.3)},
        metrics=(_metric(0.1, 3, 3.9, 3.901, 2.8, 2.799, 3, 3.9, 4.1, 4.1, 11, 14.3, 14.31, 7.7, 7.69, 5),),
    ),
    HPAPlay(
        "never below the minimum, never above the maximum",
        start=4,
        minimum=3,
        maximum=8,
        behavior={"scaleUp": UP_AT_ONCE, "scaleDown": DOWN_AT_ONCE},
        metrics=(_metric(10.0, 4, 9, 12, 40, 7, 2, 1, 0, 0, 5, 30, 30, 0.5),),
    ),
    HPAPlay(
        "a count above the maximum is cut before any metric is read, and that cut is an event of the rates",
        start=12,
        maximum=8,
        behavior={"scaleUp": _rules(0, ("Pods", 1, 7)), "scaleDown": _rules(1, ("Pods", 5, 5))},
        metrics=(_metric(10.0, *[2] * 8, *[8] * 4),),
    ),
    HPAPlay(
        "a count below the minimum is raised before any metric is read, and that rise is an event of the rates",
        start=1,
        minimum=4,
        behavior={"scaleUp": _rules(0, ("Pods", 5, 7)), "scaleDown": _rules(1, ALL)},
        metrics=(_metric(10.0, *[12] * 9, *[4] * 3),),
    ),
    HPAPlay(
        "percents in float arithmetic: 10 more on 100 are 111, 90 off 10 leave nothing but the minimum",
        start=100,
        maximum=400,
        behavior={
            "scaleUp": _rules(0, ("Percent", 10, 1)),
            "scaleDown": _rules(1, ("Percent", 90, 1)),
        },
        metrics=(_metric(10.0, *[200] * 8, 10, 10, 10, 1, 1, *[60] * 6),),
    ),
    HPAPlay(
        "counts that others set are where it goes on from, and no events of the rates",
        start=4,
        behavior={"scaleUp": _rules(0, ("Pods", 2, 7)), "scaleDown": _rules(3, ("Pods", 3, 5))},
        metrics=(_metric(10.0, *[9] * 9, *[3] * 9),),
        set_by_others={2: 3, 5: 8, 11: 12, 14: 2},
    ),
    HPAPlay(
        "a metric that is missing moves nothing",
        start=4,
        behavior={"scaleUp": UP_AT_ONCE, "scaleDown": _rules(5, ALL)},
        metrics=(_metric(10.0, 4, None, None, 9, None, None, None, 3, None, None, 3, None, 3, 3, None, 3, 2, 2, 2),),
    ),
    HPAPlay(
        "of two metrics the one that asks for more rules",
        start=3,
        behavior={"scaleUp": UP_AT_ONCE, "scaleDown": _rules(5, ALL)},
        metrics=(
            _metric(10.0, 3, 5, 5, 2, 2, 2, 7, 7, 3.2, 3, 3, 3, 3, 2, 2, 2, 2),
            _metric(0.5, 2, 2, 6, 6, 4.1, 4, 4, 3, 3, 3, 9, 1, 1, 1, 1, 1, 1),
        ),
    ),
    HPAPlay(
        "one metric missing: the other may raise and must not lower",
        start=4,
        behavior={"scaleUp": UP_AT_ONCE, "scaleDown": DOWN_AT_ONCE},
        metrics=(
            _metric(10.0, 4, None, None, None, None, 3, 3, 8, 8, None, 8, 2, 2),
            _metric(7.0, 2, 2, 6, 3, 3, 3, None, None, 9, 9, 2, None, 2),
        ),
    ),
    HPAPlay(
        "the series of one metric are added up",
        start=2,
        behavior={"scaleUp": UP_AT_ONCE, "scaleDown": DOWN_AT_ONCE},
        metrics=(_metric(2.5, (1, 1), (1.5, 2.5, 0.5), (4, 3), (0.1, 0.2, 0.3), (6.0,), (), (), (2, 0, 0.5)),),
    ),
    HPAPlay(
        "three metrics, rates and windows together",
        start=8,
        behavior={
            "scaleUp": _rules(3, ("Pods", 2, 5), ("Percent", 30, 3)),
            "scaleDown": _rules(7, ("Pods", 3, 5), ("Percent", 20, 3), select="Min"),
        },
        metrics=(
            _metric(10.0, *[8] * 3, *[14] * 6, *[5] * 15),
            _metric(100.0, *[7] * 3, *[10] * 4, *[16] * 4, *[4] * 3, *[9] * 2, *[3] * 8),
            _metric(0.3, *[6] * 10, None, None, *[6] * 5, None, *[4] * 6),
        ),
    ),
    HPAPlay(
        "a target for the whole pool goes by the three replicas that are ready",
        start=4,
        behavior={"scaleUp": UP_AT_ONCE, "scaleDown": _rules(5, ALL)},
        metrics=(_metric(50.0, 1, 1.09, 2, 2, 0.95, 3.4, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, target_type="Value"),),
    ),
    HPAPlay(
        "without a behavior: at most double or four, the controller's window of 5 s, and its peaks may still raise",
        start=1,
        is_ours=False,
        behavior=None,
        metrics=(_metric(10.0, 1, 9, 9, 2, 2, 2, 15, 15, 3, 3, 3, 3, 1.05, 1.05, 1.05, 12, 1, 1, 1, 1),),
    ),
    HPAPlay(
        "to zero by the metric alone, and back",
        start=3,
        minimum=0,
        is_ours=False,
        behavior={"scaleUp": _rules(0, ("Pods", 4, 1)), "scaleDown": _rules(5, ALL)},
        metrics=(_metric(10.0, 3, 0, 0, 0, 0, 0, 0, 0.1, 6, 6, 0, 0, 0, 0, 3, 3),),
    ),
)
