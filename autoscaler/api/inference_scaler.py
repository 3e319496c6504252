"""The InferenceScaler: one model pool and how it is to be scaled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from autoscaler.api.document import RefusedObject, parse_object
from policies.capacity.objectives import LatencyObjectives
from policies.constraints.behavior import UNHURRIED_BEHAVIOR, ScalingBehavior
from policies.parameter_model import CelRule, ParameterModel
from policies.parameters import Mode, ScalingParameters, SignalParameters
from policies.recommenders.forecast import ForecastMode, ForecastParameters

KIND = "InferenceScaler"


class EngineName(StrEnum):
    """Which inference server runs in the pool's pods; the key of `autoscaler.engines.ENGINES`."""

    VLLM = "vllm"
    TENSORRT_LLM = "tensorrt-llm"
    TRITON_TENSORRT_LLM = "triton-tensorrt-llm"
    SGLANG = "sglang"
    CUSTOM = "custom"


class ScaleDownVictims(StrEnum):
    """Who chooses which replicas go when the count falls."""

    KUBERNETES = "Kubernetes"
    WHOLE_NODES = "WholeNodes"


class ScaleTargetRef(ParameterModel):
    """An object with a scale subresource, in the InferenceScaler's own namespace."""

    api_version: str = Field(
        min_length=1,
        max_length=317,
        pattern="^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?$",
        description="Group and version, such as apps/v1.",
    )
    kind: str = Field(
        min_length=1, max_length=63, pattern="^[A-Z][A-Za-z0-9]*$", description="Kind, such as Deployment."
    )
    name: str = Field(
        min_length=1,
        max_length=253,
        pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        description="Name of the object: lower case letters, digits, dashes and dots.",
    )


class AcceleratorPoolRef(ParameterModel):
    """The AcceleratorPool (cluster-scoped) whose nodes the pool's pods run on."""

    name: str = Field(
        min_length=1,
        max_length=253,
        pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        description="Name of the AcceleratorPool: lower case letters, digits, dashes and dots.",
    )


class CapacityTypeTarget(ParameterModel):
    """The replicas that run on one kind of capacity."""

    scale_target_ref: ScaleTargetRef


class CapacityTypeTargets(ParameterModel):
    """Two targets behind one Service that serve as one pool, one on demand and one on spot nodes."""

    on_demand: CapacityTypeTarget = Field(description="The target whose pods run on on-demand nodes only.")
    spot: CapacityTypeTarget = Field(description="The target whose pods run on spot nodes only.")

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "self.onDemand.scaleTargetRef.name != self.spot.scaleTargetRef.name || "
            "self.onDemand.scaleTargetRef.kind != self.spot.scaleTargetRef.kind",
            "onDemand and spot must be two targets",
            ".spot",
        ),
    )

    @model_validator(mode="after")
    def _check_two(self) -> Self:
        one, other = self.on_demand.scale_target_ref, self.spot.scale_target_ref
        if (one.kind, one.name) == (other.kind, other.name):
            raise ValueError(f"onDemand and spot must be two targets; both are {one.kind} {one.name}")
        return self


# Signals that are read from an engine's own metrics page.
_ENGINE_SIGNALS = ("tokensInFlight", "tokenRate", "kvCache", "waitingRequests", "interTokenLatencyDivergence")


class InferenceScalerSpec(ScalingParameters):
    """What a user wishes for one pool: which pods, which engine, and the scaling parameters."""

    scale_target_ref: ScaleTargetRef | None = Field(
        default=None, description="What is scaled. Either this or capacityTypes is needed."
    )
    capacity_types: CapacityTypeTargets | None = Field(
        default=None,
        description=(
            "In place of scaleTargetRef: two targets, one on demand and one on spot, whose counts follow the split of "
            "the AcceleratorPool, exact in whole replicas and nodes."
        ),
    )
    engine: EngineName = Field(description="Inference server in the pods. custom: only the user's own PromQL is read.")
    accelerator_pool_ref: AcceleratorPoolRef | None = Field(
        default=None, description="The AcceleratorPool whose nodes this pool's replicas run on."
    )
    accelerators_per_replica: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description="Accelerators of one replica, all its pods together. Null: the nvidia.com/gpu limits of its pods.",
    )
    priority: int = Field(
        default=0,
        ge=-1_000_000,
        le=1_000_000,
        description=(
            "Who gets accelerators first where an AcceleratorPool's ceiling leaves too few. Default 0: all alike."
        ),
    )

    scale_down_victims: ScaleDownVictims = Field(
        default=ScaleDownVictims.KUBERNETES,
        description=(
            "Whose choice it is which replicas go. Kubernetes (default): the ReplicaSet's, which spreads. WholeNodes: "
            "pods are marked by pod-deletion-cost so that whole nodes become empty; Deployments only, and the right to "
            "patch pods is needed."
        ),
    )
    scale_down_drain_seconds: int | None = Field(
        default=None,
        ge=10,
        le=3600,
        description=(
            "With WholeNodes: replicas that are to go are first taken out of the router, by the pod label "
            "tokenscaler.io/serving, and go when their requests have ended, at the latest after so many seconds. Null: "
            "they go at once, and have their grace period."
        ),
    )
    protect_loading_replicas: bool = Field(
        default=False,
        description=(
            "False (default): Karpenter may move a replica that loads its model. True: on an on-demand node it has "
            "karpenter.sh/do-not-disrupt until it is Ready; the right to patch pods is needed."
        ),
    )

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            rule="self.engine != 'custom' || !("
            + " || ".join(f"has(self.signals.{name})" for name in _ENGINE_SIGNALS)
            + ")",
            message=(
                "engine custom has no signals of its own: use signals.custom or signals.pendingRequests instead of "
                + ", ".join(_ENGINE_SIGNALS)
            ),
            field_path=".signals",
        ),
        CelRule(
            rule="self.engine != 'custom' || !has(self.objectives)",
            message="engine custom shows no latencies: leave objectives out",
            field_path=".objectives",
        ),
        CelRule(
            rule="has(self.scaleTargetRef) != has(self.capacityTypes)",
            message="give scaleTargetRef, or capacityTypes for two targets",
            field_path=".scaleTargetRef",
        ),
        CelRule(
            rule=(
                "self.scaleDownVictims != 'WholeNodes' || ((!has(self.scaleTargetRef) || self.scaleTargetRef.kind == "
                "'Deployment') && (!has(self.capacityTypes) || (self.capacityTypes.onDemand.scaleTargetRef.kind == "
                "'Deployment' && self.capacityTypes.spot.scaleTargetRef.kind == 'Deployment')))"
            ),
            message="scaleDownVictims WholeNodes needs a Deployment: other kinds take the highest numbers away",
            field_path=".scaleDownVictims",
        ),
        CelRule(
            rule=(
                "!has(self.scaleDownDrainSeconds) || (self.scaleDownVictims == 'WholeNodes' && "
                "self.mode != 'ExternalMetric')"
            ),
            message=(
                "scaleDownDrainSeconds needs scaleDownVictims WholeNodes, and a mode in which nobody else writes the "
                "count"
            ),
            field_path=".scaleDownDrainSeconds",
        ),
        CelRule(
            rule="!has(self.capacityTypes) || has(self.acceleratorPoolRef)",
            message="capacityTypes needs acceleratorPoolRef: its split says how much may be on spot",
            field_path=".capacityTypes",
        ),
        CelRule(
            rule="!has(self.capacityTypes) || self.mode != 'ExternalMetric'",
            message="capacityTypes cannot be scaled through ExternalMetric: an HPA has one target",
            field_path=".capacityTypes",
        ),
    )

    @model_validator(mode="after")
    def _check_targets(self) -> Self:
        if (self.scale_target_ref is None) == (self.capacity_types is None):
            raise ValueError("give scaleTargetRef, or capacityTypes for two targets")
        if self.capacity_types is not None and self.accelerator_pool_ref is None:
            raise ValueError("capacityTypes needs acceleratorPoolRef: its split says how much may be on spot")
        if self.capacity_types is not None and self.mode is Mode.EXTERNAL_METRIC:
            raise ValueError("capacityTypes cannot be scaled through ExternalMetric: an HPA has one target")
        return self

    @model_validator(mode="after")
    def _check_victims(self) -> Self:
        others = sorted({reference.kind for reference in self.target_refs} - {"Deployment"})
        if self.scale_down_victims is ScaleDownVictims.WHOLE_NODES and others:
            raise ValueError(
                f"scaleDownVictims WholeNodes needs a Deployment: a {others[0]} takes the highest numbers away"
            )
        is_chosen = self.scale_down_victims is ScaleDownVictims.WHOLE_NODES and self.mode is not Mode.EXTERNAL_METRIC
        if self.scale_down_drain_seconds is not None and not is_chosen:
            raise ValueError(
                "scaleDownDrainSeconds needs scaleDownVictims WholeNodes, and a mode in which nobody else writes the "
                "count"
            )
        return self

    @property
    def target_refs(self) -> tuple[ScaleTargetRef, ...]:
        """The target, or the two of them: on demand, then spot."""
        if self.capacity_types is not None:
            return self.capacity_types.on_demand.scale_target_ref, self.capacity_types.spot.scale_target_ref
        assert self.scale_target_ref is not None
        return (self.scale_target_ref,)

    @property
    def first_target_ref(self) -> ScaleTargetRef:
        """The target; of two the one on demand, by which the pool goes where there is room for one name only."""
        return self.target_refs[0]

    @model_validator(mode="after")
    def _check_engine_signals(self) -> Self:
        signals = self.signals.model_dump(by_alias=True)
        used = [name for name in _ENGINE_SIGNALS if signals[name] is not None]
        if self.engine is EngineName.CUSTOM and used:
            raise ValueError(
                f"engine custom has no signals of its own: use signals.custom or signals.pendingRequests instead of "
                f"{', '.join(used)}"
            )
        if self.engine is EngineName.CUSTOM and self.objectives is not None:
            raise ValueError("engine custom shows no latencies: leave objectives out")
        return self

    @cached_property
    def parameters(self) -> ScalingParameters:
        """The part that `decide` reads, without the rest: it goes into every decision record.

        A pool of which nothing is said but its engine gets objectives, by which it votes, a forecast that acts while it
        is better than the last value, and shrinks without a hurry.
        """
        stated = {name: getattr(self, name) for name in ScalingParameters.model_fields}
        if self.engine is not EngineName.CUSTOM and not self._names_a_vote:
            stated["objectives"] = self.objectives or LatencyObjectives()
            stated["forecast"] = self.forecast or ForecastParameters(mode=ForecastMode.ACTIVE)
            if self.behavior == ScalingBehavior():
                stated["behavior"] = UNHURRIED_BEHAVIOR
        return ScalingParameters(**stated)

    @property
    def _names_a_vote(self) -> bool:
        return self.signals != SignalParameters() or bool(self.schedules)


@dataclass(frozen=True, slots=True)
class InferenceScaler:
    """An accepted InferenceScaler. `status` is the document's own status as last read (may be empty)."""

    namespace: str
    name: str
    uid: str
    generation: int
    created_at_seconds: float
    spec: InferenceScalerSpec
    status: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return (self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class InvalidInferenceScaler:
    """A document that is no valid InferenceScaler: what is wrong, one sentence a problem, each with its field."""

    namespace: str
    name: str
    generation: int
    problems: tuple[str, ...]
    uid: str = ""
    status: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return (self.namespace, self.name)


def parse_inference_scaler(document: Mapping[str, Any]) -> InferenceScaler | InvalidInferenceScaler:
    """A document from the API server or from a file. A namespace that is left out is "default"; never raises."""
    parsed = parse_object(document, KIND, InferenceScalerSpec, is_namespaced=True)
    meta = parsed.meta
    if isinstance(parsed, RefusedObject):
        return InvalidInferenceScaler(
            meta.namespace, meta.name, meta.generation, parsed.problems, meta.uid, parsed.status
        )
    return InferenceScaler(
        meta.namespace, meta.name, meta.uid, meta.generation, meta.created_at_seconds, parsed.spec, parsed.status
    )
