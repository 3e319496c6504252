"""How many requests are too slow at a load at which the mean request is not? The objectives are for them too."""

from __future__ import annotations

import math

from policies.capacity.request_lengths import RequestLengths
from policies.capacity.step_time import StepLoad

# Of requests that may be too slow between rises of the load, which have their part of half a percent.
SAFE_SLOW_SHARE = 0.0035
_ROOT_OF_2 = math.sqrt(2.0)
# Sums of prompts that vary more are too rare to be foretold by their mean, deviation and skewness.
MOST_VARIATION = 3.0


def slow_share(
    parts: tuple[float, float, float],
    load: StepLoad,
    generated_tokens: float,
    lengths: RequestLengths,
    objective_seconds: float,
) -> float:
    """The share of requests (0-1) whose mean time per output token is above the objective; 1 where the mean step is.

    While an answer of o tokens is made, n = o x prompts per step others' prompts begin on its replica, in sum longer or
    shorter than usual. The sum of a Poisson number of lengths with variation v (as skewed as a log-normal's) has the
    variance n (1 + v^2) and the skewness (1 + v^2)^1.5 / sqrt(n), and is taken as a gamma variable with these. Whether
    one is beyond x is told by the cube root of x being almost normal (Wilson and Hilferty 1931). What short answers
    suffer is not evened out over their few tokens: hence classes of answers. The sequences in a step are a Poisson
    number as well: of that one deviation is taken.
    """
    fixed, contexts, prompts = parts
    more = 1.0 + 1.0 / math.sqrt(max(1.0, load.decoding))
    slack = objective_seconds - fixed - (contexts + prompts) * more
    if slack <= 0.0:
        return 1.0
    if prompts <= 0.0 or load.prompts <= 0.0:
        return 0.0
    square = 1.0 + min(lengths.prompt_variation, MOST_VARIATION) ** 2
    excess = (1.0 + slack / (prompts * more) * square / 2.0) ** (1.0 / 3.0) - 1.0
    # Of an answer of mean length; as the root of the length of others.
    root = 2.0 * math.sqrt(load.prompts * more * generated_tokens / square**3)
    return sum(
        share * 0.5 * math.erfc((3.0 * root * each * excess + 1.0 / (3.0 * root * each)) / _ROOT_OF_2)
        for each, share in ((math.sqrt(length), share) for length, share in lengths.answers)
    )
