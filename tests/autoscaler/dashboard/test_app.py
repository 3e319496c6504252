from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from autoscaler.dashboard.app import STATIC_FILES, create_app
from autoscaler.dashboard.snapshot import FleetSnapshot, FleetSource
from tests.fakes.demo_fleet import DemoFleet


def get(snapshot: FleetSnapshot, path: str) -> httpx2.Response:
    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=create_app(lambda: snapshot))
        async with httpx2.AsyncClient(transport=transport, base_url="http://page") as client:
            return await client.get(path)

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def snapshot() -> FleetSnapshot:
    fleet = DemoFleet()
    fleet.run(40)
    return fleet.recorder.snapshot


def document(snapshot: FleetSnapshot, path: str) -> Any:
    response = get(snapshot, path)
    assert response.status_code == 200, response.text
    return json.loads(response.content)


def test_the_fleet_says_that_it_is_simulated_and_lists_its_pools(snapshot: FleetSnapshot) -> None:
    fleet = document(snapshot, "/api/fleet")
    assert fleet["isSimulated"] is True
    assert fleet["secondsPerSecond"] == 30
    assert [pool["name"] for pool in fleet["pools"]] == ["chat-8b", "assistant-70b"]
    assert fleet["pools"][0]["ready"] >= 2
    assert fleet["pools"][0]["reason"]


def test_a_pool_tells_its_decision_with_votes_and_steps_and_its_history(snapshot: FleetSnapshot) -> None:
    pool = document(snapshot, "/api/pools/demo/chat-8b")
    decision = pool["decision"]
    assert decision["message"].startswith(f"{decision['desired']}:")
    assert {vote["name"] for vote in decision["votes"]} >= {"tokenRate", "tokensInFlight"}
    assert decision["steps"][-1]["after"] == decision["desired"] == pool["desired"]
    times, columns = pool["series"]["timesSeconds"], pool["series"]["columns"]
    assert len(times) == 40
    assert all(len(values) == 40 for values in columns.values())
    assert columns["promptTokensPerSecond"][0] is None  # not known yet is not zero
    assert pool["changes"][0]["from"] != pool["changes"][0]["to"]


def test_only_the_rows_that_are_new_to_the_page_are_sent(snapshot: FleetSnapshot) -> None:
    times = document(snapshot, "/api/pools/demo/chat-8b")["series"]["timesSeconds"]
    later = document(snapshot, f"/api/pools/demo/chat-8b?since={times[36]}")
    assert later["series"]["timesSeconds"] == times[37:]
    nothing = document(snapshot, f"/api/pools/demo/chat-8b?since={times[-1]}")
    assert nothing["series"]["timesSeconds"] == []


def test_a_pool_that_is_not_there_is_a_404_that_says_so(snapshot: FleetSnapshot) -> None:
    response = get(snapshot, "/api/pools/demo/other")
    assert response.status_code == 404
    assert "demo/other" in response.json()["problem"]


def test_before_the_first_tick_there_are_no_pools() -> None:
    empty = FleetSnapshot(FleetSource("t", "a", is_simulated=False), 0.0, {})
    assert document(empty, "/api/fleet")["pools"] == []


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        pytest.param("/", "text/html", id="the page"),
        pytest.param("/dashboard.js", "javascript", id="its program"),
        pytest.param("/dashboard.css", "text/css", id="its style"),
        pytest.param("/uplot/uPlot.esm.js", "javascript", id="the charts' library"),
        pytest.param("/uplot/LICENSE", "", id="the licence of the charts' library"),
    ],
)
def test_every_file_of_the_page_is_served_here(snapshot: FleetSnapshot, path: str, media_type: str) -> None:
    response = get(snapshot, path)
    assert response.status_code == 200
    assert media_type in response.headers["content-type"]
    assert response.headers["content-security-policy"] == "default-src 'self'; frame-ancestors 'none'"


def test_a_path_out_of_the_folder_is_not_served(snapshot: FleetSnapshot) -> None:
    assert get(snapshot, "/..%2fapp.py").status_code == 404


def own_files() -> list[Path]:
    return [path for path in STATIC_FILES.rglob("*") if path.is_file() and path.parent.name != "uplot"]


def test_the_page_fetches_nothing_from_elsewhere() -> None:
    for path in own_files():
        found = re.findall(r"https?://[^\s\"')]+", path.read_text())
        assert [address for address in found if address != "http://www.w3.org/2000/svg"] == [], path.name


def test_text_is_never_taken_for_markup() -> None:
    for path in own_files():
        assert "innerHTML" not in path.read_text(), path.name
