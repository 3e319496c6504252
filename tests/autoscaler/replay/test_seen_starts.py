"""What a simulated pool learns of its own starts."""

from autoscaler.replay.seen_starts import SeenStarts
from policies.cold_start import KEPT_STARTS, ColdStart, ObservedStart, learn_cold_start


def test_without_a_start_the_prior_counts_each_policy_its_own() -> None:
    seen = SeenStarts()
    assert seen.learned(120.0) == ColdStart(120.0, 120.0, 120.0)
    assert seen.learned(300.0) == ColdStart(300.0, 300.0, 300.0)


def test_another_start_is_learned_from_at_once() -> None:
    seen = SeenStarts()
    seen.learned(120.0)
    seen.add(ObservedStart(None, None, 200.0))
    assert seen.learned(120.0) == learn_cold_start(seen.starts, 120.0)
    assert seen.learned(120.0).starts == 1


def test_the_oldest_starts_are_forgotten() -> None:
    seen = SeenStarts()
    for seconds in range(KEPT_STARTS + 3):
        seen.add(ObservedStart(None, None, float(seconds)))
    assert len(seen.starts) == KEPT_STARTS
    assert seen.starts[0].load_seconds == 3.0
