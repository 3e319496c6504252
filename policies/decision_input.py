"""The entire input of one decision: serializable, so that a recorded one can be decided again."""

from __future__ import annotations

from dataclasses import dataclass

from forecasting.forecast import Forecast, ForecastUnavailable
from policies.accelerator_sharing import AcceleratorAllowance
from policies.capacity.learned_capacity import LearnedCapacity
from policies.cold_start import ColdStart, learn_cold_start
from policies.history import ScalingHistory
from policies.load.rise import LoadRise
from policies.node_move import NodeMove
from policies.observation import MetricsObservation, ObservationUnavailable, ReplicaCounts
from policies.parameters import ScalingParameters
from policies.standing_for_bursts import ExpectedBursts, RecurringBursts


@dataclass(frozen=True, slots=True)
class DecisionInput:
    """What `decide` sees. `now_seconds` is unix time; nothing in the core reads another clock.

    `learned_cold_start` is what the pool's own starts have taught; None: no start has been seen.
    `learned_capacity` is what a replica can do within the objectives; None: nothing has been learned of it yet.
    `forecast` is of the tokens that will arrive, per second; None: nothing is forecast for this pool (yet).
    `load_rise` is how the arrivals have risen lately; None: they have not, or it is not known.
    `recurring_bursts` are those that the pool may expect again; None: there are none.
    `expected_bursts` are those that the policy expects while none recur; None: it expects none, or no calm is known.
    `accelerator_allowance` is the pool's share where accelerators have a ceiling; None: nothing limits them.
    `node_move` is what its nodes say of a move to the other kind; None: its target does not run on both kinds of nodes.
    """

    now_seconds: float
    parameters: ScalingParameters
    replicas: ReplicaCounts
    metrics: MetricsObservation | ObservationUnavailable
    history: ScalingHistory
    learned_cold_start: ColdStart | None = None
    learned_capacity: LearnedCapacity | None = None
    forecast: Forecast | ForecastUnavailable | None = None
    load_rise: LoadRise | None = None
    recurring_bursts: RecurringBursts | None = None
    expected_bursts: ExpectedBursts | None = None
    accelerator_allowance: AcceleratorAllowance | None = None
    node_move: NodeMove | None = None

    @property
    def cold_start(self) -> ColdStart:
        """How long a replica of this pool takes to start: as learned, else the policy's prior."""
        return self.learned_cold_start or learn_cold_start((), self.parameters.cold_start.prior_seconds)
