"""Can victims leave the router before they go, where `scaleDownDrainSeconds` says so?"""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.finding import Finding
from autoscaler.kubernetes_gateway.watched_objects import SERVING_LABEL
from autoscaler.node_pool_checks.survey_types import ServingTarget, Survey

SERVES = "true"


def check_drain(survey: Survey) -> Iterator[Finding]:
    """Findings about the label by which replicas are drained: on pods, in their own selector, and in who routes."""
    for pool in survey.pools:
        for target in survey.targets_of(pool):
            if target.is_known and target.scaler.spec.scale_down_drain_seconds is not None:
                yield from _label(target)
                yield from _routers(target)


def _label(target: ServingTarget) -> Iterator[Finding]:
    value = target.labels.get(SERVING_LABEL)
    if value != SERVES:
        yield Finding(
            target.object,
            f"spec.template.metadata.labels[{SERVING_LABEL}]",
            "not set" if value is None else value,
            "no replica is drained: those that are to go take their requests with them",
            f'"{SERVES}"',
        )
    if target.selects_by(SERVING_LABEL):
        yield Finding(
            target.object,
            "spec.selector",
            f"selects by {SERVING_LABEL}",
            "a drained replica would be replaced and left to itself, so none is drained",
            "leave this label out of the selector",
        )


def _routers(target: ServingTarget) -> Iterator[Finding]:
    """One of several is enough: others may be there to scrape. With none at all nobody can say who routes."""
    if target.routers and not any(router.selects_serving for router in target.routers):
        yield Finding(
            ", ".join(router.name for router in target.routers),
            "spec.selector",
            f"without {SERVING_LABEL}",
            f"it goes on sending requests to replicas of {target.object} that are to go, until their time is over",
            f'{SERVING_LABEL}: "{SERVES}" in the selector of what routes to them',
        )
