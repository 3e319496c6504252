"""In which order do requests reach a simulated pool? A trace laid on simulated time, once or again and again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from autoscaler.replay.serving_replica import Request
from autoscaler.replay.trace import BinnedTrace, RequestTrace, TraceError, draw_requests

ROWS_AT_ONCE = 1024


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
    pieces = _pieces(trace, starts_at_seconds - from_trace_seconds, from_trace_seconds, shared_prefix_tokens, repeats)
    return chain.from_iterable(pieces)


def _pieces(
    trace: RequestTrace, offset: float, from_trace_seconds: float, shared_prefix_tokens: int, repeats: bool
) -> Iterator[Iterator[Request]]:
    """The requests some rows at a time: as Python numbers a day of a busy pool would fill a gigabyte."""
    skipped = int(np.searchsorted(trace.arrival_seconds, from_trace_seconds))
    while True:
        for start in range(skipped, len(trace), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            inputs = trace.input_tokens[rows]
            yield map(
                Request,
                (offset + trace.arrival_seconds[rows]).tolist(),
                inputs.tolist(),
                trace.output_tokens[rows].tolist(),
                np.minimum(shared_prefix_tokens, inputs).tolist(),
            )
        if not repeats:
            return
        offset += trace.duration_seconds
        skipped = 0


def drawn_arrivals(
    trace: BinnedTrace,
    generator: np.random.Generator,
    scale: float,
    starts_at_seconds: float,
    from_trace_seconds: float = 0.0,
) -> Iterator[Request]:
    """Requests that a binned trace may stand for, drawn bin by bin as they are needed; it begins again at its end."""
    begin = max(from_trace_seconds, trace.start_seconds)
    offset = starts_at_seconds - begin
    while True:
        while begin < trace.end_seconds:
            end = min(begin + trace.bin_seconds, trace.end_seconds)
            drawn = draw_requests(trace, generator, scale, begin, end)
            if len(drawn):
                yield from arrivals(drawn, offset)
            begin = end
        offset += trace.end_seconds - trace.start_seconds
        begin = trace.start_seconds
