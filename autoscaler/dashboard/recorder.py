"""How does a tick become what the page shows? A reporter that keeps a bounded history of every pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.controller.pool_report import Decided, PoolReport, Rejected, Unobserved
from autoscaler.dashboard.snapshot import CountChange, FleetSnapshot, FleetSource, PoolView
from autoscaler.observers.metrics import PoolKey
from forecasting.forecast import Forecast
from policies.observation import MetricsObservation
from policies.signals import Signal

HISTORY_ROWS = 240  # an hour at a tick of 15 s
FEWEST_ROWS = 60
FLEET_ROWS = 100_000  # 13 MiB over all pools: a large fleet is looked at over half an hour
KEPT_CHANGES = 50

# Column of the series by signal; totals over the pool.
_TOTALS = {
    "promptTokensPerSecond": Signal.PROMPT_TOKENS,
    "generationTokensPerSecond": Signal.GENERATION_TOKENS,
    "runningRequests": Signal.RUNNING_REQUESTS,
    "waitingRequests": Signal.WAITING_REQUESTS,
}
VOTE_PREFIX = "vote/"

ForecastOf = Callable[[PoolKey], Forecast | None]
ExtraColumns = Callable[[PoolKey], Mapping[str, float | None]]


def no_extra_columns(key: PoolKey) -> Mapping[str, float | None]:
    """Nothing beside what the reports tell."""
    return {}


def no_forecast(key: PoolKey) -> Forecast | None:
    """Nothing is forecast."""
    return None


def kept_rows(pools: int, most: int) -> int:
    """How many rows each of so many pools keeps, so that a large fleet does not fill the memory."""
    return min(most, max(FEWEST_ROWS, FLEET_ROWS // pools))


class DashboardRecorder:
    """A Reporter. Only the loop calls `report`; any thread may read `snapshot`."""

    def __init__(
        self,
        source: FleetSource,
        history_rows: int = HISTORY_ROWS,
        extra_columns: ExtraColumns = no_extra_columns,
        forecast_of: ForecastOf = no_forecast,
    ) -> None:
        """`history_rows` is the most a pool keeps; many pools keep fewer each.

        `extra_columns` is asked at each tick for numbers that only the source has, such as what users really got, and
        `forecast_of` for the newest forecast of a pool.
        """
        self._forecast_of = forecast_of
        self._source = source
        self._history_rows = history_rows
        self._extra_columns = extra_columns
        self.snapshot = FleetSnapshot(source, 0.0, {})

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Takes the reports of one tick; pools that are not in it are forgotten."""
        if not reports:
            self.snapshot = replace(self.snapshot, pools={})
            return
        before = self.snapshot.pools
        rows = kept_rows(len(reports), self._history_rows)
        views = {report.scaler.key: self._view(before.get(report.scaler.key), report, rows) for report in reports}
        self.snapshot = FleetSnapshot(self._source, reports[0].now_seconds, views)

    def _view(self, before: PoolView | None, report: PoolReport, rows: int) -> PoolView:
        view = _described(before, report)
        if not isinstance(report, Decided):
            return replace(view, problem=_problem(report))
        decision, counts = report.decision, report.workload.replicas
        changes = view.changes
        if decision.desired_replicas != counts.spec:
            change = CountChange(
                report.now_seconds,
                counts.spec,
                decision.desired_replicas,
                decision.reason.value,
                decision.message,
                report.actuation.reason.value,
            )
            changes = (change, *changes)[:KEPT_CHANGES]
        forecast = self._forecast_of(view.key)
        columns = _columns(report) | dict(self._extra_columns(view.key))
        if forecast is not None:
            columns["arrivingTokensPerSecond"] = forecast.latest
        known = {name: value for name, value in columns.items() if value is not None}
        return replace(
            view,
            problem=None,
            replicas=counts,
            decision=decision,
            outcome=report.actuation.message,
            forecast=forecast,
            changes=changes,
            series=view.series.appended(report.now_seconds, known, rows),
        )


def _described(before: PoolView | None, report: PoolReport) -> PoolView:
    scaler = report.scaler
    view = before or PoolView(scaler.namespace, scaler.name, "", "", 0, 0, report.now_seconds)
    if not isinstance(scaler, InferenceScaler):
        return replace(view, at_seconds=report.now_seconds)
    spec = scaler.spec
    return replace(
        view,
        at_seconds=report.now_seconds,
        engine=spec.engine.value,
        mode=spec.mode.value,
        min_replicas=spec.min_replicas,
        max_replicas=spec.max_replicas,
    )


def _problem(report: PoolReport) -> str:
    if isinstance(report, Rejected):
        return "the spec was not accepted: " + "; ".join(report.scaler.problems)
    if isinstance(report, Unobserved):
        return report.unavailable.message
    return "an internal error: the process log has the traceback"


def _columns(report: Decided) -> dict[str, float | None]:
    counts, decision, metrics = report.workload.replicas, report.decision, report.decision_input.metrics
    columns: dict[str, float | None] = {
        "desired": decision.desired_replicas,
        "ready": counts.serving,
        "starting": counts.starting + counts.stuck,
    }
    columns |= {VOTE_PREFIX + vote.recommender: vote.replicas for vote in decision.recommendations}
    if isinstance(metrics, MetricsObservation):
        for column, name in _TOTALS.items():
            signal = metrics.signals.get(name)
            columns[column] = signal.total if signal is not None and signal.known_replicas else None
        usage = metrics.signals.get(Signal.KV_CACHE_USAGE)
        columns["kvCacheUsage"] = usage.mean if usage is not None and usage.known_replicas else None
        columns["timeToFirstTokenP99Seconds"] = metrics.latency.time_to_first_token_p99_seconds
    return columns
