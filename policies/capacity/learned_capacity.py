"""What is known of one replica's capacity at the moment of a decision? Plain values, learned before it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LearnedCapacity:
    """One replica at its latency objectives, for requests of the pool's present shape.

    It can do `prefill_tokens_per_second` of computed prompt tokens alone, or `decode_tokens_per_second` alone, or both
    in shares that add up to 1; it then holds `tokens_in_flight`. `safe_utilization` is the share of that which it may
    be given. `uncertainty` is the relative standard deviation; of more than 10 % the rest is taken off the three
    capacities already.
    """

    prefill_tokens_per_second: float
    decode_tokens_per_second: float
    tokens_in_flight: float
    safe_utilization: float = 0.70  # where a record leaves it out
    uncertainty: float = 0.0
    samples: float = 0.0  # weight of the windows it was learned from, each counts 1 when it is new
    law: str = ""  # the known law that it began with

    def work_seconds(self, computed_prompt_tokens: float, generated_tokens: float) -> float:
        """Seconds of one replica that so many tokens take: 2000 x 0.8 / 16 000 + 300 / 750 = 0.5."""
        return (
            computed_prompt_tokens / self.prefill_tokens_per_second + generated_tokens / self.decode_tokens_per_second
        )
