"""What does one serving replica do with its requests, and when? Continuous batching, computed from event to event.

Every decoding sequence gets one token in each step, so a sequence finishes at a known value of the step counter, and a
run of n steps without prompts has a closed-form duration: with D sequences holding K tokens of context the i-th step
takes `first + i x growth`, where growth = D x seconds_per_context_token. Steps with prompt chunks are computed one by
one, runs of pure decoding in one jump. Without preemption this equals a simulation of every single step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from heapq import heapify, heappop, heappush
from math import ceil, inf, sqrt
from typing import TypeAlias

from autoscaler.replay.replica_profile import ReplicaProfile
from autoscaler.replay.serving_counters import (
    INTER_TOKEN_LATENCY_EDGES,
    REQUEST_LENGTH_EDGES,
    TIME_TO_FIRST_TOKEN_EDGES,
    ServingCounters,
    ServingSnapshot,
)
from autoscaler.replay.step_law import step_law


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
        self.cached_tokens = cached_tokens if cached_tokens < input_tokens else input_tokens - 1
        self.first_token_at: float | None = None
        self.finished_at: float | None = None
        self.preempted_at: float | None = None
        self.computed_tokens = 0  # of the prompt
        self.prompt_tokens = input_tokens  # after a preemption: with what had been generated
        self.remaining_tokens = output_tokens


# A sequence that generates: the step at which it finishes, a number that orders those that finish together, its
# request, and its context then. As tuples they are compared by the interpreter itself.
_Decoding: TypeAlias = tuple[float, int, Request, float]


class ServingReplica:
    """One engine with its queue, its batch and its paged KV cache."""

    __slots__ = (
        "_arriving",
        "_context_tokens",
        "_decoding",
        "_holds_admission",
        "_law",
        "_order",
        "_prefill_left_tokens",
        "_prefilling",
        "_prompt_kv_tokens",
        "_reserved_tokens",
        "_running",
        "_step",
        "_waiting",
        "counters",
        "is_wedged",
        "now_seconds",
        "quiet_until_seconds",
        "requests_in_flight",
    )

    def __init__(self, profile: ReplicaProfile, now_seconds: float) -> None:
        self._law = step_law(profile)
        self.now_seconds = now_seconds
        self.quiet_until_seconds = -inf  # no step that begins before it finishes anything
        self.counters = ServingCounters()
        self.requests_in_flight = 0  # running or waiting here
        self._step = 0.0
        self._order = 0
        self._arriving: deque[tuple[float, Request]] = deque()  # later than `now_seconds`
        self._waiting: deque[Request] = deque()
        self._prefilling: deque[Request] = deque()
        self._prefill_left_tokens = 0.0
        self._prompt_kv_tokens = 0  # blocks held by prompts that are not complete
        self._decoding: list[_Decoding] = []
        self._context_tokens = 0.0  # of the decoding sequences
        self._running = 0  # prefilling and decoding
        self._reserved_tokens = 0.0
        self._holds_admission = False  # after a preemption, until the next finish
        self.is_wedged = False

    @property
    def kv_cache_used_tokens(self) -> float:
        """Tokens in the blocks in use; each sequence leaves half of its last block empty on average."""
        used = self._prompt_kv_tokens + self._context_tokens + self._running * self._law.half_block
        return min(used, float(self._law.kv_capacity_tokens))

    def can_ever_hold(self, request: Request) -> bool:
        """False for a request whose prompt and answer do not fit into an empty cache: engines refuse it."""
        return request.input_tokens + request.output_tokens <= self._law.longest_request_tokens

    def add(self, request: Request, at_seconds: float) -> None:
        """Puts a request at the end of the queue, which it reaches at `at_seconds`.

        It must be one that this replica can ever hold. `at_seconds` lies neither before that of the request added last
        nor before what this replica has been advanced to.
        """
        self._arriving.append((at_seconds, request))
        self.requests_in_flight += 1
        # Those before it do not finish sooner for its coming; its own last step has as many before it as it has tokens.
        own_last_step = at_seconds + (request.output_tokens - 1) * self._law.shortest_step_seconds
        if own_last_step < self.quiet_until_seconds:
            self.quiet_until_seconds = own_last_step

    def snapshot(self) -> ServingSnapshot:
        """What its metrics page shows at `now_seconds`."""
        usage = self.kv_cache_used_tokens / self._law.kv_capacity_tokens
        return self.counters.snapshot(self._running, len(self._waiting) + len(self._arriving), usage)

    def wedge(self) -> None:
        """Computes nothing from now on; what it has stays, and requests may still be added."""
        self.is_wedged = True

    def go_on(self, now_seconds: float) -> None:
        """Computes again, with what it has."""
        self.is_wedged = False
        self.now_seconds = max(self.now_seconds, now_seconds)

    def advance(self, until_seconds: float, leaves_last_run: bool = False) -> list[Request]:
        """Runs until `until_seconds` and returns the requests that finished, in order.

        A step that begins before `until_seconds` is completed, so `now_seconds` may end up a step later. With
        `leaves_last_run` the same requests are returned for less: steps after the last finish are left for the next
        call, which makes them from the same state, so that nothing else comes out. Counters and gauges are then those
        of `now_seconds`, which may lie before `until_seconds`.
        """
        finished: list[Request] = []
        if self.is_wedged:
            return finished
        arriving, waiting, prefilling, decoding = self._arriving, self._waiting, self._prefilling, self._decoding
        while True:
            stop, leaves_run = until_seconds, leaves_last_run
            while arriving:
                at_seconds = arriving[0][0]
                if at_seconds > self.now_seconds:
                    if at_seconds < until_seconds:
                        stop, leaves_run = at_seconds, False
                    break
                waiting.append(arriving.popleft()[1])
            if self.now_seconds >= until_seconds:
                break
            if waiting:
                self._admit()
            if prefilling:
                self._run_mixed_step(finished)
            elif decoding:
                if not self._run_decode_steps(stop, leaves_run, finished):
                    return finished
            else:
                self.now_seconds, self.quiet_until_seconds = stop, arriving[0][0] if arriving else inf
        if self.quiet_until_seconds < self.now_seconds:
            self.quiet_until_seconds = self.now_seconds
        return finished

    def _admit(self) -> None:
        """Moves requests from the queue into the batch, first come first served, as far as they fit."""
        law, counters, waiting = self._law, self.counters, self._waiting
        if self._holds_admission:
            if self._running:
                return
            self._holds_admission = False
        half_block = law.half_block
        while (
            waiting and self._running < law.maximum_sequences and self._prefill_left_tokens < law.maximum_batched_tokens
        ):
            request = waiting[0]
            prompt_tokens = request.prompt_tokens
            if law.reserves_whole_answer:
                wanted = prompt_tokens + request.remaining_tokens + half_block
                if self._reserved_tokens + wanted > law.kv_capacity_tokens:
                    return
                self._reserved_tokens += wanted
            else:
                in_use = self._prompt_kv_tokens + self._context_tokens + half_block * (self._running + 1)
                free = law.kv_capacity_tokens - in_use
                if prompt_tokens > free and law.maximum_batched_tokens > free:  # its first chunk does not fit
                    return
            waiting.popleft()
            whole_blocks = request.cached_tokens - request.cached_tokens % law.block_tokens
            request.computed_tokens = whole_blocks
            self._prefilling.append(request)
            self._running += 1
            self._prompt_kv_tokens += prompt_tokens
            self._prefill_left_tokens += prompt_tokens - whole_blocks
            counters.prefix_queried_tokens += prompt_tokens
            counters.prefix_hit_tokens += whole_blocks

    def _run_mixed_step(self, finished: list[Request]) -> None:
        """One step with prompt chunks: the decoding sequences get their token in the same, longer step."""
        law, prefilling = self._law, self._prefilling
        decoding = len(self._decoding)
        room = law.maximum_batched_tokens - decoding
        complete = 0
        sequences = decoded = float(decoding)
        chunk_tokens = attended_pairs = 0.0
        for request in prefilling:
            before = request.computed_tokens
            chunk = request.prompt_tokens - before
            if chunk <= room:
                complete += 1
            elif room > 0:
                chunk = room
            else:
                break
            room -= chunk
            request.computed_tokens = before + chunk
            computed = float(chunk)
            chunk_tokens += computed
            attended_pairs += computed * (before + computed / 2.0)
            sequences += 1.0
        computing = law.seconds_per_prefill_token * chunk_tokens + law.seconds_per_decode_token * decoded
        weights_squared = law.weights_squared or law.weight_seconds(chunk_tokens + decoded) ** 2
        step_seconds = (
            law.step_overhead_seconds
            + law.seconds_per_sequence * sequences
            + sqrt(weights_squared + computing * computing)
            + law.seconds_per_context_token * (self._context_tokens + decoded)
            + law.seconds_per_attended_pair * attended_pairs
        )
        self.now_seconds = now = self.now_seconds + step_seconds
        self._step = step = self._step + 1.0
        self._prefill_left_tokens -= chunk_tokens
        if decoding:
            self._context_tokens += decoded
            counters = self.counters
            counters.generation_tokens += decoded
            gaps = counters.inter_token_latency
            gaps.counts[bisect_left(INTER_TOKEN_LATENCY_EDGES, step_seconds)] += decoded
            gaps.seconds += step_seconds * decoded
        if complete:
            self._give_first_tokens(complete)
        if self._decoding and self._decoding[0][0] <= step:
            self._finish_due(now, step, finished)

    def _give_first_tokens(self, complete: int) -> None:
        """These prompts are complete: their last step gives a token (the next one, where it had been preempted)."""
        counters, decoding, prefilling = self.counters, self._decoding, self._prefilling
        now, step, order, first_tokens = self.now_seconds, self._step, self._order, counters.time_to_first_token
        counters.generation_tokens += complete
        for _ in range(complete):
            request = prefilling.popleft()
            prompt_tokens = request.prompt_tokens
            if request.first_token_at is None:
                request.first_token_at = now
                counters.prompt_tokens += request.input_tokens
                waited = now - request.arrived_at
                first_tokens.counts[bisect_left(TIME_TO_FIRST_TOKEN_EDGES, waited)] += 1
                first_tokens.seconds += waited
            elif request.preempted_at is not None:
                counters.inter_token_latency.observe(now - request.preempted_at)
            self._prompt_kv_tokens -= prompt_tokens
            held, remaining = float(prompt_tokens), float(request.remaining_tokens - 1)
            self._context_tokens += held
            order += 1
            heappush(decoding, (step + remaining, order, request, held + remaining))
        self._order = order

    def _run_decode_steps(self, until_seconds: float, leaves_run: bool, finished: list[Request]) -> bool:
        """Runs of steps without prompts, each in one jump: to the next finish, or to a full cache.

        A run whose last step begins at `until_seconds` or later is cut there, or else left alone and answered with
        False. Most of the time of a simulation is spent here: names that are used in every run are local, and whole
        numbers that are multiplied with seconds are floats, which the interpreter multiplies faster.
        """
        law, decoding, waiting, counters = self._law, self._decoding, self._waiting, self.counters
        per_context_token, half_block, capacity = law.seconds_per_context_token, law.half_block, law.kv_capacity_tokens
        base_seconds, gaps = law.decode_step_seconds, counters.inter_token_latency
        now, step, context = self.now_seconds, self._step, self._context_tokens
        while True:
            sequences = float(len(decoding))
            growth = per_context_token * sequences
            first = base_seconds[len(decoding)] + per_context_token * context + growth
            steps = decoding[0][0] - step
            free = capacity - context - sequences * half_block
            if free < steps * sequences:
                if free < sequences:
                    self._preempt_newest()
                    return True
                steps = float(int(free / sequences))
            before_last = steps - 1.0
            last_begins_after = before_last * first + growth * before_last * (before_last - 1.0) / 2.0
            left = until_seconds - now
            if last_begins_after < left:
                duration = last_begins_after + first + growth * before_last
            elif leaves_run:
                self.quiet_until_seconds = now + last_begins_after
                return False
            else:
                begun = _steps_that_begin_within(left, first, growth)
                if begun < steps:
                    steps = begun if begun > 1.0 else 1.0
                duration = steps * first + growth * steps * (steps - 1.0) / 2.0
            generated = steps * sequences
            self.now_seconds = now = now + duration
            self._step = step = step + steps
            self._context_tokens = context = context + generated
            counters.generation_tokens += generated
            gap = duration / steps
            if not gaps.low < gap <= gaps.high:
                gaps.look_up(gap)
            gaps.counts[gaps.place] += generated
            gaps.seconds += duration * sequences
            if decoding[0][0] > step:
                return True
            self._finish_due(now, step, finished)
            if waiting or not decoding or now >= until_seconds:
                return True
            context = self._context_tokens

    def _preempt_newest(self) -> None:
        """The sequence that began last gives its blocks back and is computed again, prompt and answer so far.

        Nobody is admitted before the next finish, else the room it left would go to it again at once.
        """
        newest = max(range(len(self._decoding)), key=lambda place: self._decoding[place][1])
        finish_step, _, request, last_context = self._decoding[newest]
        self._decoding[newest] = self._decoding[-1]
        self._decoding.pop()
        heapify(self._decoding)
        request.remaining_tokens = remaining = int(finish_step - self._step)
        request.prompt_tokens = int(last_context) - remaining
        request.computed_tokens = request.cached_tokens = 0
        request.preempted_at = self.now_seconds
        self._context_tokens -= request.prompt_tokens
        self._running -= 1
        self._waiting.appendleft(request)
        self._holds_admission = True
        self.counters.preemptions += 1

    def _finish_due(self, now_seconds: float, step: float, finished: list[Request]) -> None:
        """Those whose last token came with this step, of which there is at least one."""
        decoding, counters = self._decoding, self.counters
        answers = counters.time_per_output_token
        while decoding and decoding[0][0] <= step:
            _, _, request, last_context = heappop(decoding)
            self._context_tokens -= last_context
            self._running -= 1
            self.requests_in_flight -= 1
            request.finished_at = now_seconds
            inputs, outputs, first_token_at = request.input_tokens, request.output_tokens, request.first_token_at
            counters.finished_requests += 1
            counters.finished_prompt_tokens += inputs
            counters.finished_generation_tokens += outputs
            counters.prompt_lengths[bisect_left(REQUEST_LENGTH_EDGES, inputs)] += 1
            counters.answer_lengths[bisect_left(REQUEST_LENGTH_EDGES, outputs)] += 1
            if outputs > 1 and first_token_at is not None:
                gap = (now_seconds - first_token_at) / (outputs - 1)
                if not answers.low < gap <= answers.high:
                    answers.look_up(gap)
                answers.counts[answers.place] += 1.0
                answers.seconds += gap
            if self._law.reserves_whole_answer:
                self._reserved_tokens -= inputs + outputs + self._law.half_block
            finished.append(request)
        self._holds_admission = False


def _steps_that_begin_within(seconds: float, first: float, growth: float) -> float:
    """How many steps begin before `seconds` have passed, the i-th lasting `first + i x growth`.

    n steps last `n first + growth n (n - 1) / 2`; the root of that for `seconds`, rounded up. With first 10, growth 0
    and 25 seconds: 3, as the third begins at 20.
    """
    if growth <= 0.0:
        return float(ceil(seconds / first))
    linear = first - growth / 2.0
    # The last term keeps a root that is whole but for rounding from becoming one step more.
    return float(ceil((sqrt(linear * linear + 2.0 * growth * seconds) - linear) / growth - 1e-9))
