"""How much load brings a replica to its latency objectives? The step-time law, solved for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from policies.capacity.fit import FittedLaw, Vector
from policies.capacity.objectives import LatencyObjectives
from policies.capacity.request_lengths import USUAL_LENGTHS, RequestLengths
from policies.capacity.step_time import STEP_PROMPT_TOKENS, StepLoad
from policies.capacity.tail import SAFE_SLOW_SHARE, slow_share

# The largest batch of the engines by default.
MAXIMUM_SEQUENCES = 1024.0
BISECTIONS = 16
# Of the likeliest law's: less of a law changes nothing that is seen.
LEAST_LIKELIHOOD = 0.001


@dataclass(frozen=True, slots=True)
class TypicalRequest:
    """The requests that a capacity is for. `context_tokens` is what a running one holds on average."""

    computed_prompt_tokens: float
    cached_prompt_tokens: float
    generated_tokens: float
    context_tokens: float


@dataclass(frozen=True, slots=True)
class CapacityAtObjectives:
    """One replica whose mean request is at the objectives. `prompt_share` is the share of its time that prompts take,
    `safe_share` of its requests per second that at which slow requests are within the objectives too, `relative_error`
    one standard deviation of the share of it that a request takes.
    """

    request: TypicalRequest
    requests_per_second: float
    prompt_share: float
    tokens_in_flight: float
    safe_share: float
    relative_error: float

    @property
    def prefill_tokens_per_second(self) -> float:
        """Computed prompt tokens, if it did nothing else."""
        return self.requests_per_second * self.request.computed_prompt_tokens / self.prompt_share

    @property
    def decode_tokens_per_second(self) -> float:
        """Generated tokens, if it did nothing else."""
        return self.requests_per_second * self.request.generated_tokens / (1.0 - self.prompt_share)


def expected_capacity(
    laws: Sequence[FittedLaw],
    request: TypicalRequest,
    objectives: LatencyObjectives,
    kv_cache_tokens: float | None,
    lengths: RequestLengths = USUAL_LENGTHS,
) -> CapacityAtObjectives:
    """The mean over the laws that may be the pool's, by their likelihood; that they differ is part of the error.

    Mean and error are of a request's share of a replica, not of the rate: that is what the work that arrives is counted
    in, and a law by which a replica could do far more is little reason to give it less.
    """
    likely = [law for law in laws if law.likelihood >= LEAST_LIKELIHOOD * laws[0].likelihood]
    solved = [(law.likelihood, solve(law, request, objectives, kv_cache_tokens, lengths)) for law in likely]
    total = sum(likelihood for likelihood, _ in solved)

    def mean(value: Callable[[CapacityAtObjectives], float]) -> float:
        return sum(likelihood * value(each) for likelihood, each in solved) / total

    share = mean(lambda each: 1.0 / each.requests_per_second)
    square = mean(lambda each: (1.0 + each.relative_error**2) / each.requests_per_second**2)
    return CapacityAtObjectives(
        request=request,
        requests_per_second=1.0 / share,
        prompt_share=mean(lambda each: each.prompt_share),
        tokens_in_flight=mean(lambda each: each.tokens_in_flight),
        safe_share=mean(lambda each: each.safe_share),
        relative_error=math.sqrt(max(0.0, square / share**2 - 1.0)),
    )


def solve(
    fitted: FittedLaw,
    request: TypicalRequest,
    objectives: LatencyObjectives,
    kv_cache_tokens: float | None,
    lengths: RequestLengths = USUAL_LENGTHS,
) -> CapacityAtObjectives:
    """The largest load at which mean time per output token, mean time to first token and KV cache keep their limits.

    With D sequences decoding, and each request generating O tokens, a step sees D / O prompts begin; so the step's time
    T, and the requests per second D / (O T), are functions of D alone. For the slow requests (`tail.py`), of whom there
    are more the more lengths differ, it is solved once more.
    """
    limit = MAXIMUM_SEQUENCES
    if kv_cache_tokens:
        limit = min(limit, kv_cache_tokens / request.context_tokens)
    token, first = objectives.inter_token_latency_seconds, objectives.time_to_first_token_seconds

    def is_within(decoding: float) -> bool:
        load = load_of(decoding, request)
        parts = fitted.parts(load)
        return sum(parts) <= token and _first_token_seconds(parts, load) <= first

    def is_safe(decoding: float) -> bool:
        load = load_of(decoding, request)
        parts = fitted.parts(load)
        return slow_share(parts, load, request.generated_tokens, lengths, token) <= SAFE_SLOW_SHARE

    decoding = _largest(is_within, limit)
    safe = _largest(is_safe, decoding)
    load = load_of(decoding, request)
    fixed, contexts, prompts = fitted.parts(load)
    seconds = fixed + contexts + prompts
    grows = 1.0 - fixed / seconds if decoding < limit else 1.0
    return CapacityAtObjectives(
        request=request,
        requests_per_second=decoding / (request.generated_tokens * seconds),
        prompt_share=prompts / seconds,
        tokens_in_flight=decoding * request.context_tokens,
        safe_share=safe / fitted.seconds(load_of(safe, request)) * seconds / decoding,
        relative_error=fitted.relative_error(load) / max(0.1, grows),
    )


def load_of(decoding: float, request: TypicalRequest) -> StepLoad:
    """The mean step with so many sequences decoding, where all requests are like this one."""
    return StepLoad(
        decoding,
        request.context_tokens,
        decoding / request.generated_tokens,
        request.computed_prompt_tokens,
        request.cached_prompt_tokens,
    )


def _first_token_seconds(parts: Vector, load: StepLoad) -> float:
    """Mean time to first token: the steps of the own prompt, and the prompts before it as in a queue with one server
    (Pollaczek and Khinchine, sizes as spread as their mean): rho / (1 - rho) x service."""
    fixed, contexts, prompts = parts
    busy = min(0.99, prompts / (fixed + contexts + prompts))
    service = max(1.0, load.prompt_tokens / STEP_PROMPT_TOKENS) * (fixed + contexts) + prompts / load.prompts
    return service * (1.0 + busy / (1.0 - busy))


def _largest(is_within: Callable[[float], bool], limit: float) -> float:
    """The largest number of sequences up to `limit` that is within; a small one where even that is not."""
    if is_within(limit):
        return limit
    low, high = 0.0, limit
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_within(middle) else (low, middle)
    return max(low, 1e-3)
