"""What would a controller that only watched have made of it? Its decision log against what really happened.

A record holds the count that stood, the count that was wished for, and what the load asked for then: the largest vote
that is not of a forecast. A replica counts as ready once it has been wished for throughout the 90 % quantile of the
pool's cold start. What more replicas would have done to the load itself nobody can tell from a log.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from autoscaler.decision_record import DecisionRecord
from policies.history import LONGEST_GAP_SECONDS
from policies.observation import MetricsObservation
from policies.recommenders.forecast import NAME as FORECAST_VOTE


@dataclass(frozen=True, slots=True)
class Shortage:
    """A time in which fewer replicas were ready, or would have been, than the load asked for."""

    begins_at_seconds: float
    seconds: float

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.begins_at_seconds, UTC)
        return f"{moment:%a %Y-%m-%d %H:%M} UTC for {self.seconds:.0f} s"


@dataclass(frozen=True, slots=True)
class Shadow:
    """One pool's log. Hours and shortages are of the time that the records cover, gaps above two minutes left out."""

    namespace: str
    name: str
    covered_seconds: float
    gap_seconds: float
    actual_replica_hours: float
    wished_replica_hours: float
    actual_shortages: tuple[Shortage, ...]
    wished_shortages: tuple[Shortage, ...]
    late_seconds: float  # with the p99 of the time to first token above the objective
    largest_need: int

    def sentence(self) -> str:
        """What a person wants to know, in a few lines."""
        saved = 1.0 - self.wished_replica_hours / self.actual_replica_hours if self.actual_replica_hours else 0.0
        change = f"{100 * abs(saved):.0f} % {'fewer' if saved >= 0 else 'more'}" if abs(saved) >= 0.005 else "as many"
        hours = f"{self.wished_replica_hours:,.1f} instead of {self.actual_replica_hours:,.1f}"
        late = 100 * self.late_seconds / self.covered_seconds if self.covered_seconds else 0.0
        gaps = f" ({self.gap_seconds / 3600:.1f} h are not recorded)" if self.gap_seconds else ""
        return (
            f"{self.namespace}/{self.name}, {self.covered_seconds / 3600:.1f} h{gaps}: it would have used {change} "
            f"replica-hours ({hours}) and would have been short for {_spells(self.wished_shortages)}. The replicas "
            f"that there were, were short for {_spells(self.actual_shortages)}; the p99 of the first token was "
            f"above its objective for {late:.1f} % of the time."
        )


def shadows(records: Iterable[DecisionRecord]) -> Iterator[Shadow]:
    """One for each pool that has at least two records, in the order of their first ones."""
    pools: dict[tuple[str, str], _Pool] = {}
    for record in records:
        pools.setdefault((record.namespace, record.name), _Pool()).take(record)
    for (namespace, name), pool in pools.items():
        if pool.covered_seconds:
            yield pool.result(namespace, name)


@dataclass(slots=True)
class _Spells:
    """Adds up shortages that follow each other without a gap."""

    found: list[Shortage] = field(default_factory=list)
    _is_open: bool = False

    def take(self, begins_at: float, seconds: float, is_short: bool) -> None:
        if is_short and self._is_open:
            last = self.found[-1]
            self.found[-1] = Shortage(last.begins_at_seconds, last.seconds + seconds)
        elif is_short:
            self.found.append(Shortage(begins_at, seconds))
        self._is_open = is_short


@dataclass(slots=True)
class _Pool:
    covered_seconds: float = 0.0
    gap_seconds: float = 0.0
    actual: float = 0.0
    wished: float = 0.0
    late_seconds: float = 0.0
    largest_need: int = 0
    actual_spells: _Spells = field(default_factory=_Spells)
    wished_spells: _Spells = field(default_factory=_Spells)
    _before: DecisionRecord | None = None
    _wishes: deque[tuple[float, int]] = field(default_factory=deque)

    def take(self, record: DecisionRecord) -> None:
        """Accounts for the time from the record before to this one."""
        before, self._before = self._before, record
        if before is None:
            return
        begins_at = before.input.now_seconds
        seconds = record.input.now_seconds - begins_at
        if not 0.0 < seconds <= LONGEST_GAP_SECONDS:
            self.gap_seconds += max(0.0, seconds)
            self._wishes.clear()
            return
        desired, replicas, need = before.decision.desired_replicas, before.input.replicas, _need(before)
        self.covered_seconds += seconds
        self.actual += replicas.spec * seconds
        self.wished += desired * seconds
        self.largest_need = max(self.largest_need, need)
        self.actual_spells.take(begins_at, seconds, replicas.ready < need)
        self.wished_spells.take(begins_at, seconds, self._wished_and_ready(before, begins_at, desired) < need)
        if _is_late(before):
            self.late_seconds += seconds

    def result(self, namespace: str, name: str) -> Shadow:
        return Shadow(
            namespace=namespace,
            name=name,
            covered_seconds=self.covered_seconds,
            gap_seconds=self.gap_seconds,
            actual_replica_hours=self.actual / 3600.0,
            wished_replica_hours=self.wished / 3600.0,
            actual_shortages=tuple(self.actual_spells.found),
            wished_shortages=tuple(self.wished_spells.found),
            late_seconds=self.late_seconds,
            largest_need=self.largest_need,
        )

    def _wished_and_ready(self, record: DecisionRecord, now_seconds: float, desired: int) -> int:
        """The least wish of the last cold start; before one has passed, those that were ready count too."""
        lead_seconds = record.input.cold_start.l90_seconds
        if not self._wishes:
            self._wishes.append((now_seconds - lead_seconds, record.input.replicas.ready))
        self._wishes.append((now_seconds, desired))
        while len(self._wishes) > 1 and self._wishes[1][0] <= now_seconds - lead_seconds:
            self._wishes.popleft()
        return min(count for _, count in self._wishes)


def _need(record: DecisionRecord) -> int:
    votes = record.decision.votes or {}
    wants = [vote.replicas for name, vote in votes.items() if name != FORECAST_VOTE and not vote.is_advice]
    return max((math.ceil(each) for each in wants if each is not None), default=0)


def _is_late(record: DecisionRecord) -> bool:
    metrics, objectives = record.input.metrics, record.input.parameters.objectives
    if objectives is None or not isinstance(metrics, MetricsObservation):
        return False
    p99 = metrics.latency.time_to_first_token_p99_seconds
    return p99 is not None and 1000.0 * p99 > objectives.time_to_first_token_p99_milliseconds


def _spells(shortages: tuple[Shortage, ...]) -> str:
    total = math.fsum(each.seconds for each in shortages)
    if not shortages:
        return "0 s"
    longest = sorted(shortages, key=lambda each: -each.seconds)[:3]
    return f"{total:.0f} s (" + "; ".join(map(str, longest)) + (")" if len(shortages) <= 3 else "; ...)")
