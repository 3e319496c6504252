"""On which loads is a policy tuned, and on which later ones is it judged?"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from autoscaler.replay.agent_sessions import AgentSessions
from autoscaler.replay.comparison import Stage
from autoscaler.replay.fleet_description import Fleet
from autoscaler.replay.policy_only import PolicyOnlyStage
from autoscaler.replay.trace import RequestTrace
from autoscaler.replay.trace_load import TraceLoad

# What the figures of a load of rates are, and what to do before they are relied on.
MISSED_OF_RATES = (
    "policy only: within the objectives stands for the share of the requests that arrived while the replicas were not "
    "short, by the model of the flow; replay a busy part exactly (tokenscaler replay, --start, --end) before you apply "
    "what was found"
)
# With fewer requests held out, half a percent of them is a handful.
FEW_REQUESTS = 2000


class Part(StrEnum):
    """Which part of every load a run is on."""

    SEARCH = "search"
    HELD_OUT = "held-out"


@dataclass(frozen=True, slots=True)
class Scene:
    """A load on a fleet, cut in two: parameters are sought on the first part, and judged on the second."""

    name: str
    fleet: Fleet
    search: TraceLoad
    held_out: TraceLoad
    rates_step_seconds: float | None = None  # how often is decided where the load is a flow of rates; None: requests

    @property
    def parts(self) -> str:
        """Which seconds of the trace are which part, in words."""
        search, held_out = self.search, self.held_out
        return (
            f"{self.name}: tuned on its seconds {search.start_seconds:.0f} to {search.end_seconds:.0f}, "
            f"judged on {held_out.start_seconds:.0f} to {held_out.end_seconds:.0f}"
        )

    def load(self, part: Part) -> TraceLoad:
        """The load of one part."""
        return self.search if part is Part.SEARCH else self.held_out

    def stage(self, part: Part, goes_on: Callable[[], bool] = lambda: True) -> Stage:
        """What policies are run on; a run ends early once `goes_on` says False."""
        return Stage(self.fleet, self.load(part), tells=lambda name, seed, share: goes_on())

    def rates(self, part: Part, seed: int, goes_on: Callable[[], bool] = lambda: True) -> PolicyOnlyStage:
        """The same for a load of rates, by one seed."""
        return PolicyOnlyStage(replace(self.stage(part, goes_on), seeds=(seed,)), self.rates_step_seconds)

    def drawn(self, part: Part, seed: int) -> RequestTrace:
        """The requests of one part; of a load of rates one of the mean lengths."""
        if self.rates_step_seconds is not None:
            return self.rates(part, seed).typical_request()
        return self.load(part).draw(seed)


def cut_scene(
    name: str, fleet: Fleet, load: TraceLoad, held_out_percent: float, rates_step_seconds: float | None = None
) -> Scene:
    """The load up to the cut and from there on; in both, only what lies before is history."""
    cut = load.end_seconds - (load.end_seconds - load.start_seconds) * held_out_percent / 100.0
    search, held_out = replace(load, end_seconds=cut), replace(load, start_seconds=cut)
    return Scene(name, fleet, search, held_out, rates_step_seconds)


def part_problems(scenes: Sequence[Scene], seed: int) -> Iterator[str]:
    """Of every part without a request, what to do."""
    for scene in scenes:
        for part in Part:
            load = scene.load(part)
            if not _has_requests(scene, part, seed):
                where = f"its {part.value} part, from {load.start_seconds:.0f} to {load.end_seconds:.0f} s"
                yield f"{scene.name}: no request arrives in {where}; choose another --start, --end or --hold-out"


def _has_requests(scene: Scene, part: Part, seed: int) -> bool:
    if scene.rates_step_seconds is not None:
        return scene.rates(part, seed).problem() is None
    return len(scene.load(part).draw(seed)) > 0


def part_assumptions(scenes: Sequence[Scene], seed: int) -> Iterator[str]:
    """What a reader should know of the parts."""
    for scene in scenes:
        yield scene.parts
        requests = FEW_REQUESTS if scene.rates_step_seconds is not None else len(scene.held_out.draw(seed))
        if requests < FEW_REQUESTS:
            yield f"{scene.name}: only {requests} requests are held out, so their shares are coarse"


def load_digest(load: TraceLoad) -> str:
    """Tells loads apart: what is in the trace, and which part of it is used how often."""
    trace = load.trace
    digest = hashlib.sha256(repr((load.scale, load.start_seconds, load.end_seconds, load.sampled_one_in)).encode())
    digest.update(repr(load.shared_prefix_tokens).encode())
    if isinstance(trace, AgentSessions):
        digest.update(repr(trace).encode())
    else:
        for name in trace.__slots__:
            column = getattr(trace, name)
            if isinstance(column, np.ndarray):
                digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()[:16]
