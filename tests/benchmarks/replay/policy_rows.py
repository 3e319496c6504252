"""How does the default policy do on one load? Measured in a process of its own, beside the best plan and a fixed fleet.

The best plan and the fixed fleet depend on the plant alone. They are kept in the folder for temporary files under a
digest of the plant's code, so that a change of the policy is measured again in a fraction of the time.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import autoscaler.replay
from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
from autoscaler.replay.baselines.baseline import Occasion, make_baseline
from autoscaler.replay.clairvoyant import Clairvoyant, find_clairvoyant, least_fixed_count, planned_policy
from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.comparison import Stage
from autoscaler.replay.fleet_description import Fleet, fleet_from
from autoscaler.replay.policy_files import reconciled_policy
from autoscaler.replay.result import PoolResult
from policies.recommenders.recurring_bursts import RecurringBurstsParameters
from tests.benchmarks.replay import loads as loads_module
from tests.benchmarks.replay.loads import AGENTS, BenchLoad, loads

PROFILE = "llama-3.3-70b-fp8-2xh100-vllm"
COLD_STARTS = (120.0, 300.0)
# What whoever runs the agents of `loads.py` may know of their bursts: as deploy/examples/agents-in-bursts.yaml says.
EXPECTED_AMPLIFICATION = 5.5
PLANT = (
    *("agent_sessions", "arrivals", "clairvoyant", "replica_set", "replica_work", "routers", "serving_replica"),
    *("simulated_pool", "step_law", "trace", "trace_load"),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What somebody's replicas came to."""

    attainment: float
    accelerator_hours: float


@dataclass(frozen=True, slots=True)
class Row:
    """One load at one cold start, and one policy: the default one where it says nothing of itself."""

    load: str
    policy: str
    kind: str
    cold_start_seconds: float
    ours: Cost
    reversals_per_hour: float
    best: Cost
    fixed: Cost
    others: tuple[tuple[str, Cost], ...]

    def cell(self, cost: Cost) -> str:
        """Attainment at hours relative to the best plan's."""
        return f"{100 * cost.attainment:.2f} % @{cost.accelerator_hours / self.best.accelerator_hours:.2f}"


@dataclass(frozen=True, slots=True)
class RowOrder:
    """What a process is to measure: a load by name at all cold starts."""

    directory: Path
    load: str
    seeds: tuple[int, ...]
    baselines: tuple[str, ...] = ()


def measure_rows(order: RowOrder) -> list[Row]:
    """The rows of one load, one a cold start and policy. Takes a minute or two of one core."""
    load = loads(order.directory)[order.load]
    kept, found = _Kept(order), list[Clairvoyant]()
    return [row for cold_start in COLD_STARTS for row in _rows(load, order, cold_start, kept, found)]


def a_fleet(cold_start_seconds: float) -> Fleet:
    """The fleet of all tables; a start takes so long in the mean of its logarithm, deviation 0.25."""
    fleet = fleet_from(PROFILE)
    assert isinstance(fleet, Fleet)
    return replace(fleet, cold_start=ColdStart((ColdStartPhase("start", cold_start_seconds, 0.25),)))


def the_default_policy(cold_start_seconds: float, maximum: int, minimum: int = 1) -> InferenceScaler:
    """An InferenceScaler that says nothing but what every one must, and how long a start usually takes."""
    parsed = parse_inference_scaler(
        {
            "apiVersion": "tokenscaler.io/v1alpha1",
            "kind": "InferenceScaler",
            "metadata": {"name": "default", "namespace": "inference"},
            "spec": {
                "mode": "Scale",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm"},
                "engine": "vllm",
                "minReplicas": minimum,
                "maxReplicas": maximum,
                "coldStart": {"priorSeconds": round(cold_start_seconds * 1.3)},
            },
        }
    )
    assert isinstance(parsed, InferenceScaler), parsed
    return parsed


def the_policies(load: BenchLoad, cold_start_seconds: float) -> dict[str, InferenceScaler]:
    """The default one, and for agents also one that says how tall the bursts are that it expects."""
    default = the_default_policy(cold_start_seconds, load.maximum)
    if load.kind != AGENTS:
        return {"": default}
    expected = RecurringBurstsParameters(expected_amplification=EXPECTED_AMPLIFICATION)
    spec = default.spec.model_copy(update={"recurring_bursts": expected})
    return {"": default, f"expects x{EXPECTED_AMPLIFICATION:g}": replace(default, spec=spec)}


def _rows(load: BenchLoad, order: RowOrder, cold_start: float, kept: _Kept, found: list[Clairvoyant]) -> Iterator[Row]:
    """`found` are the plans for other cold starts, near which the best one is sought."""
    fleet = a_fleet(cold_start)
    stage = Stage(fleet, load.on(fleet), order.seeds)
    drawn = stage.load.draw(1)

    def best_plan() -> Cost:
        best = find_clairvoyant(stage, drawn, 1, found[-1] if found else None)
        assert best is not None
        found.append(best)
        return Cost(best.attainment, best.accelerator_hours)

    def fixed_fleet() -> Cost:
        target = min(0.995, best.attainment)
        count = least_fixed_count(stage, drawn, 1, target)
        return _cost([stage.run(planned_policy("static-peak", (count,)), drawn, 1)])

    best = kept.get(f"{cold_start:.0f} s", best_plan)
    fixed = kept.get("fixed", fixed_fleet)  # no replica starts in it, so one is enough for all cold starts
    occasion = Occasion(stage, drawn, 1, None, 1, load.maximum)
    others = []
    for name in order.baselines:
        baseline = make_baseline(name, occasion)
        assert baseline is not None
        others.append((name, _cost([stage.run(baseline, drawn, 1)])))
    for name, scaler in the_policies(load, cold_start).items():
        policy = reconciled_policy(scaler)
        ours = [stage.run(policy, stage.load.draw(seed), seed) for seed in order.seeds]
        reversals = sum(each.reversals for each in ours) / sum(each.hours for each in ours)
        yield Row(load.name, name, load.kind, cold_start, _cost(ours), reversals, best, fixed, tuple(others))


def _cost(results: Sequence[PoolResult]) -> Cost:
    return Cost(
        sum(each.attainment or 0.0 for each in results) / len(results),
        sum(each.accelerator_hours for each in results) / len(results),
    )


class _Kept:
    """Costs by name, in one file a load."""

    def __init__(self, order: RowOrder) -> None:
        folder = Path(tempfile.gettempdir()) / "tokenscaler-bench-replay"
        folder.mkdir(exist_ok=True)
        self._path = folder / f"{order.load}-{_digest(order.directory)}.json"

    def get(self, name: str, measure: Callable[[], Cost]) -> Cost:
        """The kept cost, else what `measure` gives, which is kept."""
        known = json.loads(self._path.read_text()) if self._path.exists() else {}
        if name not in known:
            known[name] = asdict(measure())
            self._path.write_text(json.dumps(known))
        return Cost(**known[name])


def _digest(directory: Path) -> str:
    plant = Path(autoscaler.replay.__file__).parent
    files = [plant / f"{name}.py" for name in PLANT] + [plant / "profiles.json", Path(loads_module.__file__)]
    digest = hashlib.sha256(str(directory.resolve()).encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
