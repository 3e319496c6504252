"""The documents of the page's own small API, kept apart from our types."""

from __future__ import annotations

import orjson

from autoscaler.dashboard.snapshot import CountChange, FleetSnapshot, PoolView
from forecasting.forecast import Forecast
from policies.decision import ScalingDecision


def fleet_document(snapshot: FleetSnapshot) -> bytes:
    """The source and one line a pool, as JSON."""
    source = snapshot.source
    return orjson.dumps(
        {
            "title": source.title,
            "about": source.about,
            "isSimulated": source.is_simulated,
            "secondsPerSecond": source.seconds_per_second,
            "nowSeconds": snapshot.now_seconds,
            "pools": [_summary(pool) for pool in snapshot.pools.values()],
        }
    )


def pool_document(pool: PoolView, since_seconds: float) -> bytes:
    """One pool with the rows of its history later than `since_seconds`, as JSON; unknown numbers are null."""
    series = pool.series.after(since_seconds)
    columns = {
        name: [None if value != value else value for value in series.table[:, place].tolist()]
        for place, name in enumerate(series.names)
    }
    return orjson.dumps(
        _summary(pool)
        | {
            "minReplicas": pool.min_replicas,
            "maxReplicas": pool.max_replicas,
            "outcome": pool.outcome,
            "decision": _decision(pool.decision),
            "forecast": _forecast(pool.forecast),
            "changes": [_change(change) for change in pool.changes],
            "series": {"timesSeconds": series.times_seconds.tolist(), "columns": columns},
        }
    )


def _summary(pool: PoolView) -> dict[str, object]:
    counts, decision = pool.replicas, pool.decision
    return {
        "namespace": pool.namespace,
        "name": pool.name,
        "engine": pool.engine,
        "mode": pool.mode,
        "atSeconds": pool.at_seconds,
        "problem": pool.problem,
        "ready": counts.ready if counts else None,
        "starting": counts.starting if counts else None,
        "stuck": counts.stuck if counts else None,
        "terminating": counts.terminating if counts else None,
        "desired": decision.desired_replicas if decision else None,
        "reason": decision.reason.value if decision else None,
    }


def _decision(decision: ScalingDecision | None) -> dict[str, object] | None:
    if decision is None:
        return None
    return {
        "desired": decision.desired_replicas,
        "reason": decision.reason.value,
        "message": decision.message,
        "binding": decision.binding,
        "votes": [
            {
                "name": vote.recommender,
                "replicas": vote.replicas,
                "reason": vote.reason.value,
                "message": vote.message,
            }
            for vote in decision.recommendations
        ],
        "steps": [
            {
                "name": step.name,
                "before": step.before,
                "after": step.after,
                "reason": step.reason.value,
                "message": step.message,
            }
            for step in decision.steps
        ],
    }


def _forecast(forecast: Forecast | None) -> dict[str, object] | None:
    """The band: quantiles of the load of each bin ahead, tokens that arrive per second."""
    if forecast is None:
        return None
    return {
        "originSeconds": forecast.origin_seconds,
        "binSeconds": forecast.bin_seconds,
        "levels": forecast.levels,
        "quantiles": forecast.quantiles,
    }


def _change(change: CountChange) -> dict[str, object]:
    return {
        "atSeconds": change.at_seconds,
        "from": change.from_replicas,
        "to": change.to_replicas,
        "reason": change.reason,
        "message": change.message,
        "outcome": change.outcome,
    }
