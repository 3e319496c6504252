"""The closed list of machine-readable reasons: one word for the log, the Event, the condition and the metric label."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a number is what it is. Words are the HorizontalPodAutoscaler's wherever it has one."""

    # Votes: which rule asked for the count.
    TOKENS_IN_FLIGHT = "TokensInFlight"
    TOKEN_RATE = "TokenRate"
    WORK_RATE = "WorkRate"
    KV_CACHE = "KVCache"
    WAITING_REQUESTS = "WaitingRequests"
    INTER_TOKEN_LATENCY_DIVERGENCE = "InterTokenLatencyDivergence"
    NO_DIVERGENCE = "NoDivergence"  # the gaps between tokens are even, or nothing can be told of them
    PENDING_REQUESTS = "PendingRequests"
    CUSTOM = "Custom"
    SCHEDULE = "Schedule"
    FORECAST = "Forecast"
    LOAD_RISE = "LoadRise"
    RECURRING_BURSTS = "RecurringBursts"
    EXPECTED_BURSTS = "ExpectedBursts"  # the policy expects them, and none recur at the moment
    NO_VOTES = "NoVotes"  # nobody had an opinion
    SIGNAL_ABSENT = "SignalAbsent"  # the engine does not expose what the vote needs
    SIGNAL_UNKNOWN = "SignalUnknown"  # it should be there and is not
    HORIZON_LONG_ENOUGH = "HorizonLongEnough"
    HORIZON_TOO_SHORT = "HorizonTooShort"  # of the forecast, for the time that starts take
    FORECAST_UNAVAILABLE = "ForecastUnavailable"  # normal: too little history, or no better than the last value

    # Limits: what became of it.
    NOT_LIMITED = "NotLimited"  # the limit had nothing to do
    WITHIN_TOLERANCE = "WithinTolerance"
    READY_FOR_NEW_SCALE = "ReadyForNewScale"  # recommended size matches current size
    SCALE_DOWN_STABILIZED = "ScaleDownStabilized"
    SCALE_UP_STABILIZED = "ScaleUpStabilized"
    PASSING_BURST = "PassingBurst"  # what stands ready for recurring bursts serves this one
    SCALE_UP_LIMIT = "ScaleUpLimit"
    SCALE_DOWN_LIMIT = "ScaleDownLimit"
    TOO_MANY_REPLICAS = "TooManyReplicas"
    TOO_FEW_REPLICAS = "TooFewReplicas"
    DESIRED_WITHIN_RANGE = "DesiredWithinRange"
    SCALE_UP_ONLY = "ScaleUpOnly"
    STUCK_REPLICAS = "StuckReplicas"  # more are asked for, so that enough work
    LEAVING_REPLICAS = "LeavingReplicas"  # more are asked for, in place of those whose nodes are about to go
    SCALED_TO_ZERO = "ScaledToZero"
    RECENTLY_ACTIVE = "RecentlyActive"  # not idle for long enough, or not proven to be, to go to zero

    # Missing data.
    METRICS_UNAVAILABLE = "MetricsUnavailable"
    LOW_COVERAGE = "LowCoverage"
    UNSTEADY_REPLICAS = "UnsteadyReplicas"  # replicas that are not ready, or stand still, have requests
    FALLBACK = "Fallback"
    RECOVERING = "Recovering"  # readings are good again, but fewer than three in a row
    HISTORY_INCOMPLETE = "HistoryIncomplete"  # a restart: the scale-down window has not been seen yet

    # Observation.
    VALID_METRIC_FOUND = "ValidMetricFound"
    PROMETHEUS_UNREACHABLE = "PrometheusUnreachable"
    PROMETHEUS_TIMEOUT = "PrometheusTimeout"
    PROMETHEUS_REJECTED = "PrometheusRejected"
    PROMETHEUS_BAD_ANSWER = "PrometheusBadAnswer"
    NOT_READ_YET = "NotReadYet"  # this process has only just begun to watch
    STALE_CACHE = "StaleCache"  # the watch of the API server has not been heard of for too long
    TARGET_NOT_FOUND = "TargetNotFound"
    TARGET_NOT_SCALABLE = "TargetNotScalable"
    AMBIGUOUS_SELECTOR = "AmbiguousSelector"  # the target's selector matches pods of others
    SELECTOR_UNAMBIGUOUS = "SelectorUnambiguous"
    SUCCEEDED_GET_SCALE = "SucceededGetScale"
    FAILED_GET_SCALE = "FailedGetScale"
    SCALING_DISABLED = "ScalingDisabled"  # the target stands at zero and nothing says that we put it there

    # Supply.
    REPLICAS_WORK = "ReplicasWork"
    WEDGED_REPLICAS = "WedgedReplicas"  # ready replicas hold requests and finish none
    ROUTING_BALANCED = "RoutingBalanced"
    ROUTING_IMBALANCED = "RoutingImbalanced"  # one replica is full while most are not: more replicas do not help
    BURSTS_SERVED = "BurstsServed"
    BURSTS_TOO_SHORT = "BurstsTooShort"  # largely over before a new replica serves: only standing ones do
    STARTS_IN_TIME = "StartsInTime"
    STARTS_SLOWLY = "StartsSlowly"  # replicas take longer to start than the policy says

    # Capacity.
    CAPACITY_LEARNED = "CapacityLearned"
    CAPACITY_NOT_LEARNED = "CapacityNotLearned"

    # Actuation.
    SUCCEEDED_RESCALE = "SucceededRescale"
    DRAINING = "Draining"  # replicas that are to go end their requests first
    DRY_RUN = "DryRun"
    EXTERNAL_METRIC = "ExternalMetric"  # an HPA reads the count and writes it
    NO_AUTOSCALER = "NoAutoscaler"  # nobody reads it: no HPA has the target
    FAILED_UPDATE_SCALE = "FailedUpdateScale"
    CONFLICT = "Conflict"
    THROTTLED = "Throttled"
    FORBIDDEN = "Forbidden"
    NOT_LEADER = "NotLeader"
    COMPETING_AUTOSCALER = "CompetingAutoscaler"  # an HPA or a ScaledObject steers the target
    COMPETING_WRITER = "CompetingWriter"  # another field manager has just changed the count
    COMPETING_SCALER = "CompetingScaler"  # an older InferenceScaler has the same target

    # Acceptance of a spec.
    SPEC_ACCEPTED = "SpecAccepted"
    SPEC_INVALID = "SpecInvalid"
    INTERNAL_ERROR = "InternalError"

    # Accelerator pools.
    NODES_FOUND = "NodesFound"
    NO_NODES = "NoNodes"
    NODES_AVAILABLE = "NodesAvailable"
    SCALERS_COUNTED = "ScalersCounted"
    ACCELERATORS_UNKNOWN = "AcceleratorsUnknown"  # accelerators of a replica, or its desired replicas, are not known
    ACCELERATORS_SUFFICIENT = "AcceleratorsSufficient"
    ACCELERATORS_SHORT = "AcceleratorsShort"
    ACCELERATOR_CEILING = "AcceleratorCeiling"  # the pool's ceiling leaves fewer nodes, or a scaler fewer replicas
    DOLLAR_CEILING = "DollarCeiling"  # the pool's dollars an hour leave fewer nodes
    SHARED_DOLLAR_CEILING = "SharedDollarCeiling"  # the dollars an hour of all pools together leave it fewer nodes
    NODE_PRICE_UNKNOWN = "NodePriceUnknown"  # and there is a ceiling in dollars that is for all pools
    NODES_NEEDED = "NodesNeeded"
    SLACK_NODES = "SlackNodes"
    NODES_IN_USE = "NodesInUse"  # a limit is not lowered below the nodes that are there
    SPLIT_KEPT = "SplitKept"  # the shares of on-demand and spot nodes are as the policy says
    SPLIT_BROKEN = "SplitBroken"
    ON_DEMAND_FLOOR = "OnDemandFloor"  # spot waits for on-demand nodes, or on-demand replicas for spot nodes to go
    SPOT_UNAVAILABLE = "SpotUnavailable"
    RETURNING_TO_SPOT = "ReturningToSpot"
    RETURN_REFUSED = "ReturnRefused"  # what could be on spot stays on demand
    ON_SPOT_AGAIN = "OnSpotAgain"  # nothing is on demand that could be on spot
    RESTORING_FLOOR = "RestoringFloor"
    FLOOR_NOT_RESTORED = "FloorNotRestored"  # what should be on demand stays on spot
    PLACEHOLDERS_NOT_FOUND = "PlaceholdersNotFound"  # the Deployment that holds nodes ready is not there
    NODES_HELD_READY = "NodesHeldReady"
    NODES_NOT_HELD = "NodesNotHeld"
    NAME_TAKEN = "NameTaken"  # an object that we would make is there, and somebody else's
    CAPACITY_BUFFERS_NOT_SERVED = "CapacityBuffersNotServed"  # their definition is not installed
    CAPACITY_BUFFER_NOT_READY = "CapacityBufferNotReady"  # Karpenter cannot use it
    CAPACITY_BUFFER_SILENT = "CapacityBufferSilent"  # nobody looks at it: Karpenter's feature gate is off
    LIMITS_IN_STEP = "LimitsInStep"
    LIMITS_NOT_WRITTEN = "LimitsNotWritten"
    NODE_SHAPE_CONTRADICTED = "NodeShapeContradicted"
    REPLICA_FITS_NO_NODE = "ReplicaFitsNoNode"  # for its CPU or memory
    NODE_POOL_NOT_FOUND = "NodePoolNotFound"
    NODE_POOL_NOT_READY = "NodePoolNotReady"
    KARPENTER_SILENT = "KarpenterSilent"  # nobody has judged the limits that were written
    OUT_OF_CAPACITY = "OutOfCapacity"  # the cloud has no such nodes; tried again after a while
    QUOTA_EXCEEDED = "QuotaExceeded"
    LAUNCH_MISCONFIGURED = "LaunchMisconfigured"  # the cloud refuses what is asked for
    DISRUPTION_ALLOWED = "DisruptionAllowed"
    POOL_GROWS = "PoolGrows"  # no node is taken away meanwhile
    DISRUPTION_SET = "DisruptionSet"
    DISRUPTION_NOT_SET = "DisruptionNotSet"
    CONSOLIDATION_FITS = "ConsolidationFits"
    CONSOLIDATION_UNFIT = "ConsolidationUnfit"  # nodes go sooner or later than suits what they serve
