"""InferenceScalers, workloads and reports, of which a test shows only what its case is about.

The ordinary pool: inference/llama, mode Scale, 4 ready replicas of 4 asked for, one vote (waiting requests, 10 a
replica) and nothing waiting beyond what 4 replicas take.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler, parse_inference_scaler
from autoscaler.controller.pool_report import Crashed, Decided, Rejected, Unobserved
from autoscaler.decision_record import ActuationOutcome, DecisionRecord, record_decision
from autoscaler.observers.workload import LivePod, ScaleTarget, Workload, WorkloadUnavailable
from forecasting.forecast import Forecast, ForecastUnavailable
from policies.decision import decide
from policies.decision_input import DecisionInput
from policies.history import with_rescale
from policies.observation import MetricsObservation, ObservationUnavailable, ReplicaCounts
from policies.reasons import Reason
from policies.signals import Signal
from tests.builders import NOW, a_history, an_even_signal, an_observation

WAITING_PER_REPLICA = 10.0
KEY = ("inference", "llama")


def a_scaler_document(name: str = "llama", *, uid: str = "uid-1", generation: int = 1, **spec: Any) -> dict[str, Any]:
    """The document of the ordinary pool with some of its spec changed."""
    ordinary = {
        "mode": "Scale",
        "engine": "vllm",
        "minReplicas": 1,
        "maxReplicas": 100,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "signals": {"waitingRequests": {"perReplica": WAITING_PER_REPLICA}},
        "coldStart": {"priorSeconds": 60},
    }
    return {
        "apiVersion": "tokenscaler.io/v1alpha1",
        "kind": "InferenceScaler",
        "metadata": {"namespace": "inference", "name": name, "uid": uid, "generation": generation},
        "spec": {**ordinary, **spec},
    }


def a_scaler(
    name: str = "llama",
    *,
    uid: str = "uid-1",
    generation: int = 1,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> InferenceScaler:
    """The ordinary pool's scaler; `spec` in camelCase as a user writes it."""
    scaler = parse_inference_scaler(a_scaler_document(name, uid=uid, generation=generation, **spec))
    assert isinstance(scaler, InferenceScaler), scaler
    return replace(scaler, status=status or {})


def an_invalid_scaler(
    name: str = "llama", *, uid: str = "uid-1", generation: int = 2, status: dict[str, Any] | None = None
) -> InvalidInferenceScaler:
    """A scaler with a misspelt field."""
    scaler = parse_inference_scaler(a_scaler_document(name, uid=uid, generation=generation, maxReplica=3))
    assert isinstance(scaler, InvalidInferenceScaler)
    return replace(scaler, status=status or {})


def a_workload(replicas: ReplicaCounts | int = 4, *, name: str = "llama", **more: Any) -> Workload:
    """The target with a pod for each ready replica."""
    counts = ReplicaCounts(replicas, replicas, replicas) if isinstance(replicas, int) else replicas
    path = f"/apis/apps/v1/namespaces/inference/deployments/{name}/scale"
    return Workload(
        target=ScaleTarget("inference", "Deployment", name, path, f"{name}-uid", "17"),
        replicas=counts,
        pods=tuple(LivePod(f"{name}-{i}", f"{name}-{i}", True, NOW - 3600.0) for i in range(counts.ready)),
        **more,
    )


def some_waiting(waiting: float, *, ready: int = 4, **more: Any) -> MetricsObservation:
    """An observation by which `waiting / 10` replicas are wanted."""
    return an_observation({Signal.WAITING_REQUESTS: an_even_signal(waiting, ready)}, ready=ready, **more)


def a_decision_report(
    *,
    scaler: InferenceScaler | None = None,
    replicas: ReplicaCounts | int = 4,
    waiting: float = 40.0,
    metrics: MetricsObservation | ObservationUnavailable | None = None,
    history: Any = None,
    now_seconds: float = NOW,
    outcome: Reason | None = None,
    message: str = "",
    forecast: Forecast | ForecastUnavailable | None = None,
    **workload: Any,
) -> Decided:
    """What the reconciler would report. `outcome` None: written where the count changes."""
    scaler = scaler or a_scaler()
    seen = a_workload(replicas, **workload)
    metrics = metrics or some_waiting(waiting, ready=seen.replicas.ready)
    decision_input = DecisionInput(
        now_seconds,
        scaler.spec.parameters,
        seen.replicas,
        metrics,
        history or a_history(),
        seen.cold_start,
        forecast=forecast,
    )
    decision = decide(decision_input)
    current, desired = seen.replicas.spec, decision.desired_replicas
    outcome = outcome or (Reason.READY_FOR_NEW_SCALE if current == desired else Reason.SUCCEEDED_RESCALE)
    next_history = decision.next_history
    if outcome is Reason.SUCCEEDED_RESCALE:
        next_history = with_rescale(next_history, scaler.spec.behavior, now_seconds, current, desired)
    return Decided(
        scaler,
        now_seconds,
        seen,
        decision_input,
        decision,
        ActuationOutcome(outcome, message or f"Deployment inference/llama: {current} -> {desired}"),
        next_history,
    )


def a_record(report: Decided | None = None) -> DecisionRecord:
    """The record of a decision to raise 4 replicas to 8, or of the report."""
    report = report or a_decision_report(waiting=80.0)
    return record_decision(
        report.scaler.namespace, report.scaler.name, report.decision_input, report.decision, report.actuation
    )


def an_unobserved_report(
    reason: Reason = Reason.TARGET_NOT_FOUND,
    *,
    scaler: InferenceScaler | None = None,
    now_seconds: float = NOW,
    message: str = "no Deployment inference/llama",
) -> Unobserved:
    """The target could not be seen."""
    return Unobserved(scaler or a_scaler(), now_seconds, WorkloadUnavailable(reason, message))


def a_rejected_report(*, scaler: InvalidInferenceScaler | None = None, now_seconds: float = NOW) -> Rejected:
    """The spec was not accepted."""
    return Rejected(scaler or an_invalid_scaler(), now_seconds)


def a_crash_report(*, scaler: InferenceScaler | None = None, now_seconds: float = NOW) -> Crashed:
    """A bug of ours."""
    return Crashed(scaler or a_scaler(), now_seconds, "decide: ZeroDivisionError: division by zero")
