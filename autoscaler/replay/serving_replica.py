"""What does one serving replica do with its requests, and when? Continuous batching, computed from event to event.

Every decoding sequence gets one token in each step, so a sequence finishes at a known value of the step counter, and a
run of n steps without prompts has a closed-form duration: with D sequences holding K tokens of context the i-th step
takes `first + i x growth`, where growth = D x seconds_per_context_token. Steps with prompt chunks are computed one by
one, runs of pure decoding in one jump. Without preemption this equals a simulation of every single step.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from heapq import heapify, heappop, heappush

from autoscaler.replay.replica_profile import ReplicaProfile
from autoscaler.replay.serving_counters import INTER_TOKEN_LATENCY_EDGES, ServingCounters, ServingSnapshot


class Request:
    """One request on its way through a pool. Times are simulated unix seconds, None until they have happened."""

    __slots__ = (
        "arrived_at",
        "cached_tokens",
        "computed_tokens",
        "finished_at",
        "first_token_at",
        "input_tokens",
        "output_tokens",
        "preempted_at",
        "prompt_tokens",
        "remaining_tokens",
    )

    def __init__(self, arrived_at: float, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> None:
        """Tokens are at least 1 each; of the prompt at least one token is computed, as the engines do."""
        self.arrived_at = arrived_at
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        self.cached_tokens = min(cached_tokens, input_tokens - 1)
        self.first_token_at: float | None = None
        self.finished_at: float | None = None
        self.preempted_at: float | None = None
        self.computed_tokens = 0  # of the prompt
        self.prompt_tokens = input_tokens  # after a preemption: with what had been generated
        self.remaining_tokens = output_tokens


class _Decoding:
    """A sequence that generates. Ordered by the step at which it finishes; `order` decides between equals."""

    __slots__ = ("context_at_first", "finish_step", "first_step", "order", "request")

    def __init__(self, finish_step: int, order: int, request: Request, first_step: int, context_at_first: int) -> None:
        self.finish_step = finish_step
        self.order = order
        self.request = request
        self.first_step = first_step
        self.context_at_first = context_at_first

    def __lt__(self, other: _Decoding) -> bool:
        if self.finish_step != other.finish_step:
            return self.finish_step < other.finish_step
        return self.order < other.order


class ServingReplica:
    """One engine with its queue, its batch and its paged KV cache."""

    __slots__ = (
        "_context_tokens",
        "_decoding",
        "_holds_admission",
        "_order",
        "_prefill_left_tokens",
        "_prefilling",
        "_profile",
        "_prompt_kv_tokens",
        "_reserved_tokens",
        "_running",
        "_step",
        "_waiting",
        "counters",
        "now_seconds",
        "requests_in_flight",
    )

    def __init__(self, profile: ReplicaProfile, now_seconds: float) -> None:
        self._profile = profile
        self.now_seconds = now_seconds
        self.counters = ServingCounters()
        self.requests_in_flight = 0  # running or waiting here
        self._step = 0
        self._order = 0
        self._waiting: deque[Request] = deque()
        self._prefilling: deque[Request] = deque()
        self._prefill_left_tokens = 0
        self._prompt_kv_tokens = 0  # blocks held by prompts that are not complete
        self._decoding: list[_Decoding] = []
        self._context_tokens = 0  # of the decoding sequences
        self._running = 0  # prefilling and decoding
        self._reserved_tokens = 0.0
        self._holds_admission = False  # after a preemption, until the next finish

    @property
    def kv_cache_used_tokens(self) -> float:
        """Tokens in the blocks in use; each sequence leaves half of its last block empty on average."""
        used = self._prompt_kv_tokens + self._context_tokens + self._running * self._profile.block_tokens / 2
        return min(used, float(self._profile.kv_capacity_tokens))

    def can_ever_hold(self, request: Request) -> bool:
        """False for a request whose prompt and answer do not fit into an empty cache: engines refuse it."""
        return request.input_tokens + request.output_tokens <= self._profile.longest_request_tokens

    def add(self, request: Request) -> None:
        """Puts a request at the end of the queue. It must be one that this replica can ever hold."""
        self._waiting.append(request)
        self.requests_in_flight += 1

    def snapshot(self) -> ServingSnapshot:
        """What its metrics page shows at `now_seconds`."""
        usage = self.kv_cache_used_tokens / self._profile.kv_capacity_tokens
        return self.counters.snapshot(self._running, len(self._waiting), usage)

    def advance(self, until_seconds: float, stops_at_finish: bool = False) -> list[Request]:
        """Runs until `until_seconds` and returns the requests that finished, in order.

        A step that begins before `until_seconds` is completed, so `now_seconds` may end up a step later. With
        `stops_at_finish` it returns after the first step that finishes something.
        """
        finished: list[Request] = []
        while self.now_seconds < until_seconds:
            if self._waiting:
                self._admit()
            if self._prefilling:
                self._run_mixed_step(finished)
            elif self._decoding:
                self._run_decode_steps(until_seconds)
            else:
                self.now_seconds = until_seconds
                break
            if self._decoding and self._decoding[0].finish_step <= self._step:
                self._finish_due(finished)
            if stops_at_finish and finished:
                break
        return finished

    def _admit(self) -> None:
        """Moves requests from the queue into the batch, first come first served, as far as they fit."""
        profile = self._profile
        if self._holds_admission:
            if self._running:
                return
            self._holds_admission = False
        half_block = profile.block_tokens / 2
        while (
            self._waiting
            and self._running < profile.maximum_sequences
            and self._prefill_left_tokens < profile.maximum_batched_tokens
        ):
            request = self._waiting[0]
            if profile.reserves_whole_answer:
                wanted = request.prompt_tokens + request.remaining_tokens + half_block
                if self._reserved_tokens + wanted > profile.kv_capacity_tokens:
                    return
                self._reserved_tokens += wanted
            else:
                first_chunk = min(request.prompt_tokens, profile.maximum_batched_tokens)
                in_use = self._prompt_kv_tokens + self._context_tokens + half_block * (self._running + 1)
                if in_use + first_chunk > profile.kv_capacity_tokens:
                    return
            self._waiting.popleft()
            whole_blocks = request.cached_tokens - request.cached_tokens % profile.block_tokens
            request.computed_tokens = whole_blocks
            self._prefilling.append(request)
            self._running += 1
            self._prompt_kv_tokens += request.prompt_tokens
            self._prefill_left_tokens += request.prompt_tokens - whole_blocks
            self.counters.prefix_queried_tokens += request.prompt_tokens
            self.counters.prefix_hit_tokens += whole_blocks

    def _run_mixed_step(self, finished: list[Request]) -> None:
        """One step with prompt chunks: the decoding sequences get their token in the same, longer step."""
        profile = self._profile
        decoding = len(self._decoding)
        room = profile.maximum_batched_tokens - decoding
        chunk_tokens = sequences = complete = 0
        attended_pairs = 0.0
        for request in self._prefilling:
            before = request.computed_tokens
            chunk = min(request.prompt_tokens - before, room - chunk_tokens)
            if chunk <= 0:
                break
            chunk_tokens += chunk
            attended_pairs += chunk * (before + chunk / 2)
            sequences += 1
            request.computed_tokens = before + chunk
            if before + chunk >= request.prompt_tokens:
                complete += 1
        step_seconds = (
            profile.step_overhead_seconds
            + profile.seconds_per_sequence * (sequences + decoding)
            + profile.matrix_seconds(chunk_tokens, decoding)
            + profile.seconds_per_context_token * (self._context_tokens + decoding)
            + profile.seconds_per_attended_pair * attended_pairs
        )
        self.now_seconds += step_seconds
        self._step += 1
        self._context_tokens += decoding
        self._prefill_left_tokens -= chunk_tokens
        if decoding:
            self.counters.generation_tokens += decoding
            gaps = self.counters.inter_token_latency.counts
            gaps[bisect_left(INTER_TOKEN_LATENCY_EDGES, step_seconds)] += decoding
        for _ in range(complete):
            self._give_first_token(self._prefilling.popleft(), finished)

    def _give_first_token(self, request: Request, finished: list[Request]) -> None:
        """The prompt is complete: its last step gives a token (the next one, where it had been preempted)."""
        now, counters = self.now_seconds, self.counters
        self._prompt_kv_tokens -= request.prompt_tokens
        if request.first_token_at is None:
            request.first_token_at = now
            counters.prompt_tokens += request.input_tokens
            counters.time_to_first_token.observe(now - request.arrived_at)
        elif request.preempted_at is not None:
            counters.inter_token_latency.observe(now - request.preempted_at)
        counters.generation_tokens += 1
        request.remaining_tokens -= 1
        if request.remaining_tokens <= 0:
            self._finish(request, finished)
            return
        self._order += 1
        finish_step = self._step + request.remaining_tokens
        heappush(self._decoding, _Decoding(finish_step, self._order, request, self._step, request.prompt_tokens))
        self._context_tokens += request.prompt_tokens

    def _run_decode_steps(self, until_seconds: float) -> None:
        """A run of steps without prompts in one jump: to the next finish, `until_seconds`, or a full cache."""
        profile = self._profile
        decoding = len(self._decoding)
        context = self._context_tokens
        growth = profile.seconds_per_context_token * decoding
        first = profile.decode_step_seconds[decoding] + profile.seconds_per_context_token * context + growth
        steps = self._decoding[0].finish_step - self._step
        free = profile.kv_capacity_tokens - self._prompt_kv_tokens - context - decoding * profile.block_tokens / 2
        if free < steps * decoding:
            if free < decoding:
                self._preempt_newest()
                return
            steps = int(free / decoding)
        left = until_seconds - self.now_seconds
        if steps * first > left:
            steps = min(steps, max(1, _steps_that_begin_within(left, first, growth)))
        duration = steps * first + growth * steps * (steps - 1) / 2
        self.now_seconds += duration
        self._step += steps
        tokens = steps * decoding
        self._context_tokens += tokens
        counters = self.counters
        counters.generation_tokens += tokens
        counters.inter_token_latency.counts[bisect_left(INTER_TOKEN_LATENCY_EDGES, duration / steps)] += tokens

    def _preempt_newest(self) -> None:
        """The sequence that began last gives its blocks back and is computed again, prompt and answer so far.

        Nobody is admitted before the next finish, else the room it left would go to it again at once.
        """
        newest = max(range(len(self._decoding)), key=lambda i: self._decoding[i].order)
        sequence = self._decoding[newest]
        self._decoding[newest] = self._decoding[-1]
        self._decoding.pop()
        heapify(self._decoding)
        request = sequence.request
        request.remaining_tokens = sequence.finish_step - self._step
        request.prompt_tokens = sequence.context_at_first + self._step - sequence.first_step
        request.computed_tokens = request.cached_tokens = 0
        request.preempted_at = self.now_seconds
        self._context_tokens -= request.prompt_tokens
        self._running -= 1
        self._waiting.appendleft(request)
        self._holds_admission = True
        self.counters.preemptions += 1

    def _finish_due(self, finished: list[Request]) -> None:
        while self._decoding and self._decoding[0].finish_step <= self._step:
            sequence = heappop(self._decoding)
            self._context_tokens -= sequence.context_at_first + self._step - sequence.first_step
            self._finish(sequence.request, finished)

    def _finish(self, request: Request, finished: list[Request]) -> None:
        request.finished_at = self.now_seconds
        self._running -= 1
        self.requests_in_flight -= 1
        self._holds_admission = False
        if self._profile.reserves_whole_answer:
            self._reserved_tokens -= request.input_tokens + request.output_tokens + self._profile.block_tokens / 2
        counters = self.counters
        counters.finished_requests += 1
        counters.finished_prompt_tokens += request.input_tokens
        counters.finished_generation_tokens += request.output_tokens
        if request.first_token_at is not None and request.output_tokens > 1:
            decoding_seconds = self.now_seconds - request.first_token_at
            counters.time_per_output_token.observe(decoding_seconds / (request.output_tokens - 1))
        finished.append(request)


def _steps_that_begin_within(seconds: float, first: float, growth: float) -> int:
    """How many steps begin before `seconds` have passed, the i-th lasting `first + i x growth`.

    n steps last `n first + growth n (n - 1) / 2`; the root of that for `seconds`, rounded up. With first 10, growth 0
    and 25 seconds: 3, as the third begins at 20.
    """
    if growth <= 0:
        return math.ceil(seconds / first)
    linear = first - growth / 2
    # The last term keeps a root that is whole but for rounding from becoming one step more.
    return math.ceil((math.sqrt(linear * linear + 2 * growth * seconds) - linear) / growth - 1e-9)
