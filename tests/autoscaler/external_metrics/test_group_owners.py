"""Who serves the metrics groups, and what is said about it."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.external_metrics.group_owners import (
    API_SERVICES,
    CUSTOM_METRICS,
    EXTERNAL_METRICS,
    ServiceName,
    judge_owners,
    read_owner,
)
from autoscaler.finding import Finding

OURS = ServiceName("tokenscaler-system", "tokenscaler-metrics")
KEDA = ServiceName("keda", "keda-operator-metrics-apiserver")
ADAPTER = ServiceName("monitoring", "prometheus-adapter")


def an_api_service(name: str, service: ServiceName | None, problem: tuple[str, str] | None = None) -> dict[str, Any]:
    reason, message = problem or ("Passed", "all checks passed")
    return {
        "metadata": {"name": name},
        "spec": {"service": None if service is None else {"namespace": service.namespace, "name": service.name}},
        "status": {
            "conditions": [
                {"type": "Available", "status": str(problem is None), "reason": reason, "message": message},
            ]
        },
    }


def findings(*documents: dict[str, Any]) -> tuple[Finding, ...]:
    owners = {document["metadata"]["name"]: read_owner(document) for document in documents}
    return judge_owners({name: owners.get(name) for name in API_SERVICES}, OURS)


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param([], id="free groups"),
        pytest.param([an_api_service(EXTERNAL_METRICS, OURS)], id="our own group"),
        pytest.param(
            [an_api_service(EXTERNAL_METRICS, OURS), an_api_service(CUSTOM_METRICS[1], ADAPTER)],
            id="another provider of custom metrics is nobody's business while external metrics are ours",
        ),
        pytest.param(
            [an_api_service(EXTERNAL_METRICS, KEDA), an_api_service(CUSTOM_METRICS[0], OURS)],
            id="another provider of external metrics is nobody's business while custom metrics are ours",
        ),
    ],
)
def test_nothing_is_wrong_with(documents: list[dict[str, Any]]) -> None:
    assert findings(*documents) == ()


def test_a_foreign_owner_is_named_with_what_follows_and_both_ways_out() -> None:
    (finding,) = findings(an_api_service(EXTERNAL_METRICS, KEDA))

    assert finding.object == "APIService v1beta1.external.metrics.k8s.io"
    assert finding.field == "spec.service"
    assert finding.value == "keda/keda-operator-metrics-apiserver"
    assert "External metrics are answered by it" in finding.consequence
    (objects, keda), forward = finding.other_fixes, finding.fix
    assert "--keda-port" in keda
    assert "--forward-to https://keda-operator-metrics-apiserver.keda.svc:443" in forward
    assert "custom.metrics.k8s.io, which is free" in objects


def test_the_second_way_is_not_offered_where_its_group_is_taken_too() -> None:
    (finding,) = findings(an_api_service(EXTERNAL_METRICS, KEDA), an_api_service(CUSTOM_METRICS[0], ADAPTER))

    assert (
        "not here, as v1beta2.custom.metrics.k8s.io is served by monitoring/prometheus-adapter"
        in finding.other_fixes[0]
    )


def test_only_keda_can_ask_us_itself() -> None:
    (finding,) = findings(an_api_service(EXTERNAL_METRICS, ServiceName("datadog", "cluster-agent")))

    assert len(finding.other_fixes) == 1


def test_a_group_without_a_service_is_the_api_servers_own() -> None:
    (finding,) = findings(an_api_service(EXTERNAL_METRICS, None))

    assert "API server itself" in finding.value


@pytest.mark.parametrize(
    ("owner", "way"),
    [
        pytest.param(OURS, "bring the pods of Service tokenscaler-system/tokenscaler-metrics back", id="ours"),
        pytest.param(KEDA, "repair keda/keda-operator-metrics-apiserver", id="somebody else's"),
    ],
)
def test_a_dead_owner_breaks_discovery(owner: ServiceName, way: str) -> None:
    found = findings(an_api_service(EXTERNAL_METRICS, owner, ("MissingEndpoints", "no addresses")))[-1]

    assert found.field == "status.conditions[Available]"
    assert found.value == "False (MissingEndpoints: no addresses)"
    assert "stay Terminating" in found.consequence
    assert way in found.fix
    assert "kubectl delete apiservice v1beta1.external.metrics.k8s.io" in found.fix


def test_an_owner_that_nobody_has_looked_at_yet_is_not_available() -> None:
    owner = read_owner({"metadata": {"name": EXTERNAL_METRICS}, "spec": {"service": {"namespace": "a", "name": "b"}}})

    assert not owner.is_available
    assert owner.port == 443
