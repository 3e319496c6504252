"""Everything a policy may say, composed of the parameters that each rule declares beside itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar, Self

from pydantic import Field, model_validator

from policies.capacity.objectives import LatencyObjectives
from policies.constraints.behavior import ScalingBehavior
from policies.constraints.missing_data import MissingDataParameters
from policies.parameter_model import UNIQUE_NAMES, CelRule, ParameterModel
from policies.recommenders.custom import CustomParameters
from policies.recommenders.forecast import ForecastParameters
from policies.recommenders.inter_token_latency_divergence import InterTokenLatencyDivergenceParameters
from policies.recommenders.kv_cache import KVCacheParameters
from policies.recommenders.pending_requests import PendingRequestsParameters
from policies.recommenders.recurring_bursts import RecurringBurstsParameters
from policies.recommenders.schedule import ScheduleWindow
from policies.recommenders.token_rate import TokenRateParameters
from policies.recommenders.tokens_in_flight import TokensInFlightParameters
from policies.recommenders.waiting_requests import WaitingRequestsParameters


class Mode(StrEnum):
    """Who may write what: nobody, only larger counts, any count, or an HPA that reads the count from us."""

    DRY_RUN = "DryRun"
    SCALE_UP_ONLY = "ScaleUpOnly"
    SCALE = "Scale"
    EXTERNAL_METRIC = "ExternalMetric"


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


class SignalParameters(ParameterModel):
    """The votes a pool uses; a block that is left out does not vote."""

    tokens_in_flight: TokensInFlightParameters | None = None
    token_rate: TokenRateParameters | None = None
    kv_cache: KVCacheParameters | None = None
    waiting_requests: WaitingRequestsParameters | None = None
    inter_token_latency_divergence: InterTokenLatencyDivergenceParameters | None = None
    pending_requests: PendingRequestsParameters | None = None
    custom: tuple[CustomParameters, ...] = Field(
        default=(), max_length=8, description="Votes of the user's own.", json_schema_extra=UNIQUE_NAMES
    )

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for name in _repeated(custom.name for custom in self.custom):
            raise ValueError(f"signals.custom has {name!r} more than once; each name is one vote")
        return self


class ColdStartParameters(ParameterModel):
    """How long a replica takes from being asked for until it is Ready."""

    prior_seconds: int = Field(
        default=300,
        ge=1,
        le=7200,
        description=(
            "Cold start in seconds until it has been measured. Default 300: a large model on a node that is there. "
            "Nothing is scaled down on less than this much of history, but for policies of custom votes alone."
        ),
    )


class ScalingParameters(ParameterModel):
    """The part of an InferenceScaler's spec that `decide` reads."""

    mode: Mode = Field(default=Mode.DRY_RUN, description="DryRun (default) decides and writes nothing.")
    min_replicas: int = Field(
        default=1,
        ge=0,
        le=100_000,
        description="Fewest replicas. Default 1: somebody answers. 0 lets an idle pool sleep.",
    )
    max_replicas: int = Field(ge=1, le=100_000, description="Most replicas, whatever asks for more.")
    signals: SignalParameters = SignalParameters()
    objectives: LatencyObjectives | None = Field(
        default=None,
        description=(
            "Latencies to keep. With them a replica's capacity is learned, the work that arrives and the tokens in "
            "flight vote by it, and its safe share follows what requests get. Left out: 2000 ms and 50 ms for a pool "
            "that names no vote at all; else nothing is learned."
        ),
    )
    behavior: ScalingBehavior = Field(
        default=ScalingBehavior(),
        description=(
            "Both directions; a direction or a field that is left out has its default. Left out as a whole, or stated "
            "as autoscaling/v2 has it, a pool that names no vote shrinks to the highest recommendation of 600 s, by at "
            "most 20 Percent in 120 s."
        ),
    )
    schedules: tuple[ScheduleWindow, ...] = Field(
        default=(),
        max_length=32,
        description="Recurring windows with bounds of their own.",
        json_schema_extra=UNIQUE_NAMES,
    )
    missing_data: MissingDataParameters = MissingDataParameters()
    cold_start: ColdStartParameters = ColdStartParameters()
    recurring_bursts: RecurringBurstsParameters = RecurringBurstsParameters()
    forecast: ForecastParameters | None = Field(
        default=None,
        description=(
            "The expected load as a vote. Left out: as mode Active for a pool that names no vote at all; else nothing "
            "is forecast."
        ),
    )

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            rule="self.minReplicas <= self.maxReplicas",
            message="minReplicas must not be above maxReplicas",
            field_path=".minReplicas",
        ),
        CelRule(
            rule="!has(self.missingData.fallback) || self.missingData.fallback.replicas <= self.maxReplicas",
            message="missingData.fallback.replicas must not be above maxReplicas",
            field_path=".missingData.fallback.replicas",
        ),
        CelRule(
            rule="self.schedules.all(w, !has(w.minReplicas) || w.minReplicas <= self.maxReplicas)",
            message="minReplicas of every schedule must not be above maxReplicas",
            field_path=".schedules",
        ),
        CelRule(
            rule="self.schedules.all(w, !has(w.maxReplicas) || w.maxReplicas >= self.minReplicas)",
            message="maxReplicas of every schedule must not be below minReplicas",
            field_path=".schedules",
        ),
        CelRule(
            rule=(
                "self.minReplicas != 0 || has(self.signals.pendingRequests) || self.signals.custom.size() > 0 || "
                "self.schedules.size() > 0"
            ),
            message=(
                "minReplicas 0 needs something that can be seen without replicas to wake the pool: "
                "signals.pendingRequests, signals.custom or schedules"
            ),
            field_path=".minReplicas",
        ),
    )

    @property
    def is_in_hpa_terms(self) -> bool:
        """Whether an HPA could hold the policy: custom votes and behavior alone. Such a one decides as an HPA does."""
        if self.objectives is not None or self.forecast is not None or self.schedules or not self.signals.custom:
            return False
        return self.signals == SignalParameters(custom=self.signals.custom)

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.min_replicas > self.max_replicas:
            raise ValueError(f"minReplicas {self.min_replicas} is above maxReplicas {self.max_replicas}")
        fallback = self.missing_data.fallback
        if fallback is not None and fallback.replicas > self.max_replicas:
            raise ValueError(
                f"missingData.fallback.replicas {fallback.replicas} is above maxReplicas {self.max_replicas}"
            )
        return self

    @model_validator(mode="after")
    def _check_schedules(self) -> Self:
        for name in _repeated(window.name for window in self.schedules):
            raise ValueError(f"schedules has {name!r} more than once; each name is one window")
        for window in self.schedules:
            if window.min_replicas is not None and window.min_replicas > self.max_replicas:
                raise ValueError(
                    f"schedule {window.name!r}: minReplicas {window.min_replicas} is above the policy's maxReplicas "
                    f"{self.max_replicas}"
                )
            if window.max_replicas is not None and window.max_replicas < self.min_replicas:
                raise ValueError(
                    f"schedule {window.name!r}: maxReplicas {window.max_replicas} is below the policy's minReplicas "
                    f"{self.min_replicas}"
                )
        return self

    @model_validator(mode="after")
    def _check_wake_up(self) -> Self:
        can_wake = self.signals.pending_requests is not None or self.signals.custom or self.schedules
        if self.min_replicas == 0 and not can_wake:
            raise ValueError(
                "minReplicas 0 needs something that can be seen without replicas to wake the pool: "
                "signals.pendingRequests, signals.custom or schedules"
            )
        return self
