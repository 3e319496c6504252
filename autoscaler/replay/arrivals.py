"""In which order do requests reach a simulated pool? A trace laid on simulated time, once or again and again."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.replay.serving_replica import Request
from autoscaler.replay.trace import RequestTrace, TraceError


def arrivals(
    trace: RequestTrace,
    starts_at_seconds: float,
    from_trace_seconds: float = 0.0,
    shared_prefix_tokens: int = 0,
    repeats: bool = False,
) -> Iterator[Request]:
    """The trace's requests in order, its second `from_trace_seconds` being simulated unix second `starts_at_seconds`.

    The first `shared_prefix_tokens` of every prompt (a system prompt) are taken to be in the prefix cache always.
    With `repeats` the trace begins again from its zero whenever it ends. Raises `TraceError` for an empty trace.
    """
    if len(trace) == 0:
        raise TraceError("the trace has no requests in the part that was asked for")
    offset = starts_at_seconds - from_trace_seconds
    skips_until = from_trace_seconds
    while True:
        rows = zip(
            trace.arrival_seconds.tolist(), trace.input_tokens.tolist(), trace.output_tokens.tolist(), strict=True
        )
        for arrival, inputs, outputs in rows:
            if arrival >= skips_until:
                yield Request(offset + arrival, inputs, outputs, min(shared_prefix_tokens, inputs))
        if not repeats:
            return
        offset += trace.duration_seconds
        skips_until = 0.0
