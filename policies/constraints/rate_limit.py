"""How much may the count change in one go? The HorizontalPodAutoscaler's scaling policies, to the bit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from policies.constraints.behavior import PolicyType, ScaleDownRules, ScaleUpRules, SelectPolicy
from policies.constraints.constraint import Limited
from policies.history import ScaleEvent
from policies.reasons import Reason
from policies.wording import counted

if TYPE_CHECKING:
    from policies.situation import Situation


def replicas_at_period_start(
    current: int, events: Iterable[ScaleEvent], now_seconds: float, period_seconds: float
) -> int:
    """The count a period ago as our own rescales tell it: growth and shrinking netted, changes by others left out.

    An event counts while it is younger than the period (strictly).
    """
    return current - sum(event.change for event in events if now_seconds - event.at_seconds < period_seconds)


def scale_up_limit(current: int, rules: ScaleUpRules, events: tuple[ScaleEvent, ...], now_seconds: float) -> int:
    """The most replicas that the policies allow now; the present count may be more, and is not to be cut for that.

    Float arithmetic as in Kubernetes: 10 percent over 100 is 110.00000000000001, rounded up 111.
    """
    if rules.select_policy is SelectPolicy.DISABLED:
        return current
    ceilings = []
    for policy in rules.policies:
        start = replicas_at_period_start(current, events, now_seconds, policy.period_seconds)
        if policy.type is PolicyType.PODS:
            ceilings.append(start + policy.value)
        else:
            ceilings.append(math.ceil(float(start) * (1.0 + float(policy.value) / 100.0)))
    return max(ceilings) if rules.select_policy is SelectPolicy.MAX else min(ceilings)


def scale_down_limit(current: int, rules: ScaleDownRules, events: tuple[ScaleEvent, ...], now_seconds: float) -> int:
    """The fewest replicas that the policies allow now, perhaps below zero; the present count may be fewer.

    Float arithmetic as in Kubernetes: 90 percent off 10 is 0.9999999999999998, cut to 0.
    """
    if rules.select_policy is SelectPolicy.DISABLED:
        return current
    floors = []
    for policy in rules.policies:
        start = replicas_at_period_start(current, events, now_seconds, policy.period_seconds)
        if policy.type is PolicyType.PODS:
            floors.append(start - policy.value)
        else:
            floors.append(math.trunc(float(start) * (1.0 - float(policy.value) / 100.0)))
    return min(floors) if rules.select_policy is SelectPolicy.MAX else max(floors)


def limit_by_rate(situation: Situation, replicas: int) -> Limited:
    """The count, as near as the policies let it come now."""
    current, behavior = situation.current_replicas, situation.parameters.behavior
    events, now_seconds = situation.history.scale_events, situation.now_seconds
    if replicas > current:
        ceiling = max(current, scale_up_limit(current, behavior.scale_up, events, now_seconds))
        if ceiling < replicas:
            rates = _in_words(behavior.scale_up)
            return Limited(ceiling, Reason.SCALE_UP_LIMIT, f"wanted {replicas}, {ceiling} for now by scaleUp ({rates})")
    if replicas < current:
        floor = min(current, scale_down_limit(current, behavior.scale_down, events, now_seconds))
        if floor > replicas:
            rates = _in_words(behavior.scale_down)
            return Limited(floor, Reason.SCALE_DOWN_LIMIT, f"wanted {replicas}, {floor} for now by scaleDown ({rates})")
    return Limited(replicas, Reason.NOT_LIMITED, "within the policies")


def _in_words(rules: ScaleUpRules | ScaleDownRules) -> str:
    if rules.select_policy is SelectPolicy.DISABLED:
        return "Disabled"
    rates = ", ".join(
        f"{counted(policy.value, 'replica') if policy.type is PolicyType.PODS else f'{policy.value} %'}"
        f" in {policy.period_seconds} s"
        for policy in rules.policies
    )
    return f"{rules.select_policy.value} of {rates}" if len(rules.policies) > 1 else rates
