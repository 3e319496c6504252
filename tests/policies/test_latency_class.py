"""What a NodePool's settings cost that do not suit its latency class."""

from __future__ import annotations

import pytest

from policies.latency_class import ConsolidationSettings, LatencyClass, in_karpenters_words, judge_consolidation

INTERACTIVE, BATCH = LatencyClass.INTERACTIVE, LatencyClass.BATCH


@pytest.mark.parametrize(
    ("latency_class", "settings", "problems"),
    [
        pytest.param(
            INTERACTIVE, ConsolidationSettings("WhenEmpty", 1800, None), [], id="interactive, as it should be"
        ),
        pytest.param(BATCH, ConsolidationSettings("WhenEmpty", 60, 3600), [], id="batch nodes may grow old"),
        pytest.param(
            INTERACTIVE,
            ConsolidationSettings("WhenEmptyOrUnderutilized", 1800, None),
            [("spec.disruption.consolidationPolicy", "streams that are cut off", "WhenEmpty")],
            id="underutilized nodes are emptied under streams",
        ),
        pytest.param(
            BATCH,
            ConsolidationSettings("Balanced", 60, None),
            [("spec.disruption.consolidationPolicy", "work that begins anew", "WhenEmpty")],
            id="underutilized nodes are emptied under batch work",
        ),
        pytest.param(
            INTERACTIVE,
            ConsolidationSettings("WhenEmpty", 300, None),
            [("spec.disruption.consolidateAfter", "25 min sooner, which saves 3.33 accelerator-hours", "30m")],
            id="an interactive node that goes after 5 minutes",
        ),
        pytest.param(
            BATCH,
            ConsolidationSettings("WhenEmpty", 1800, None),
            [("spec.disruption.consolidateAfter", "29 min longer: 3.87 accelerator-hours", "1m")],
            id="a batch node that stays for half an hour",
        ),
        pytest.param(
            BATCH,
            ConsolidationSettings("WhenEmpty", None, None),
            [("spec.disruption.consolidateAfter", "8 accelerator-hours an hour", "1m")],
            id="a batch node that stays for ever",
        ),
        pytest.param(
            INTERACTIVE,
            ConsolidationSettings("WhenEmpty", 1800, 2_592_000),
            [
                (
                    "spec.template.spec.expireAfter",
                    "before its replacement is there",
                    "Never, and nodes renewed by drift",
                )
            ],
            id="interactive nodes that expire",
        ),
    ],
)
def test_settings_are_judged_by_the_class(
    latency_class: LatencyClass, settings: ConsolidationSettings, problems: list[tuple[str, str, str]]
) -> None:
    found = list(judge_consolidation(latency_class, settings, accelerators_per_node=8))

    assert [(each.field, each.wanted) for each in found] == [(field, wanted) for field, _, wanted in problems]
    for each, (_, costs, _) in zip(found, problems, strict=True):
        assert costs in each.costs


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        pytest.param(45, "45s", id="less than a minute"),
        pytest.param(1800, "30m", id="half an hour"),
        pytest.param(5400, "90m", id="an hour and a half"),
        pytest.param(2_592_000, "720h", id="whole hours"),
        pytest.param(0, "0s", id="nothing"),
    ],
)
def test_durations_are_told_as_karpenter_writes_them(seconds: float, words: str) -> None:
    assert in_karpenters_words(seconds) == words


def test_an_expiry_is_told_as_it_stands_in_the_node_pool() -> None:
    (problem,) = judge_consolidation(INTERACTIVE, ConsolidationSettings("WhenEmpty", 1800, 2_592_000), 8)

    assert problem.value == "720h"
