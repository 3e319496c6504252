"""Which loads is the default policy judged on? Recorded ones and made-up ones, most of a mean work of 12 replicas.

Of records of many days two hours are run in which nothing is missing from the record, with the morning's rise where
there is one. Where a record's answers are of a few tokens, its requests are as long as a chat's on average (1200 tokens
in, 250 out): else a dozen replicas would be a thousand requests a second. Agents are run for a day: of two hours their
first burst alone, of which nobody can know, is a tenth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from autoscaler.replay.agent_sessions import AgentSessions
from autoscaler.replay.fleet_description import Fleet
from autoscaler.replay.replica_work import work
from autoscaler.replay.trace import BinnedTrace, FloatArray, read_trace
from autoscaler.replay.trace_load import Trace, TraceLoad, trace_load

COMMITTED = Path(__file__).parents[2] / "data" / "traces"
MEAN_WORK = 12.0
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
CHAT_INPUT_TOKENS, CHAT_OUTPUT_TOKENS = 1200.0, 250.0
SMOOTH, PREDICTABLE, UNANNOUNCED, AGENTS = "smooth", "noisy or predictable", "unannounced", "agents"


@dataclass(frozen=True, slots=True)
class BenchLoad:
    """A load, its class, and the part of it that is run; the part before it is the forecaster's past.

    `mean_work` None leaves the load as large as it is.
    """

    name: str
    kind: str
    trace: Callable[[], Trace]
    starts: float = 0.0
    lasts: float = 2.0 * HOUR
    mean_work: float | None = MEAN_WORK
    maximum: int = 64  # replicas
    sampled_one_in: int = 1

    def on(self, fleet: Fleet) -> TraceLoad:
        """The load at a scale at which its mean work is that of so many replicas."""
        trace = self.trace()
        if self.mean_work is None:
            return trace_load(trace, 1.0, self.starts, self.starts + self.lasts, 0, self.sampled_one_in)
        once = trace_load(trace, 1.0, self.starts, self.starts + self.lasts, 0, 1)
        drawn = once.draw(1)
        mean = float(work(fleet.profile, once.bins(drawn, MINUTE), fleet.objectives).mean())
        return trace_load(trace, self.mean_work / mean, self.starts, self.starts + self.lasts, 0, 1)


def _shaped(shape: FloatArray, bin_seconds: float = MINUTE) -> BinnedTrace:
    inputs, outputs = np.full(len(shape), CHAT_INPUT_TOKENS), np.full(len(shape), CHAT_OUTPUT_TOKENS)
    return BinnedTrace(0.0, bin_seconds, shape, inputs, outputs)


def _as_chat(trace: Trace) -> Trace:
    """The rates of a record, and its lengths brought to a chat's means."""
    assert isinstance(trace, BinnedTrace)
    inputs, outputs = trace.input_tokens_per_request, trace.output_tokens_per_request
    return replace(
        trace,
        input_tokens_per_request=inputs * (CHAT_INPUT_TOKENS / float(np.nanmean(inputs))),
        output_tokens_per_request=outputs * (CHAT_OUTPUT_TOKENS / float(np.nanmean(outputs))),
    )


def _rates(file: Path, bin_seconds: float) -> BinnedTrace:
    """A series of values alone as a shape."""
    return _shaped(np.genfromtxt(file, delimiter=",", skip_header=1, usecols=1), bin_seconds)


def _step() -> BinnedTrace:
    """Three times the load for 45 minutes, without a warning."""
    shape = np.ones(150)
    shape[60:105] = 3.0
    return _shaped(shape)


def _wave() -> BinnedTrace:
    """Twice the load within five minutes, at the same hour of each of ten days."""
    day = np.ones(1440)
    day[480:485] = np.linspace(1.0, 2.0, 5)
    day[485:1080] = 2.0
    return _shaped(np.tile(day, 10))


def loads(directory: Path) -> Mapping[str, BenchLoad]:
    """By name; those whose file is not in the folder are left out."""

    def recorded(file: str) -> Callable[[], Trace]:
        return lambda: read_trace(directory / f"{file}.csv")

    def chat(file: str) -> Callable[[], Trace]:
        return lambda: _as_chat(recorded(file)())

    def morning(day: int) -> float:
        return day * DAY + 7.0 * HOUR

    kpi = directory / "web_kpi_5min.csv"
    found = [
        BenchLoad("kpi", SMOOTH, lambda: _rates(kpi, 5 * MINUTE), morning(59)),
        BenchLoad("s31", SMOOTH, chat("llm_servegen_client_s31_10min"), morning(11) + 20 * MINUTE),
        BenchLoad("m30", SMOOTH, chat("llm_servegen_client_m30_10min"), morning(12) + HOUR),
        BenchLoad("large", SMOOTH, chat("llm_servegen_large_10min"), morning(11) + HOUR),
        BenchLoad("deepseek", SMOOTH, recorded("llm_servegen_deepseek_r1_10min"), 6 * HOUR),
        BenchLoad("azure", PREDICTABLE, recorded("llm_azure2023_conv_requests"), 0.0, HOUR),
        BenchLoad("mooncake", PREDICTABLE, recorded("llm_mooncake_conversation_requests"), 0.0, HOUR),
        BenchLoad("small", PREDICTABLE, chat("llm_servegen_small_10min"), morning(11) + 20 * MINUTE),
        BenchLoad("wave", PREDICTABLE, _wave, morning(9)),
        BenchLoad("step", UNANNOUNCED, _step, 0.0, 2.5 * HOUR),
        BenchLoad(
            "agents",
            AGENTS,
            lambda: AgentSessions(sessions=10_000, hours=24.0),
            lasts=DAY,
            mean_work=None,
            maximum=400,
            sampled_one_in=16,
        ),
    ]
    return {each.name: each for each in found if _is_there(each)}


def _is_there(load: BenchLoad) -> bool:
    try:
        load.trace()
    except OSError:
        return False
    return True
