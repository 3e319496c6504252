"""A recorded day comes again: the replicas that its morning needs are Ready before the morning is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from autoscaler.decision_log import read_log
from autoscaler.decision_record import DecisionRecord
from policies.decision import decide
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet, wait_scraped
from tests.forecasting.loads import trace
from tests.servers.process import wait_until
from tests.servers.prometheus_server import PrometheusServer
from tests.servers.recorded_past import Series, write_past
from tests.servers.vllm_exporters import PoolLoad, VllmExporters

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

DAY, BIN, SCRAPE = 86_400, 300, 60
SHARE = 1000  # tokens a second of a replica
# In this trace the users come within ten minutes, every day at eight: from 2000 to 6000 tokens a second, then 10 000.
MORNING, MORNING_NEEDS = 8 * 3600, 6


def recorded_days() -> NDArray[np.float64]:
    """Tokens a second in bins of ten minutes; the first begins at midnight."""
    return trace("llm_servegen_client_s31_10min", "input_tokens+output_tokens").values


def counters(namespace: str, morning: float, ends_at: float) -> dict[str, list[Series]]:
    """What Prometheus would hold had the pod of an earlier rollout served the trace up to its last morning."""
    days = np.nan_to_num(recorded_days()).tolist()
    begin = morning - MORNING - (len(days) * 600 // DAY - 1) * DAY
    labels = {"namespace": namespace, "pod": "vllm-5c8f7d6b4-ddddd", "engine": "0", "model_name": "m"}

    def counted(share: float) -> Iterator[tuple[float, float]]:
        value, at = 0.0, begin
        while at < ends_at:
            yield at, value
            value += share * SCRAPE * days[int((at - begin) // 600)]
            at += SCRAPE

    return {
        "vllm:prompt_tokens_total": [(labels, counted(0.8))],
        "vllm:generation_tokens_total": [(labels, counted(0.2))],
    }


def test_the_replicas_of_a_recorded_morning_are_ready_before_it(
    control_plane: ControlPlane, exporters: VllmExporters, tmp_path: Path
) -> None:
    with Fleet(control_plane, exporters, replicas=3, loads_in="3s") as fleet:
        now = time.time()
        morning = (now + 60) // BIN * BIN + BIN  # a minute or more from now
        directory = tmp_path / "prometheus"
        write_past(directory, counters(fleet.namespace, morning, now // BIN * BIN))
        fleet.set_load(PoolLoad(running=3, prompt_tokens_per_second=1600, generation_tokens_per_second=400))
        fleet.create_scaler(
            {
                "mode": "Scale",
                "minReplicas": 1,
                "maxReplicas": 20,
                "signals": {"tokenRate": {"perReplicaPerSecond": SHARE}},
                "coldStart": {"priorSeconds": 600},
                "forecast": {"mode": "Active"},
            }
        )
        with PrometheusServer([exporters.scrape_config()], directory=directory) as prometheus:
            wait_scraped(prometheus, fleet)
            controller = ControllerProcess(
                tmp_path,
                control_plane.kubeconfig,
                prometheus.url,
                identity="foresight",
                namespaces=[fleet.namespace],
                lease_namespace=fleet.namespace,
            )
            controller.start()
            try:
                wait_until(lambda: _ready(fleet) >= MORNING_NEEDS, "the morning's replicas are Ready", 300)
                raised = _first_by_forecast(controller)
                status = fleet.scaler_status()
                described = control_plane.kubectl("describe", "isc", fleet.name, "-n", fleet.namespace)
                metrics = controller.get("/metrics").text
            finally:
                controller.kill()
                print(controller.log_tail(40))
    votes = {vote.recommender: vote.replicas or 0.0 for vote in decide(raised.input).recommendations}
    assert votes["tokenRate"] < 4  # what is seen needs no more than is there
    assert votes["forecast"] > MORNING_NEEDS - 1
    assert "without the forecast: 3" in raised.decision.message
    assert status["forecast"]["acts"] is True
    assert status["forecast"]["lossRatio"] < 1
    for told in ("Acts:", "Loss Ratio:", "Peak Time:", "Peak Tokens Per Second:", "it acts"):
        assert told in described
    assert f'tokenscaler_forecast_acts{{name="vllm",namespace="{fleet.namespace}"}} 1.0' in metrics


def _first_by_forecast(controller: ControllerProcess) -> DecisionRecord:
    records = [each for each in read_log(controller.decision_log) if isinstance(each, DecisionRecord)]
    return next(each for each in records if each.decision.binding == "forecast")


def _ready(fleet: Fleet) -> int:
    return int(fleet.scaler_status().get("readyReplicas") or 0)
