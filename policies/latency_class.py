"""How long may an empty node stay, by what its replicas serve, and what does a NodePool that says otherwise cost?

Interactive replicas come back with the next wave, and a node takes minutes to boot: its nodes stay for half an hour.
Batch replicas do not wait for anybody: a node goes when its work is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from policies.wording import duration, number


class LatencyClass(StrEnum):
    """What the replicas on a pool's nodes serve: people who wait, or work that nobody waits for."""

    INTERACTIVE = "Interactive"
    BATCH = "Batch"


CONSOLIDATE_AFTER_SECONDS = {LatencyClass.INTERACTIVE: 1800.0, LatencyClass.BATCH: 60.0}
# Karpenter's word for taking away empty nodes only. Its others move running pods together, whatever they are serving.
ONLY_EMPTY = "WhenEmpty"


@dataclass(frozen=True, slots=True)
class ConsolidationSettings:
    """What a NodePool says of its nodes' end. `after_seconds` and `expire_after_seconds` None: never."""

    policy: str
    after_seconds: float | None
    expire_after_seconds: float | None


@dataclass(frozen=True, slots=True)
class ClassProblem:
    """A setting that does not suit the class: which, what it says, what that costs, what it should say."""

    field: str
    value: str
    costs: str
    wanted: str


def judge_consolidation(
    latency_class: LatencyClass, settings: ConsolidationSettings, accelerators_per_node: int
) -> Iterator[ClassProblem]:
    """What of the settings does not suit the class. Costs are told for each node that becomes empty."""
    wanted_seconds = CONSOLIDATE_AFTER_SECONDS[latency_class]
    if settings.policy != ONLY_EMPTY:
        moved = "streams that are cut off" if latency_class is LatencyClass.INTERACTIVE else "work that begins anew"
        yield ClassProblem(
            "spec.disruption.consolidationPolicy",
            settings.policy,
            f"nodes whose replicas work are emptied too, to use fewer or cheaper ones: {moved}, and a model is loaded "
            "again for each replica moved",
            ONLY_EMPTY,
        )
    if settings.after_seconds is None:
        yield ClassProblem(
            "spec.disruption.consolidateAfter",
            "Never",
            f"an empty node is paid for until somebody deletes it: {accelerators_per_node} accelerator-hours an hour",
            in_karpenters_words(wanted_seconds),
        )
    elif settings.after_seconds != wanted_seconds:
        yield _duration_problem(settings.after_seconds, wanted_seconds, accelerators_per_node)
    if latency_class is LatencyClass.INTERACTIVE and settings.expire_after_seconds is not None:
        yield ClassProblem(
            "spec.template.spec.expireAfter",
            in_karpenters_words(settings.expire_after_seconds),
            "at that age a node ends whatever it serves, before its replacement is there and whatever the budgets say",
            "Never, and nodes renewed by drift",
        )


def in_karpenters_words(seconds: float) -> str:
    """A duration as Karpenter writes it, in the largest unit that is exact: 720h, 30m or 45s."""
    if seconds == 0 or seconds % 60 != 0:
        return f"{seconds:.0f}s"
    return f"{seconds / 3600:.0f}h" if seconds % 3600 == 0 else f"{seconds / 60:.0f}m"


def _duration_problem(after_seconds: float, wanted_seconds: float, accelerators_per_node: int) -> ClassProblem:
    difference = abs(after_seconds - wanted_seconds)
    accelerator_hours = number(difference / 3600 * accelerators_per_node)
    if after_seconds > wanted_seconds:
        costs = (
            f"each node that becomes empty is paid for {duration(difference)} longer: {accelerator_hours} "
            "accelerator-hours"
        )
    else:
        costs = (
            f"a node goes {duration(difference)} sooner, which saves {accelerator_hours} accelerator-hours, and what "
            "comes back meanwhile waits for a node to boot and a model to load"
        )
    return ClassProblem(
        "spec.disruption.consolidateAfter",
        duration(after_seconds),
        costs,
        in_karpenters_words(wanted_seconds),
    )
