"""How slow are the slowest of the requests whose mean is within the objectives? The objectives are for them too."""

from __future__ import annotations

import math

from policies.capacity.step_time import StepLoad

# By so many deviations the slowest few of a thousand requests are above the mean, with room for rises of the load. A
# normal distribution has 2.7; here prompts and answers differ much in length, and the deviation is a mean answer's.
PROMPT_DEVIATIONS = 9.5


def slow_token_seconds(parts: tuple[float, float, float], load: StepLoad, generated_tokens: float) -> float:
    """Mean time per output token of the slowest three or so of a thousand requests, in seconds.

    While a request decodes, about as many prompts begin on its replica as sequences decode there, D of them, each of
    which takes s seconds: its own time is longer or shorter by s sqrt(2 D), its mean gap by that over its O tokens (as
    of a Poisson number of prompts whose lengths have a mean as large as their deviation). And the D sequences are a
    Poisson number themselves. In simulation, three kinds of replica and three shapes of requests: the 99th percentile
    is 6 deviations and one above the mean; where 0.3 % are outside, it is 8 to 10.
    """
    fixed, contexts, prompts = parts
    by_prompts = prompts / load.prompts * math.sqrt(2.0 * load.decoding) / generated_tokens
    by_sequences = (contexts + prompts) / math.sqrt(max(1.0, load.decoding))
    return fixed + contexts + prompts + PROMPT_DEVIATIONS * by_prompts + by_sequences
