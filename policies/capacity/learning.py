"""What does one more tick teach of a pool's capacity?

Once a minute, when new latencies have come in, the minute becomes a sample of the step-time law, the law is fitted and
solved for the requests that come now, and the safe utilisation is trimmed. A minute in which a replica was younger than
two minutes, in which requests queued, or in which the pool as a whole broke its objectives teaches nothing of the law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from policies.capacity.change import Suspicion, contradict, slowdown, suspicion_after
from policies.capacity.fit import FittedLaw, fit
from policies.capacity.learned_capacity import LearnedCapacity
from policies.capacity.memory import CapacityMemory, SmoothedRates
from policies.capacity.objectives import LatencyObjectives
from policies.capacity.request_lengths import USUAL_LENGTHS
from policies.capacity.samples import LoadSample, context_share, total_weight, with_sample
from policies.capacity.solve import TypicalRequest, expected_capacity
from policies.capacity.utilization import safe_utilization, trimmed
from policies.load.work_rate import WorkRate, request_shape, work_rate
from policies.observation import MetricsObservation, ObservationUnavailable, ReplicaCounts
from policies.recommendation import NoOpinion
from policies.recommenders.replica_signals import known_signal
from policies.signals import PoolSignal, Signal

# With fewer windows the known law would speak, and not the pool.
LEAST_WINDOWS = 2.0
LARGEST_ERROR = 0.5
# Of a pool that sees little load. What is more of doubt is taken off the capacity.
ORDINARY_ERROR = 0.10
# Latencies are over two minutes, and a replica's first two minutes (cold caches, compilation) are left out of them.
YOUNG_SECONDS = 120.0
LATENCY_WINDOW_SECONDS = 120.0
LEAST_SECONDS_BETWEEN = 45.0
# A rate over a minute, smoothed over half of one, is as late as a mean over two minutes.
SMOOTHING_SECONDS = 30.0
LEAST_COVERAGE = 0.9
# With fewer every window is taken up, whatever was foretold: little is known yet.
LEAST_TO_SUSPECT = 12.0
# What was measured before the replicas changed still tells, at loads that have not been seen again, of their kind; but
# little, as it may have been wrong in more than their pace.
WEIGHT_OF_OTHERS = 0.02
# Sequences that decode on a replica, on average: with fewer the windows tell of nothing but a step alone.
LEAST_DECODING = 0.2
# Of the requests in an engine. A request or two wait for the next step even where nothing queues.
QUEUE_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class CapacityEvidence:
    """What one tick shows. `template` identifies what a replica is made of (image, arguments, accelerators, shape)."""

    now_seconds: float
    metrics: MetricsObservation | ObservationUnavailable
    replicas: ReplicaCounts
    objectives: LatencyObjectives
    template: str | None = None
    is_rolling_out: bool = False


def learn_capacity(memory: CapacityMemory | None, evidence: CapacityEvidence) -> CapacityMemory:
    """The memory after one more tick; its `capacity` is what `decide` may rely on, None: not learned yet.

    Where the template of the replicas changes, everything begins anew: what an older image could do says nothing.
    """
    memory = _not_after(_of_this_template(memory, evidence), evidence.now_seconds)
    metrics = evidence.metrics
    if isinstance(metrics, ObservationUnavailable):
        return memory
    memory = replace(
        memory,
        ready_replicas=evidence.replicas.serving,
        steady_since_seconds=_steady_since(memory, evidence),
        rates=_smoothed(memory.rates, metrics, evidence.now_seconds),
    )
    measured_at = metrics.latency.measured_at_seconds
    if measured_at is None:
        return memory
    measured_at = min(measured_at, evidence.now_seconds)
    if measured_at - memory.measured_at_seconds < LEAST_SECONDS_BETWEEN:
        return memory
    memory = replace(memory, measured_at_seconds=measured_at)
    sample = _sample(memory, metrics, evidence)
    if sample is not None:
        memory = _with_sample(memory, sample)
    memory = replace(memory, trim=_trim(memory, metrics, evidence.replicas))
    return replace(memory, capacity=_capacity(memory, metrics, evidence.objectives))


def _of_this_template(memory: CapacityMemory | None, evidence: CapacityEvidence) -> CapacityMemory:
    if memory is None:
        return CapacityMemory(evidence.now_seconds, template=evidence.template)
    if evidence.template is None or memory.template == evidence.template:
        return memory
    if memory.template is None:
        return replace(memory, template=evidence.template)
    because = "what its pods are made of has changed"
    return CapacityMemory(evidence.now_seconds, because, evidence.template)


def _not_after(memory: CapacityMemory, now_seconds: float) -> CapacityMemory:
    """The memory with what it calls the future as of now: a clock was set back, and must not stop the learning."""
    rates, since = memory.rates, memory.steady_since_seconds
    newest_seconds = max(
        memory.measured_at_seconds,
        -math.inf if since is None else since,
        -math.inf if rates is None else rates.at_seconds,
    )
    if newest_seconds <= now_seconds:
        return memory
    return replace(
        memory,
        measured_at_seconds=min(memory.measured_at_seconds, now_seconds),
        steady_since_seconds=None if since is None else min(since, now_seconds),
        rates=None if rates is None else replace(rates, at_seconds=min(rates.at_seconds, now_seconds)),
    )


def _steady_since(memory: CapacityMemory, evidence: CapacityEvidence) -> float:
    since = memory.steady_since_seconds
    if since is None or evidence.replicas.serving > memory.ready_replicas:
        return evidence.now_seconds
    return since


def _smoothed(before: SmoothedRates | None, metrics: MetricsObservation, now_seconds: float) -> SmoothedRates | None:
    prompts, generated, finished = (
        known_signal(metrics, signal)
        for signal in (Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS, Signal.REQUESTS_FINISHED)
    )
    if isinstance(prompts, NoOpinion) or isinstance(generated, NoOpinion) or isinstance(finished, NoOpinion):
        return None
    context = _context_tokens(metrics)
    if before is None:
        return SmoothedRates(now_seconds, prompts.mean, generated.mean, finished.mean, context)
    share = 1.0 - math.exp((before.at_seconds - now_seconds) / SMOOTHING_SECONDS)
    if context is None or before.context_tokens is None:
        context = before.context_tokens if context is None else context
    else:
        context = before.context_tokens + share * (context - before.context_tokens)
    return SmoothedRates(
        at_seconds=now_seconds,
        prompt_tokens=before.prompt_tokens + share * (prompts.mean - before.prompt_tokens),
        generated_tokens=before.generated_tokens + share * (generated.mean - before.generated_tokens),
        requests=before.requests + share * (finished.mean - before.requests),
        context_tokens=context,
    )


def _context_tokens(metrics: MetricsObservation) -> float | None:
    """What a running sequence holds on average, by the KV cache; None where nothing runs or nothing is told."""
    used = known_signal(metrics, Signal.KV_CACHE_USED_TOKENS)
    running = known_signal(metrics, Signal.RUNNING_REQUESTS)
    if isinstance(used, NoOpinion) or isinstance(running, NoOpinion) or running.total <= 0 or used.total <= 0:
        return None
    return used.mean / running.mean


def _typical_request(rates: SmoothedRates, metrics: MetricsObservation) -> TypicalRequest | None:
    """The requests that come now: by the means of finished ones, else by the last minute's rates."""
    shape = request_shape(metrics)
    hits = metrics.prefix_cache_hit_share or 0.0
    if shape is not None:
        prompt, generated = shape.prompt_tokens, shape.generated_tokens
    elif rates.requests > 0:
        prompt, generated = rates.prompt_tokens / rates.requests, rates.generated_tokens / rates.requests
    else:
        return None
    if generated < 1 or prompt < 1:
        return None
    # Without KV geometry: sequences that run are the longer ones, which makes up for their answers being half done.
    context = rates.context_tokens or prompt + generated
    # At least a prompt's last token is computed anew, whatever the counters' shares come to.
    computed = max(1.0, prompt * (1.0 - hits))
    return TypicalRequest(computed, prompt - computed, generated, context)


def _sample(memory: CapacityMemory, metrics: MetricsObservation, evidence: CapacityEvidence) -> LoadSample | None:
    rates, seconds = memory.rates, metrics.latency.mean_time_per_output_token_seconds
    since = memory.steady_since_seconds
    is_young = since is None or evidence.now_seconds - since < YOUNG_SECONDS + LATENCY_WINDOW_SECONDS
    if rates is None or seconds is None or rates.generated_tokens * seconds < LEAST_DECODING:
        return None
    if is_young or evidence.is_rolling_out or metrics.coverage < LEAST_COVERAGE:
        return None
    if seconds > evidence.objectives.inter_token_latency_seconds or _queues(metrics):
        return None
    request = _typical_request(rates, metrics)
    if request is None:
        return None
    prompt = request.computed_prompt_tokens + request.cached_prompt_tokens
    return LoadSample(
        weight=1.0,
        step_seconds=seconds,
        generated_tokens_per_second=rates.generated_tokens,
        prompts_per_second=rates.prompt_tokens / prompt,
        context_tokens=request.context_tokens,
        prompt_tokens=request.computed_prompt_tokens,
        cached_tokens=request.cached_prompt_tokens,
    )


def _with_sample(memory: CapacityMemory, sample: LoadSample) -> CapacityMemory:
    """Takes up a window, or leaves it aside while it may be of replicas that have changed; once that is certain, the
    older ones are brought to the new pace and count little."""
    laws = memory.laws or (fit(memory.samples) if memory.samples else ())
    suspicion, clear = Suspicion(), (*memory.suspicion.windows, sample)
    if total_weight(memory.samples) >= LEAST_TO_SUSPECT:
        suspicion, clear = suspicion_after(memory.suspicion, laws, sample)
    if suspicion.is_great:
        if contradict(laws, memory.samples, suspicion.windows):
            memory = _of_changed_replicas(memory, laws, suspicion)
        suspicion, clear = Suspicion(), suspicion.windows
    if not clear:
        return replace(memory, suspicion=suspicion, laws=laws)
    samples = memory.samples
    for window in clear:
        samples = with_sample(samples, window)
    return replace(memory, samples=samples, suspicion=suspicion, laws=fit(samples))


def _of_changed_replicas(memory: CapacityMemory, laws: tuple[FittedLaw, ...], suspicion: Suspicion) -> CapacityMemory:
    because = f"its replicas have become {'faster' if suspicion.deviations > 0 else 'slower'}"
    pace = slowdown(laws, suspicion.windows)
    samples = tuple(sample.slower(pace, WEIGHT_OF_OTHERS) for sample in memory.samples)
    return replace(memory, begun_at_seconds=memory.measured_at_seconds, begun_because=because, samples=samples)


def _queues(metrics: MetricsObservation) -> bool:
    waiting = known_signal(metrics, Signal.WAITING_REQUESTS)
    running = known_signal(metrics, Signal.RUNNING_REQUESTS)
    if isinstance(waiting, NoOpinion) or isinstance(running, NoOpinion):
        return False
    return waiting.total > QUEUE_SHARE * (running.total + waiting.total)


def _capacity(
    memory: CapacityMemory, metrics: MetricsObservation, objectives: LatencyObjectives
) -> LearnedCapacity | None:
    windows = total_weight(memory.samples)
    now = None if memory.rates is None else _typical_request(memory.rates, metrics)
    if windows < LEAST_WINDOWS or not memory.laws or now is None:
        return memory.capacity
    tokens = now.computed_prompt_tokens + now.cached_prompt_tokens + now.generated_tokens
    request = replace(now, context_tokens=context_share(memory.samples) * tokens)
    size = known_signal(metrics, Signal.KV_CACHE_CAPACITY_TOKENS)
    kv_cache_tokens = size.mean if isinstance(size, PoolSignal) else None
    found = expected_capacity(
        memory.laws, request, objectives, kv_cache_tokens, metrics.request_lengths or USUAL_LENGTHS
    )
    error = min(found.relative_error, LARGEST_ERROR)
    caution = 1.0 / (1.0 + max(0.0, error - ORDINARY_ERROR))
    return LearnedCapacity(
        prefill_tokens_per_second=found.prefill_tokens_per_second * caution,
        decode_tokens_per_second=found.decode_tokens_per_second * caution,
        tokens_in_flight=found.tokens_in_flight * caution,
        safe_utilization=safe_utilization(found.safe_share, memory.trim),
        uncertainty=error,
        samples=windows,
        law=memory.laws[0].law.name,
    )


def _trim(memory: CapacityMemory, metrics: MetricsObservation, replicas: ReplicaCounts) -> float:
    capacity, share = memory.capacity, metrics.latency.outside_objectives_share
    if capacity is None or share is None or replicas.starting or not replicas.serving or _queues(metrics):
        return memory.trim
    work = work_rate(metrics, capacity)
    if not isinstance(work, WorkRate):
        return memory.trim
    return trimmed(memory.trim, capacity.safe_utilization, share, work.last_minute.likely / replicas.serving)
