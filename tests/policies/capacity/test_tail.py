"""Is the load that the law leaves to slow requests the one at which a simulated replica's slow requests are within?"""

from __future__ import annotations

import pytest

from policies.capacity.objectives import LatencyObjectives
from policies.capacity.solve import TypicalRequest, solve
from policies.capacity.step_time import StepLoad, StepTimeLaw
from policies.capacity.tail import slow_token_seconds
from tests.policies.capacity.laws import a_law, exactly

OBJECTIVES = LatencyObjectives()
DENSE_70B = StepTimeLaw("70B", 1.0e-3, 33e-6, 16e-3, 86e-6, 64e-6, 59e-9, 1.3e-9)
DENSE_8B = StepTimeLaw("8B", 0.8e-3, 20e-6, 6e-3, 24e-6, 18e-6, 53e-9, 0.7e-9)


@pytest.mark.parametrize(
    ("law", "prompt", "answer", "share"),
    [
        # The share at which 0.3 % to 0.5 % of steady Poisson requests with spread lengths were outside, in simulation.
        pytest.param(DENSE_8B, 1200.0, 250.0, (0.88, 1.0), id="8B, chat: nearly all of it"),
        pytest.param(DENSE_8B, 2000.0, 300.0, (0.84, 0.94), id="8B, longer prompts"),
        pytest.param(DENSE_70B, 1200.0, 250.0, (0.47, 0.65), id="70B, chat: a prompt takes as long as four steps"),
        pytest.param(DENSE_70B, 2000.0, 300.0, (0.40, 0.56), id="70B, longer prompts: half"),
        pytest.param(DENSE_70B, 500.0, 800.0, (0.90, 1.0), id="70B, long answers: hardly a prompt falls into them"),
    ],
)
def test_the_share_that_slow_requests_leave(
    law: StepTimeLaw, prompt: float, answer: float, share: tuple[float, float]
) -> None:
    request = TypicalRequest(prompt, 0.0, answer, prompt + answer)
    least, most = share
    assert least <= solve(exactly(law), request, OBJECTIVES, None).safe_share <= most


def test_short_answers_and_long_prompts_leave_less() -> None:
    def share(prompt: float, answer: float) -> float:
        request = TypicalRequest(prompt, 0.0, answer, prompt + answer)
        return solve(exactly(a_law()), request, OBJECTIVES, None).safe_share

    assert share(2000.0, 100.0) < share(2000.0, 300.0) < share(2000.0, 900.0)
    assert share(8000.0, 300.0) < share(2000.0, 300.0) < share(500.0, 300.0)


def test_where_the_cache_is_full_before_the_gaps_are_long_all_of_it_is_safe() -> None:
    request = TypicalRequest(2000.0, 0.0, 300.0, 2300.0)
    assert solve(exactly(a_law()), request, OBJECTIVES, 9200.0).safe_share == pytest.approx(1.0)


def test_it_is_the_mean_and_deviations_of_prompts_and_sequences() -> None:
    load = StepLoad(decoding=16.0, context_tokens=2300.0, prompts=16.0 / 300.0, prompt_tokens=2000.0)
    parts = (0.016, 0.002, 0.006)
    by_prompts = 0.006 / (16.0 / 300.0) * 32.0**0.5 / 300.0
    assert slow_token_seconds(parts, load, 300.0) == pytest.approx(0.024 + 9.5 * by_prompts + 0.008 / 4.0)
    nobody = StepLoad(0.01, 2300.0, 0.01 / 300.0, 2000.0)
    assert slow_token_seconds((0.016, 0.0, 0.0), nobody, 300.0) == pytest.approx(0.016)
