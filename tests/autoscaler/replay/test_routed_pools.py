"""Two pools behind one gateway, one for first tokens and one for the rest: each decides on its own load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
from autoscaler.controller.pool_report import Decided
from autoscaler.replay.pool_policy import ReconciledPolicy
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.simulated_pool import PoolSetup
from autoscaler.replay.virtual_clock import play
from tests.autoscaler.replay.simulated_pools import STARTED_AT, a_setup
from tests.fakes.ports import FakeReporter

EXAMPLE = Path(__file__).parents[3] / "deploy" / "examples" / "two-routed-pools.yaml"
STEP_AT, ENDS_AT = 1800.0, 3600.0
PREFILL, DECODE = ("inference", "llama-70b-prefill"), ("inference", "llama-70b-decode")


def scalers() -> list[InferenceScaler]:
    """The shipped example."""
    found = [parse_inference_scaler(document) for document in yaml.safe_load_all(EXAMPLE.read_text())]
    return [scaler for scaler in found if isinstance(scaler, InferenceScaler)]


def setup_of(scaler: InferenceScaler) -> PoolSetup:
    spec = scaler.spec
    return replace(
        a_setup(60.0),
        namespace=scaler.namespace,
        name=scaler.name,
        target_name=spec.first_target_ref.name,
        engine=spec.engine.value,
        initial_replicas=spec.min_replicas,
    )


def requests(tokens: tuple[int, int], per_second: float, per_second_after: float) -> Iterator[Request]:
    at = 0.0
    while at < ENDS_AT:
        at += 1.0 / (per_second if at < STEP_AT else per_second_after)
        yield Request(STARTED_AT + at, *tokens)


def counts(prefill_factor: float, decode_factor: float) -> dict[tuple[str, str], tuple[int, int]]:
    """The decided counts of both pools before a step of the load and half an hour after it."""
    prefill, decode = scalers()
    loads = (requests((2000, 1), 6.0, 6.0 * prefill_factor), requests((50, 250), 6.0, 6.0 * decode_factor))
    fleet = SimulatedFleet([(setup_of(prefill), loads[0]), (setup_of(decode), loads[1])], STARTED_AT, seed=1)
    reporter = FakeReporter()
    policy = ReconciledPolicy([prefill, decode], reporters=[reporter])
    play(fleet, policy.controllers(fleet), STARTED_AT + ENDS_AT, [])
    seen: dict[tuple[str, str], list[tuple[float, int]]] = {PREFILL: [], DECODE: []}
    for report in (report for tick in reporter.ticks for report in tick):
        assert isinstance(report, Decided)
        seen[report.scaler.key].append((report.now_seconds - STARTED_AT, report.decision.desired_replicas))
    return {
        key: (
            next(count for at, count in reversed(decided) if at < STEP_AT),
            max(count for at, count in decided if at >= STEP_AT),
        )
        for key, decided in seen.items()
    }


@pytest.mark.parametrize(
    ("prefill_factor", "decode_factor", "grows"),
    [
        pytest.param(5.0, 1.0, PREFILL, id="longer prompts are the first pool's business"),
        pytest.param(1.0, 20.0, DECODE, id="more answers under way are the second one's"),
    ],
)
def test_only_the_pool_whose_load_has_grown_grows(
    prefill_factor: float, decode_factor: float, grows: tuple[str, str]
) -> None:
    decided = counts(prefill_factor, decode_factor)
    other = DECODE if grows == PREFILL else PREFILL
    before, after = decided[grows]
    assert after > before
    assert decided[other][0] == decided[other][1]
