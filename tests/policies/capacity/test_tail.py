"""Is the load that the law leaves to slow requests the one at which a simulated replica's slow requests are within?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.replay.clairvoyant import planned_policy
from autoscaler.replay.comparison import Stage
from autoscaler.replay.fleet_description import Fleet, fleet_from
from autoscaler.replay.trace import RequestTrace
from autoscaler.replay.trace_load import trace_load
from policies.capacity.objectives import LatencyObjectives
from policies.capacity.request_lengths import USUAL_LENGTHS, RequestLengths
from policies.capacity.solve import TypicalRequest, solve
from policies.capacity.step_time import StepLoad, StepTimeLaw
from policies.capacity.tail import SAFE_SLOW_SHARE, slow_share
from tests.policies.capacity.laws import a_law, exactly

OBJECTIVES = LatencyObjectives()
DENSE_70B = StepTimeLaw("70B", 1.0e-3, 33e-6, 16e-3, 86e-6, 64e-6, 59e-9, 1.3e-9)
DENSE_8B = StepTimeLaw("8B", 0.8e-3, 20e-6, 6e-3, 24e-6, 18e-6, 53e-9, 0.7e-9)
REPLICAS, SECONDS = 6, 900.0
PARTS = (0.016, 0.002, 0.006)
LOAD = StepLoad(decoding=16.0, context_tokens=2300.0, prompts=16.0 / 300.0, prompt_tokens=2000.0)


@pytest.mark.parametrize(
    ("law", "prompt", "answer", "share"),
    [
        # The share at which 0.3 % to 0.5 % of steady Poisson requests with spread lengths were outside, in simulation.
        pytest.param(DENSE_8B, 1200.0, 250.0, (0.88, 1.0), id="8B, chat: nearly all of it"),
        pytest.param(DENSE_8B, 2000.0, 300.0, (0.84, 0.94), id="8B, longer prompts"),
        pytest.param(DENSE_70B, 1200.0, 250.0, (0.47, 0.65), id="70B, chat: a prompt takes as long as four steps"),
        pytest.param(DENSE_70B, 2000.0, 300.0, (0.40, 0.56), id="70B, longer prompts: half"),
        pytest.param(DENSE_70B, 500.0, 800.0, (0.88, 1.0), id="70B, long answers: hardly a prompt falls into them"),
    ],
)
def test_the_share_that_slow_requests_leave(
    law: StepTimeLaw, prompt: float, answer: float, share: tuple[float, float]
) -> None:
    request = TypicalRequest(prompt, 0.0, answer, prompt + answer)
    least, most = share
    assert least <= solve(exactly(law), request, OBJECTIVES, None).safe_share <= most


@dataclass(frozen=True)
class Requests:
    """Lengths of prompts and answers, log-normal around their means with these variations."""

    prompt: float
    prompt_variation: float
    answer: float
    answer_variation: float

    def drawn(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        generator = np.random.default_rng(3)

        def lengths(mean: float, variation: float) -> np.ndarray:
            variance = np.log(1.0 + variation**2)
            drawn = generator.lognormal(np.log(mean) - variance / 2.0, np.sqrt(variance), count)
            return np.maximum(2, drawn).astype(np.int64)

        return lengths(self.prompt, self.prompt_variation), lengths(self.answer, self.answer_variation)


def fleet_of_70b() -> Fleet:
    fleet = fleet_from("llama-3.3-70b-fp8-2xh100-vllm")
    assert isinstance(fleet, Fleet)
    return fleet


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(Requests(1200, 1.3, 250, 1.0), id="chats as usual"),
        pytest.param(Requests(1200, 0.5, 250, 0.5), id="requests that are much alike"),
        pytest.param(Requests(1400, 1.0, 150, 0.8), id="long prompts, short answers"),
    ],
)
def test_as_many_are_slow_as_in_a_simulated_fleet_that_is_loaded_up_to_the_safe_share(requests: Requests) -> None:
    fleet = fleet_of_70b()
    coefficients = fleet.profile
    law = StepTimeLaw(
        coefficients.name,
        coefficients.step_overhead_seconds,
        coefficients.seconds_per_sequence,
        coefficients.weight_read_seconds,
        coefficients.seconds_per_prefill_token,
        coefficients.seconds_per_decode_token,
        coefficients.seconds_per_context_token,
        coefficients.seconds_per_attended_pair,
    )
    prompts, answers = requests.drawn(60_000)
    means = TypicalRequest(prompts.mean(), 0.0, answers.mean(), prompts.mean() + answers.mean())
    relative = answers / answers.mean()
    lengths = RequestLengths(
        float(prompts.std() / prompts.mean()),
        tuple((float(part.mean()), 1 / 20) for part in np.array_split(np.sort(relative), 20)),
    )
    solved = solve(exactly(law), means, OBJECTIVES, float(fleet.profile.kv_capacity_tokens), lengths)
    per_second = solved.safe_share * solved.requests_per_second * REPLICAS
    generator = np.random.default_rng(4)
    count = int(per_second * SECONDS)
    arrivals = np.sort(generator.uniform(0.0, SECONDS, count))
    trace = RequestTrace(arrivals, np.resize(prompts, count), np.resize(answers, count), SECONDS)
    stage = Stage(fleet, trace_load(trace, 1.0, 0.0, None, 0, 1), (1,))
    found = stage.run(planned_policy("fixed", (REPLICAS,)), stage.load.draw(1), 1)
    assert SAFE_SLOW_SHARE / 2.0 < 1.0 - found.attainment < SAFE_SLOW_SHARE * 2.0


def test_short_answers_and_long_prompts_leave_less() -> None:
    def share(prompt: float, answer: float) -> float:
        request = TypicalRequest(prompt, 0.0, answer, prompt + answer)
        return solve(exactly(a_law()), request, OBJECTIVES, None).safe_share

    assert share(2000.0, 100.0) < share(2000.0, 300.0) < share(2000.0, 900.0)
    assert share(8000.0, 300.0) < share(2000.0, 300.0) < share(500.0, 300.0)


def test_where_the_cache_is_full_before_the_gaps_are_long_all_of_it_is_safe() -> None:
    request = TypicalRequest(2000.0, 0.0, 300.0, 2300.0)
    assert solve(exactly(a_law()), request, OBJECTIVES, 9200.0).safe_share == pytest.approx(1.0)


def slow(
    parts: tuple[float, float, float] = PARTS,
    load: StepLoad = LOAD,
    lengths: RequestLengths = USUAL_LENGTHS,
    objective: float = 0.05,
) -> float:
    return slow_share(parts, load, 300.0, lengths, objective)


def test_the_formula_by_hand() -> None:
    # One class of answers of 300 tokens, prompts of variation 1: 16 prompts in mean fall into one, 20 where there are
    # a deviation more sequences; each takes 0.1125 s, their sum has the skewness 2^1.5 / sqrt(20).
    lengths = RequestLengths(1.0, ((1.0, 1.0),))
    slack, mean = 0.05 - 0.016 - 0.008 * 1.25, 0.006 * 1.25
    shape = 4.0 * 20.0 / 2.0**3
    z = 3.0 * shape**0.5 * ((1.0 + slack / mean) ** (1 / 3) - 1.0) + 1.0 / (3.0 * shape**0.5)
    assert slow(lengths=lengths) == pytest.approx(0.5 * math.erfc(z / 2.0**0.5))


def test_fewer_sequences_than_one_vary_no_more_than_one_does() -> None:
    # Prompts and answers alike; one sequence more or less doubles what contexts and prompts take: 0.016 + 2 x 0.008.
    few = LOAD._replace(decoding=0.25)
    assert slow(load=few, objective=0.0319) == 1.0
    assert slow(load=few, objective=0.0325) < 1.0


@pytest.mark.parametrize(
    ("parts", "load", "objective", "share"),
    [
        pytest.param((0.06, 0.002, 0.006), LOAD, 0.05, 1.0, id="the mean step is too long already: all"),
        pytest.param((0.05, 0.0, 0.0), LOAD, 0.05, 1.0, id="it is as long as the objective: all"),
        pytest.param((0.016, 0.002, 0.0), LOAD, 0.05, 0.0, id="prompts cost nothing: none"),
        pytest.param(PARTS, LOAD._replace(prompts=0.0), 0.05, 0.0, id="no prompt begins: none"),
    ],
)
def test_the_ends(parts: tuple[float, float, float], load: StepLoad, objective: float, share: float) -> None:
    assert slow(parts, load, objective=objective) == share


@given(
    variation=st.floats(0.0, 1.5), answer=st.floats(0.3, 1.0), objective=st.floats(0.03, 0.2), more=st.floats(1.0, 3.0)
)
def test_more_are_slow_the_more_prompts_differ_the_shorter_answers_are_and_the_less_time_there_is(
    variation: float, answer: float, objective: float, more: float
) -> None:
    of_this = slow(lengths=RequestLengths(variation, ((answer, 1.0),)), objective=objective)
    assert 0.0 <= of_this <= 1.0
    assert slow(lengths=RequestLengths(variation, ((answer, 1.0),)), objective=objective * more) <= of_this
    if of_this < 0.1:
        assert slow(lengths=RequestLengths(variation, ((answer * more, 1.0),)), objective=objective) <= of_this


@pytest.mark.parametrize("variation", [pytest.param(3.0, id="3"), pytest.param(40.0, id="40")])
def test_beyond_three_the_variation_of_prompts_tells_no_more(variation: float) -> None:
    assert slow(lengths=RequestLengths(variation, ((1.0, 1.0),))) == slow(lengths=RequestLengths(3.0, ((1.0, 1.0),)))
