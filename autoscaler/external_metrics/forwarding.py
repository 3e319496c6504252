"""What becomes of a request for a metric that we do not know, where another provider is to be asked?

Its answer is passed on as it is. Its silence is an error of ours that names it, and costs nobody else anything: it is
asked from threads of its own, so many at once and no more, each for a few seconds, and after some failures in a row not
at all for a while.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Executor
from dataclasses import dataclass
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Histogram

from autoscaler.clock import Clock
from autoscaler.external_metrics.breaker import Breaker
from autoscaler.external_metrics.caller import Caller
from autoscaler.external_metrics.other_provider import DEADLINE_SECONDS, Answer, NoAnswer, OtherProvider

logger = logging.getLogger(__name__)

MAXIMUM_AT_ONCE = 32
LATENCY_BUCKETS_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)


class Outcome(StrEnum):
    """What came of a question to the other provider."""

    ANSWERED = "answered"  # with whatever it said
    REFUSED = "refused"  # it does not let us ask
    FAILED = "failed"  # no answer, or not in time
    NOT_ASKED = "not_asked"  # too many at once, or it has not answered for a while


@dataclass(frozen=True, slots=True)
class NotForwarded:
    """Why there is no answer of the other provider, in a sentence for a person who reads `kubectl describe hpa`."""

    message: str


class ForwardingMetrics:
    """How the other provider does, apart from how we do."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "tokenscaler_forwarded_requests",
            "Questions to the other provider of external metrics by what came of them.",
            ["outcome"],
            registry=registry,
        )
        self.seconds = Histogram(
            "tokenscaler_forwarded_request_seconds",
            "Time until the other provider of external metrics had answered, or had not.",
            buckets=LATENCY_BUCKETS_SECONDS,
            registry=registry,
        )
        for outcome in Outcome:
            self.requests.labels(outcome.value)


class Forwarder:
    """Asks the other provider for the event loop, which never waits for it."""

    def __init__(
        self,
        provider: OtherProvider,
        executor: Executor,
        clock: Clock,
        metrics: ForwardingMetrics,
        patience_seconds: float = DEADLINE_SECONDS + 1.0,
    ) -> None:
        """`executor` has as many threads as the provider shall be asked at once; they are used for nothing else."""
        self._provider = provider
        self._executor = executor
        self._clock = clock
        self._metrics = metrics
        self._patience_seconds = patience_seconds
        self._breaker = Breaker(clock)
        self._asking = 0

    async def get(self, path: str, query: str, caller: Caller | None) -> Answer | NotForwarded:
        """The other provider's answer to a path that is quoted already; or why there is none."""
        if self._asking >= MAXIMUM_AT_ONCE:
            return self._not_asked("is being asked too much at once")
        if not self._breaker.may_ask():
            return self._not_asked("has not answered for a while and is asked again later")
        self._asking += 1
        started = self._clock.monotonic_seconds()
        try:
            question = asyncio.get_running_loop().run_in_executor(
                self._executor, self._provider.read, path, query, caller
            )
            answer = await asyncio.wait_for(question, self._patience_seconds)
        except TimeoutError:
            answer = NoAnswer(f"no answer within {self._patience_seconds:g} s")
        finally:
            self._asking -= 1
            self._metrics.seconds.observe(self._clock.monotonic_seconds() - started)
        return self._judge(answer)

    def _judge(self, answer: Answer | NoAnswer) -> Answer | NotForwarded:
        if isinstance(answer, NoAnswer):
            self._breaker.failed()
            self._count(Outcome.FAILED)
            return NotForwarded(f"{self._who()} gave no answer: {answer.problem}")
        self._breaker.answered()
        if answer.status in (401, 403):
            # It is us whom it does not let in: the caller must not take that for a refusal of theirs.
            self._count(Outcome.REFUSED)
            said = answer.body[:300].decode(errors="replace")
            return NotForwarded(f"{self._who()} does not let Tokenscaler read external metrics: {answer.status} {said}")
        self._count(Outcome.ANSWERED)
        return answer

    def _not_asked(self, why: str) -> NotForwarded:
        self._count(Outcome.NOT_ASKED)
        return NotForwarded(f"{self._who()} {why}")

    def _who(self) -> str:
        return f"the other provider of external metrics ({self._provider.url})"

    def _count(self, outcome: Outcome) -> None:
        self._metrics.requests.labels(outcome.value).inc()
