"""Everything a policy may say, composed of the parameters that each rule declares beside itself."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from policies.constraints.behavior import ScalingBehavior
from policies.constraints.missing_data import MissingDataParameters
from policies.parameter_model import ParameterModel
from policies.recommenders.custom import CustomParameters
from policies.recommenders.kv_cache import KVCacheParameters
from policies.recommenders.pending_requests import PendingRequestsParameters
from policies.recommenders.schedule import ScheduleWindow
from policies.recommenders.token_rate import TokenRateParameters
from policies.recommenders.tokens_in_flight import TokensInFlightParameters
from policies.recommenders.waiting_requests import WaitingRequestsParameters


class Mode(StrEnum):
    """Who may write what: nobody, only larger counts, or any count."""

    DRY_RUN = "DryRun"
    SCALE_UP_ONLY = "ScaleUpOnly"
    SCALE = "Scale"


class SignalParameters(ParameterModel):
    """The votes a pool uses; a block that is left out does not vote."""

    tokens_in_flight: TokensInFlightParameters | None = None
    token_rate: TokenRateParameters | None = None
    kv_cache: KVCacheParameters | None = None
    waiting_requests: WaitingRequestsParameters | None = None
    pending_requests: PendingRequestsParameters | None = None
    custom: tuple[CustomParameters, ...] = Field(default=(), max_length=8)


class ColdStartParameters(ParameterModel):
    """How long a replica takes from being asked for until it is Ready."""

    prior_seconds: int = Field(
        default=300, ge=1, le=7200, description="Cold start in seconds until it has been measured."
    )


class ScalingParameters(ParameterModel):
    """The part of an InferenceScaler's spec that `decide` reads."""

    mode: Mode = Mode.DRY_RUN
    min_replicas: int = Field(default=1, ge=0, le=100_000)
    max_replicas: int = Field(ge=1, le=100_000)
    signals: SignalParameters = SignalParameters()
    behavior: ScalingBehavior = ScalingBehavior()
    schedules: tuple[ScheduleWindow, ...] = Field(default=(), max_length=32)
    missing_data: MissingDataParameters = MissingDataParameters()
    cold_start: ColdStartParameters = ColdStartParameters()
