from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from autoscaler.kubernetes_gateway.watched_target import WatchedTarget, target_reduction
from autoscaler.observers.foreign_writer import NO_OWNER, CountHistory, is_ours, judge_count

CREATED = "2026-11-30T00:00:00Z"
NOW = 1_796_000_000.0  # 2026-11-30T00:53:20Z
WINDOW_SECONDS = 120.0


def _entry(manager: str, time: str | None = CREATED, *, replicas: bool = True, subresource: str = "") -> dict[str, Any]:
    """An entry as the real server makes it: one for the scale subresource has no time."""
    spec = {"f:template": {}} | ({"f:replicas": {}} if replicas else {})
    entry: dict[str, Any] = {"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": spec}}
    return entry | ({"time": time} if time else {}) | ({"subresource": subresource} if subresource else {})


def _target(*entries: dict[str, Any], uid: str = "u1") -> WatchedTarget:
    metadata = {
        "name": "llama",
        "namespace": "inference",
        "uid": uid,
        "resourceVersion": "7",
        "creationTimestamp": CREATED,
        "managedFields": list(entries),
    }
    target = target_reduction("apps/v1", "Deployment")({"metadata": metadata, "spec": {}})
    assert target is not None
    return target


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the target: what it was, and who is expected to be named."""

    replicas: int
    entries: tuple[dict[str, Any], ...]
    manager: str | None
    after_seconds: float = 0.0
    uid: str = "u1"


OURS = _entry("tokenscaler", None, subresource="scale")
APPLY = _entry("kubectl-client-side-apply")
APPLY_NEW_IMAGE = _entry("kubectl-client-side-apply", "2026-11-30T00:53:15Z")
APPLY_WITHOUT_COUNT = _entry("kubectl-client-side-apply", "2026-11-30T00:53:15Z", replicas=False)
KUBECTL_SCALE = _entry("kubectl", None, subresource="scale")
GITOPS = _entry("argocd-controller", "2026-11-30T00:53:15Z")
CONTROLLER = _entry("kube-controller-manager", "2026-11-30T00:53:19Z", replicas=False, subresource="status")
NEVER_SEEN = CountHistory("u1")


@pytest.mark.parametrize(
    ("history", "looks"),
    [
        pytest.param(NEVER_SEEN, [Look(3, (APPLY,), None)], id="the creator of a target is no foreign writer"),
        pytest.param(
            NEVER_SEEN,
            [Look(3, (APPLY,), None), Look(3, (APPLY_NEW_IMAGE,), None, 5.0)],
            id="applying a new image renews the creator's entry and not the count",
        ),
        pytest.param(
            NEVER_SEEN,
            [Look(8, (OURS, APPLY_WITHOUT_COUNT), None), Look(8, (OURS, APPLY_WITHOUT_COUNT), None, 5.0)],
            id="applying a new image while we own the count",
        ),
        pytest.param(
            NEVER_SEEN,
            [Look(3, (APPLY,), None), Look(8, (OURS, APPLY_WITHOUT_COUNT), None, 5.0)],
            id="our own write of the count",
        ),
        pytest.param(NEVER_SEEN, [Look(3, (APPLY, CONTROLLER), None)], id="a controller that writes the status"),
        pytest.param(
            NEVER_SEEN, [Look(3, (), None), Look(5, (), None, 5.0)], id="a server that notes no owners tells nothing"
        ),
        pytest.param(
            NEVER_SEEN,
            [Look(8, (OURS,), None), Look(3, (KUBECTL_SCALE,), "kubectl", 5.0)],
            id="kubectl scale after our write",
        ),
        pytest.param(
            NEVER_SEEN,
            [Look(3, (APPLY,), None), Look(5, (KUBECTL_SCALE,), "kubectl", 5.0)],
            id="kubectl scale before we ever wrote",
        ),
        pytest.param(NEVER_SEEN, [Look(5, (KUBECTL_SCALE,), None)], id="whatever came before the first look of all"),
        pytest.param(
            CountHistory("u1", settled_replicas=8),
            [Look(5, (KUBECTL_SCALE,), "kubectl")],
            id="kubectl scale while this controller was being restarted",
        ),
        pytest.param(
            NEVER_SEEN,
            [Look(8, (OURS,), None), Look(1, (APPLY_WITHOUT_COUNT,), NO_OWNER, 5.0)],
            id="a count that was taken out of the applied file falls back to one",
        ),
        pytest.param(
            NEVER_SEEN,
            [Look(8, (OURS,), None), Look(3, (GITOPS,), "argocd-controller", 5.0)],
            id="a repository resets the count",
        ),
        pytest.param(
            NEVER_SEEN,
            [Look(3, (GITOPS, OURS), None), Look(3, (GITOPS, OURS), None, 5.0)],
            id="a repository that agrees with us owns the count with us",
        ),
        pytest.param(
            NEVER_SEEN,
            [
                Look(8, (OURS,), None),
                Look(3, (GITOPS,), "argocd-controller", 5.0),
                Look(3, (GITOPS,), "argocd-controller", 119.0),
                Look(3, (GITOPS,), None, 2.0),
                Look(3, (_entry("argocd-controller", "2026-11-30T00:59:00Z"),), None, 200.0),
            ],
            id="after the window the new count is settled, and a new image changes nothing",
        ),
        pytest.param(
            NEVER_SEEN,
            [
                Look(8, (OURS,), None),
                Look(3, (GITOPS,), "argocd-controller", 5.0),
                Look(4, (GITOPS,), "argocd-controller", 100.0),
                Look(4, (GITOPS,), "argocd-controller", 100.0),
            ],
            id="every further change begins a new window",
        ),
        pytest.param(
            NEVER_SEEN,
            [
                Look(8, (OURS,), None),
                Look(3, (GITOPS,), "argocd-controller", 5.0),
                Look(8, (GITOPS,), None, 5.0),
            ],
            id="a change that was taken back",
        ),
        pytest.param(
            NEVER_SEEN,
            [Look(8, (OURS,), None), Look(3, (APPLY_NEW_IMAGE,), None, 5.0, uid="u2")],
            id="a target that was deleted and made again is seen for the first time",
        ),
    ],
)
def test_who_set_the_count(history: CountHistory, looks: list[Look]) -> None:
    now = NOW
    found = []
    for look in looks:
        now += look.after_seconds
        foreign, history = judge_count(
            history, _target(*look.entries, uid=look.uid), look.replicas, "tokenscaler", WINDOW_SECONDS, now
        )
        found.append(foreign.manager if foreign is not None else None)
    assert found == [look.manager for look in looks]


NOBODY = (_entry("kubectl-client-side-apply", replicas=False),)


@pytest.mark.parametrize(
    ("entries", "replicas", "written", "manager"),
    [
        pytest.param(NOBODY, 2, 2, None, id="our own write, of which the server notes no owner after a zero"),
        pytest.param(NOBODY, 5, 2, NO_OWNER, id="not what we have written"),
        pytest.param(NOBODY, 5, None, NO_OWNER, id="we have written nothing"),
        pytest.param((KUBECTL_SCALE,), 2, 2, "kubectl", id="an owner counts more than the number"),
    ],
)
def test_a_count_that_was_zero(
    entries: tuple[dict[str, Any], ...], replicas: int, written: int | None, manager: str | None
) -> None:
    asleep = CountHistory("u1", settled_replicas=0)
    foreign, _ = judge_count(asleep, _target(*entries), replicas, "tokenscaler", WINDOW_SECONDS, NOW, written)
    assert (foreign.manager if foreign is not None else None) == manager


@pytest.mark.parametrize(
    ("entries", "written", "ours"),
    [
        pytest.param((OURS,), None, True, id="we own it"),
        pytest.param((KUBECTL_SCALE,), 0, False, id="somebody else owns it"),
        pytest.param(NOBODY, 0, True, id="nobody owns it and it is what we have written"),
        pytest.param(NOBODY, 2, None, id="nobody owns it and we have written another"),
        pytest.param(NOBODY, None, None, id="nobody owns it and we have written nothing"),
        pytest.param((), 0, None, id="a server that notes no owners"),
    ],
)
def test_whose_zero_it_is(entries: tuple[dict[str, Any], ...], written: int | None, ours: bool | None) -> None:
    assert is_ours(_target(*entries), 0, "tokenscaler", written) is ours


def test_the_age_counts_from_when_the_change_was_seen() -> None:
    _, history = judge_count(NEVER_SEEN, _target(OURS), 8, "tokenscaler", WINDOW_SECONDS, NOW)
    _, history = judge_count(history, _target(GITOPS), 3, "tokenscaler", WINDOW_SECONDS, NOW + 5.0)
    foreign, _ = judge_count(history, _target(GITOPS), 3, "tokenscaler", WINDOW_SECONDS, NOW + 45.0)
    assert foreign is not None
    assert (foreign.replicas, foreign.age_seconds) == (3, 40.0)
