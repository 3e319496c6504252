"""Whatever is asked of the routes that they describe themselves: no crash, no answer outside of what is promised."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI, Response
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from autoscaler.clock import ManualClock
from autoscaler.external_metrics.app import add_health, answer, create_app, refusal
from autoscaler.external_metrics.caller import Caller
from autoscaler.external_metrics.custom_metrics import CUSTOM_METRICS, add_custom_metrics
from autoscaler.external_metrics.wire import EXTERNAL_METRICS
from tests.builders import NOW
from tests.fakes.metric_pools import FakePools, a_pool

EXAMPLES_OF_A_ROUTE = 40


async def forward(namespace: str, metric: str, selector: str, caller: Caller | None) -> Response:
    await asyncio.sleep(0)
    if metric.startswith("s0-"):
        return answer({"kind": "ExternalMetricValueList", "items": []})
    return refusal(404, "NotFound", f"the other provider has no {metric}")


def an_app() -> FastAPI:
    source, clock = FakePools(a_pool(), a_pool("mistral", metrics={"kv-cache-usage": None})), ManualClock(NOW)
    app = create_app(source, clock, lambda: (EXTERNAL_METRICS, CUSTOM_METRICS), forward)
    add_custom_metrics(app, source, clock)
    add_health(app)
    return app


APP = an_app()


def described(app: FastAPI) -> dict[str, Any]:
    """What the app says of itself, with the codes that the metrics API promises beside success."""
    document: dict[str, Any] = json.loads(json.dumps(app.openapi()))
    status = {"content": {"application/json": {"schema": {"type": "object", "required": ["kind", "message", "code"]}}}}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            if "/namespaces/" in path:
                operation["responses"] |= {str(code): {"description": "", **status} for code in (400, 404, 503)}
            if path in ("/healthz", "/livez", "/readyz"):
                operation["responses"]["200"]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    return document


SCHEMA = schemathesis.openapi.from_dict(described(APP))
SCHEMA.app = APP


@SCHEMA.parametrize()
@settings(
    max_examples=EXAMPLES_OF_A_ROUTE,
    derandomize=True,  # the same requests in every run
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@pytest.mark.timeout(120)
def test_any_request(case: schemathesis.Case) -> None:
    # What is no selector is refused, and no schema of a text can say what is one.
    case.call_and_validate(excluded_checks=[positive_data_acceptance])
