"""Which requests do many agents send? Drawn: sessions that start tasks, tasks of several calls, and bursts of tasks.

A session is idle for ten minutes on average (exponential), then works on a task: 6 to 15 calls, of which each follows
the answer of the one before after a pause (tools, reflection; exponential, 10 s on average). Every prompt begins with
the same system prompt; the conversation so far is in it, so that prompts grow from call to call. Every 10 to 30 minutes
something (a schedule, a release, a news item) starts 6 to 15 times as many tasks for a minute.

`agents:sessions=10000,hours=24` is the load; every parameter below may be given so. How long an answer takes is not
known beforehand: 6 s are taken, as 150 tokens at 40 ms.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from autoscaler.replay.trace import FloatArray, RequestTrace, TraceError

PREFIX = "agents:"
ANSWER_SECONDS = 6.0
STEP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class AgentSessions:
    """The parameters, with the defaults of the generator. Times in seconds where the name says nothing else."""

    sessions: int = 10_000
    hours: float = 4.0
    idle_seconds: float = 600.0
    think_seconds: float = 10.0
    fewest_calls: int = 6
    most_calls: int = 15
    burst_gap_minutes_least: float = 10.0
    burst_gap_minutes_most: float = 30.0
    burst_times_least: float = 6.0
    burst_times_most: float = 15.0
    burst_seconds: float = 60.0
    system_prompt_tokens: int = 1500
    task_tokens: float = 400.0  # of the first message, mean
    tool_tokens: float = 250.0  # added by each call, mean
    answer_tokens: float = 150.0  # mean

    @property
    def duration_seconds(self) -> float:
        """How long the load is."""
        return self.hours * 3600.0

    @property
    def mean_requests_per_second(self) -> float:
        """Over a long time, bursts included."""
        calls = (self.fewest_calls + self.most_calls) / 2.0
        gap = 30.0 * (self.burst_gap_minutes_least + self.burst_gap_minutes_most)
        times = (self.burst_times_least + self.burst_times_most) / 2.0
        in_bursts = 1.0 + (times - 1.0) * self.burst_seconds / (gap + self.burst_seconds)
        return self.sessions / (self.idle_seconds + calls * (self.think_seconds + ANSWER_SECONDS)) * calls * in_bursts

    def draw(
        self, generator: np.random.Generator, scale: float, start_seconds: float, end_seconds: float
    ) -> RequestTrace:
        """The requests from start up to end, for `scale` times as many sessions."""
        starts = self._task_starts(generator, scale)
        calls = generator.integers(self.fewest_calls, self.most_calls + 1, len(starts))
        number = np.arange(int(calls.sum())) - np.repeat(np.cumsum(calls) - calls, calls)  # of the call in its task
        pauses = generator.exponential(self.think_seconds, len(number)) + ANSWER_SECONDS
        pauses[number == 0] = 0.0
        since_first = np.cumsum(pauses)
        since_first -= np.repeat(since_first[number == 0], calls)
        arrivals = np.repeat(starts, calls) + since_first
        first = np.repeat(_lengths(generator, self.task_tokens, len(starts)), calls)
        outputs = _lengths(generator, self.answer_tokens, len(number))
        growth = number * (self.tool_tokens + self.answer_tokens) * generator.uniform(0.7, 1.3, len(number))
        inputs = self.system_prompt_tokens + first + growth
        kept = np.flatnonzero((arrivals >= start_seconds) & (arrivals < end_seconds))
        order = kept[np.argsort(arrivals[kept], kind="stable")]
        return RequestTrace(
            arrivals[order],
            inputs[order].astype(np.int64),
            np.maximum(1, outputs[order]).astype(np.int64),
            end_seconds,
        )

    def _task_starts(self, generator: np.random.Generator, scale: float) -> FloatArray:
        calls = (self.fewest_calls + self.most_calls) / 2.0
        busy = calls * (self.think_seconds + ANSWER_SECONDS)
        warm_up = 3.0 * busy  # so that tasks are under way at second 0
        steps = int((self.duration_seconds + warm_up) / STEP_SECONDS)
        rate = np.full(steps, scale * self.sessions / (self.idle_seconds + busy))
        at = 0.0
        while True:
            at += 60.0 * generator.uniform(self.burst_gap_minutes_least, self.burst_gap_minutes_most)
            if at >= steps * STEP_SECONDS:
                break
            first, last = int(at / STEP_SECONDS), int((at + self.burst_seconds) / STEP_SECONDS)
            rate[first:last] *= generator.uniform(self.burst_times_least, self.burst_times_most)
            at += self.burst_seconds
        counts = generator.poisson(rate * STEP_SECONDS)
        begins = np.repeat(np.arange(steps) * STEP_SECONDS, counts)
        starts: FloatArray = begins + generator.uniform(0.0, STEP_SECONDS, len(begins)) - warm_up
        return starts


def read_agent_sessions(text: str) -> AgentSessions:
    """`agents:sessions=10000,hours=24` and so on. Raises `TraceError` with what is known where something is not."""
    known = {field.name: field for field in fields(AgentSessions)}
    given: dict[str, float] = {}
    for part in filter(None, text.removeprefix(PREFIX).split(",")):
        name, _, value = part.partition("=")
        if name not in known:
            raise TraceError(f"--trace {text}: {name!r} is not known; there are: {', '.join(known)}")
        try:
            given[name] = float(value)
        except ValueError as error:
            raise TraceError(f"--trace {text}: {name} is {value!r}, not a number") from error
        if not 0 < given[name] < 1e9:
            raise TraceError(f"--trace {text}: {name} is {value}; more than 0 is wanted")
        if known[name].type == "int":
            given[name] = int(given[name])
    sessions = AgentSessions(**given)  # type: ignore[arg-type]
    for least, most in (
        ("fewest_calls", "most_calls"),
        ("burst_gap_minutes_least", "burst_gap_minutes_most"),
        ("burst_times_least", "burst_times_most"),
    ):
        if getattr(sessions, least) > getattr(sessions, most):
            raise TraceError(f"--trace {text}: {least} is above {most}")
    return sessions


def _lengths(generator: np.random.Generator, mean: float, count: int) -> FloatArray:
    lengths: FloatArray = generator.lognormal(np.log(mean) - 0.32, 0.8, count)  # deviation 0.8 of the logarithm
    return np.clip(lengths, 1.0, 20.0 * mean)
