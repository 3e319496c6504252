"""What do a KEDA ScaledObject and an HPA manifest say, as far as they can be replayed? Refused is what cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autoscaler.api.document import read_fields
from autoscaler.api.node_shape import amount_of
from autoscaler.replay.hpa_metric_sources import ExternalMetricSource, PodsMetricSource, engine_metric
from autoscaler.replay.keda import CronTrigger, Fallback, FallbackBehavior, PrometheusTrigger, ScaledObject, Trigger
from autoscaler.replay.promql_reading import NotUnderstoodError, metrics_of, read_promql
from autoscaler.replay.simulated_prometheus import unsimulated_metrics
from autoscaler.replay.stock_hpa import DEFAULT_TOLERANCE, HPAMetricSource, StockHPA
from policies.constraints.behavior import ScalingBehavior
from policies.hpa.metric_proposal import Tolerance, share_of_quantity
from policies.hpa.metrics import TargetType
from policies.recommenders.schedule import ScheduleWindow


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest that can be replayed: who it is for, and what was assumed about it."""

    namespace: str
    name: str
    target_name: str
    policy: ScaledObject | StockHPA
    assumptions: tuple[str, ...] = ()

    @property
    def latencies(self) -> tuple[str, ...]:
        """The histograms that it reads, each once."""
        match self.policy:
            case ScaledObject():
                read = [each.query for each in self.policy.triggers if isinstance(each, PrometheusTrigger)]
            case StockHPA():
                sources = (ExternalMetricSource, PodsMetricSource)
                read = [each.expression for each in self.policy.metrics if isinstance(each, sources)]
        names = (name for expression in read for name in metrics_of(expression))
        return tuple(dict.fromkeys(name for name in names if name.endswith("_bucket")))


class _Refusals:
    """Collects what is wrong; every sentence begins with the field's path."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def refuse(self, path: str, why: str) -> None:
        self.problems.append(f"{path}: {why}")

    def number(self, path: str, value: Any, default: float | None = None) -> float:
        if value is None and default is not None:
            return default
        parsed = _quantity(value)
        if parsed is None:
            self.refuse(path, f"{value!r} is no number of at least 0")
            return default or 0.0
        return parsed


def read_scaled_object(content: Mapping[str, Any]) -> Manifest | tuple[str, ...]:
    """A keda.sh/v1alpha1 ScaledObject, or everything that is wrong with it or cannot be replayed."""
    refusals = _Refusals()
    spec = _mapping(content.get("spec"))
    name = _name(content, refusals)
    target = str(_mapping(spec.get("scaleTargetRef")).get("name") or "")
    if not target:
        refusals.refuse("spec.scaleTargetRef.name", "is missing")
    advanced = _mapping(spec.get("advanced"))
    if advanced.get("scalingModifiers"):
        refusals.refuse("spec.advanced.scalingModifiers", "formulas are not replayed; give the triggers without it")
    config = _mapping(advanced.get("horizontalPodAutoscalerConfig"))
    behavior, tolerance = _behavior(config, "spec.advanced.horizontalPodAutoscalerConfig", refusals)
    assumptions: list[str] = []
    triggers = tuple(_triggers(name, spec.get("triggers"), refusals, assumptions))
    policy = ScaledObject(
        name=name,
        triggers=triggers,
        minimum=int(refusals.number("spec.minReplicaCount", spec.get("minReplicaCount"), 0.0)),
        maximum=int(refusals.number("spec.maxReplicaCount", spec.get("maxReplicaCount"), 100.0)),
        idle=None if spec.get("idleReplicaCount") is None else int(spec["idleReplicaCount"]),
        polling_seconds=refusals.number("spec.pollingInterval", spec.get("pollingInterval"), 30.0),
        cooldown_seconds=refusals.number("spec.cooldownPeriod", spec.get("cooldownPeriod"), 300.0),
        fallback=_fallback(spec.get("fallback"), refusals),
        behavior=behavior,
        tolerance=tolerance,
    )
    if policy.minimum > policy.maximum:
        refusals.refuse("spec.minReplicaCount", f"{policy.minimum} is above maxReplicaCount {policy.maximum}")
    if refusals.problems:
        return tuple(refusals.problems)
    return Manifest(_namespace(content), name, target, policy, tuple(assumptions))


def read_hpa(content: Mapping[str, Any]) -> Manifest | tuple[str, ...]:
    """An autoscaling/v2 HorizontalPodAutoscaler, or everything that is wrong with it or cannot be replayed."""
    refusals = _Refusals()
    spec = _mapping(content.get("spec"))
    name = _name(content, refusals)
    if content.get("apiVersion") != "autoscaling/v2":
        refusals.refuse("apiVersion", f"is {content.get('apiVersion')}; autoscaling/v2 is wanted")
    target = str(_mapping(spec.get("scaleTargetRef")).get("name") or "")
    if not target:
        refusals.refuse("spec.scaleTargetRef.name", "is missing")
    if spec.get("maxReplicas") is None:
        refusals.refuse("spec.maxReplicas", "is missing")
    behavior, tolerance = _behavior(spec, "spec", refusals)
    assumptions: list[str] = []
    policy = StockHPA(
        name=name,
        minimum=int(refusals.number("spec.minReplicas", spec.get("minReplicas"), 1.0)),
        maximum=int(refusals.number("spec.maxReplicas", spec.get("maxReplicas"), 1.0)),
        metrics=tuple(_hpa_metrics(name, spec.get("metrics"), refusals, assumptions)),
        behavior=behavior,
        tolerance=tolerance,
    )
    if policy.minimum > policy.maximum:
        refusals.refuse("spec.minReplicas", f"{policy.minimum} is above maxReplicas {policy.maximum}")
    if refusals.problems:
        return tuple(refusals.problems)
    return Manifest(_namespace(content), name, target, policy, tuple(assumptions))


def _triggers(name: str, given: Any, refusals: _Refusals, assumptions: list[str]) -> Iterator[Trigger]:
    if not isinstance(given, Sequence) or not given:
        refusals.refuse("spec.triggers", "at least one trigger is wanted")
        return
    for place, trigger in enumerate(given):
        path = f"spec.triggers[{place}]"
        fields = _mapping(trigger)
        kind, metadata = fields.get("type"), _mapping(fields.get("metadata"))
        if kind == "prometheus":
            made = _prometheus_trigger(name, path, fields, metadata, refusals, assumptions)
        elif kind == "cron":
            made = _cron_trigger(path, metadata, refusals)
        else:
            refusals.refuse(f"{path}.type", f"{kind} triggers are not replayed; prometheus and cron are")
            continue
        if made is not None:
            yield made


def _prometheus_trigger(
    name: str,
    path: str,
    fields: Mapping[str, Any],
    metadata: Mapping[str, Any],
    refusals: _Refusals,
    assumptions: list[str],
) -> Trigger | None:
    for wanted in ("query", "threshold"):
        if metadata.get(wanted) in (None, ""):
            refusals.refuse(f"{path}.metadata.{wanted}", "is missing")
            return None
    try:
        query = read_promql(str(metadata["query"]))
    except NotUnderstoodError as error:
        refusals.refuse(f"{path}.metadata.query", str(error))
        return None
    assumptions += (
        f"{name}: {metric} is no metric of a simulated replica, so it has no series"
        for metric in unsimulated_metrics(query)
    )
    return PrometheusTrigger(
        query=query,
        target=refusals.number(f"{path}.metadata.threshold", metadata["threshold"]),
        activation=refusals.number(f"{path}.metadata.activationThreshold", metadata.get("activationThreshold"), 0.0),
        target_type=_target_type(f"{path}.metricType", fields.get("metricType") or "AverageValue", refusals),
        ignores_nulls=str(metadata.get("ignoreNullValues", "true")).lower() != "false",
        is_cached=bool(fields.get("useCachedMetrics")),
    )


def _cron_trigger(path: str, metadata: Mapping[str, Any], refusals: _Refusals) -> Trigger | None:
    replicas = int(refusals.number(f"{path}.metadata.desiredReplicas", metadata.get("desiredReplicas")))
    window = {
        "name": "cron",
        "timezone": metadata.get("timezone"),
        "start": metadata.get("start"),
        "end": metadata.get("end"),
        "minReplicas": replicas,
    }
    parsed = read_fields(window, ScheduleWindow, f"{path}.metadata")
    if isinstance(parsed, tuple):
        refusals.problems += parsed
        return None
    return CronTrigger(parsed, replicas)


def _fallback(given: Any, refusals: _Refusals) -> Fallback | None:
    if given is None:
        return None
    fields = _mapping(given)
    behavior = fields.get("behavior") or "static"
    if behavior not in set(FallbackBehavior):
        refusals.refuse("spec.fallback.behavior", f"{behavior} is not replayed; {', '.join(FallbackBehavior)} are")
        behavior = FallbackBehavior.STATIC
    return Fallback(
        int(refusals.number("spec.fallback.failureThreshold", fields.get("failureThreshold"))),
        int(refusals.number("spec.fallback.replicas", fields.get("replicas"))),
        FallbackBehavior(behavior),
    )


def _hpa_metrics(name: str, given: Any, refusals: _Refusals, assumptions: list[str]) -> Iterator[HPAMetricSource]:
    if not isinstance(given, Sequence) or not given:
        refusals.refuse("spec.metrics", "at least one metric is wanted")
        return
    for place, each in enumerate(given):
        path, fields = f"spec.metrics[{place}]", _mapping(each)
        kind = str(fields.get("type"))
        if kind not in {"External", "Pods"}:
            refusals.refuse(f"{path}.type", f"{kind} metrics are not replayed; External and Pods are")
            continue
        place_of_metric = f"{path}.{kind.lower()}"
        body = _mapping(fields.get(kind.lower()))
        metric = str(_mapping(body.get("metric")).get("name") or "")
        expression = engine_metric(metric)
        if expression is None:
            refusals.refuse(
                f"{place_of_metric}.metric.name",
                f"{metric!r} is no metric of an engine; replayed are names such as vllm:num_requests_waiting, and "
                "vllm_generation_tokens_per_second for the rate of a counter",
            )
            continue
        target = _mapping(body.get("target"))
        target_type = _target_type(f"{place_of_metric}.target.type", target.get("type"), refusals)
        field = "averageValue" if target_type is TargetType.AVERAGE_VALUE else "value"
        value = refusals.number(f"{place_of_metric}.target.{field}", target.get(field))
        if value <= 0:
            refusals.refuse(f"{place_of_metric}.target.{field}", "more than 0 is wanted")
            continue
        assumptions.append(f"{name}: {metric} is read from the pool's own replicas")
        if kind == "Pods":
            yield PodsMetricSource(expression, value)
        else:
            yield ExternalMetricSource(expression, value, target_type)


def _behavior(fields: Mapping[str, Any], path: str, refusals: _Refusals) -> tuple[ScalingBehavior | None, Tolerance]:
    given = fields.get("behavior")
    if given is None:
        return None, DEFAULT_TOLERANCE
    rules = {name: dict(_mapping(rule)) for name, rule in _mapping(given).items()}
    tolerances = {
        name: refusals.number(f"{path}.behavior.{name}.tolerance", rule.pop("tolerance", None), DEFAULT_TOLERANCE.up)
        for name, rule in rules.items()
    }
    parsed = read_fields(rules, ScalingBehavior, f"{path}.behavior")
    tolerance = Tolerance(
        share_of_quantity(tolerances.get("scaleUp", DEFAULT_TOLERANCE.up)),
        share_of_quantity(tolerances.get("scaleDown", DEFAULT_TOLERANCE.down)),
    )
    if isinstance(parsed, tuple):
        refusals.problems += parsed
        return None, tolerance
    return parsed, tolerance


def _target_type(path: str, given: Any, refusals: _Refusals) -> TargetType:
    if given not in set(TargetType):
        refusals.refuse(path, f"{given} is not replayed; AverageValue and Value are")
        return TargetType.AVERAGE_VALUE
    return TargetType(given)


def _name(content: Mapping[str, Any], refusals: _Refusals) -> str:
    name = str(_mapping(content.get("metadata")).get("name") or "")
    if not name:
        refusals.refuse("metadata.name", "is missing")
    return name


def _namespace(content: Mapping[str, Any]) -> str:
    return str(_mapping(content.get("metadata")).get("namespace") or "default")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _quantity(value: Any) -> float | None:
    """A number, or a Kubernetes quantity such as 500m or 2k; None for anything else or below 0."""
    amount = amount_of(str(value).strip())
    return None if amount is None else float(amount)
