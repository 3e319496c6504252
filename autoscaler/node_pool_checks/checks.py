"""All that is judged of a survey, in the order in which a reader should mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from autoscaler.finding import Finding
from autoscaler.node_pool_checks.disruption import check_disruption
from autoscaler.node_pool_checks.dollars import check_dollars
from autoscaler.node_pool_checks.drain import check_drain
from autoscaler.node_pool_checks.evictions import check_evictions
from autoscaler.node_pool_checks.karpenter_version import check_interruptions, check_karpenter_version
from autoscaler.node_pool_checks.limits import check_limits
from autoscaler.node_pool_checks.node_pool_state import check_node_pool_state
from autoscaler.node_pool_checks.placement import check_placement
from autoscaler.node_pool_checks.prewarm import check_prewarm
from autoscaler.node_pool_checks.split import check_split
from autoscaler.node_pool_checks.survey_types import Survey
from autoscaler.node_pool_checks.writers import check_rights, check_writers

CHECKS: tuple[Callable[[Survey], Iterator[Finding]], ...] = (
    check_karpenter_version,
    check_node_pool_state,
    check_limits,
    check_rights,
    check_writers,
    check_placement,
    check_split,
    check_dollars,
    check_prewarm,
    check_disruption,
    check_evictions,
    check_drain,
    check_interruptions,
)


def judge(survey: Survey) -> tuple[Finding, ...]:
    """Every finding, each once, and those about what could not be read at the end."""
    found = [finding for check in CHECKS for finding in check(survey)]
    return tuple(dict.fromkeys([*survey.refused, *found, *survey.unread]))
