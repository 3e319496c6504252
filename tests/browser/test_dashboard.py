from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from autoscaler.dashboard.app import create_app
from autoscaler.http_server import HttpServer
from tests.fakes.demo_fleet import DemoFleet
from tests.forecast_builders import a_forecast

pytestmark = pytest.mark.browser

# Chromium by itself asks for updates and the like; a test's browser talks to the page and to nobody else.
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Served:
    """A fleet with a page."""

    def __init__(self) -> None:
        self.fleet = DemoFleet()
        self.fleet.run(80)
        self.server = HttpServer(create_app(lambda: self.fleet.recorder.snapshot), "127.0.0.1", 0)
        self.server.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/"


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.server.stop()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[BrowserContext]:
    flags = [*FLAGS, "--no-sandbox"] if os.geteuid() == 0 else FLAGS
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path / "profile", executable_path=CHROMIUM, args=flags, viewport={"width": 1280, "height": 900}
        )
        context.set_default_timeout(15_000)
        yield context
        context.close()


@pytest.fixture
def page(browser: BrowserContext, served: Served) -> Iterator[Page]:
    opened = browser.new_page()
    problems: list[str] = []
    asked: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda said: problems.append(said.text) if said.type in {"error", "warning"} else None)
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(served.url)
    expect(opened.locator("#votes li").first).to_be_visible()
    yield opened
    assert [address for address in asked if not address.startswith(served.url)] == []
    assert [problem for problem in problems if "ERR_CONNECTION_REFUSED" not in problem] == []


def test_the_page_shows_the_decision_its_votes_and_limits_and_says_that_it_is_a_simulation(
    page: Page, served: Served
) -> None:
    view = served.fleet.recorder.snapshot.pools["demo", "chat-8b"]
    assert view.decision is not None
    assert view.replicas is not None
    expect(page.get_by_text("in simulation", exact=True)).to_be_visible()
    expect(page.locator("#desired")).to_have_text(str(view.decision.desired_replicas))
    expect(page.locator("#ready")).to_have_text(str(view.replicas.ready))
    expect(page.locator("#sentence")).to_have_text(view.decision.message)
    expect(page.locator("#votes li")).to_have_count(len(view.decision.recommendations))
    expect(page.locator("#steps li")).to_have_count(len(view.decision.steps))
    expect(page.locator("#changes tr")).to_have_count(len(view.changes))


def test_four_charts_are_drawn_with_a_line_for_every_vote(page: Page) -> None:
    expect(page.locator(".uplot canvas")).to_have_count(4)
    for vote in ("tokenRate", "tokensInFlight", "kvCache", "waitingRequests", "pendingRequests"):
        expect(page.locator("#voteLines .u-legend")).to_contain_text(vote)
    # Something other than the background was painted.
    painted = page.locator("#load canvas").evaluate(
        "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(v => v !== 0)"
    )
    assert painted


def test_a_forecast_is_drawn_as_a_band_ahead_of_the_load_and_goes_when_it_ends(page: Page, served: Served) -> None:
    now = served.fleet.recorder.snapshot.now_seconds
    served.fleet.forecast = replace(a_forecast(60_000, 70_000, 80_000, 90_000), origin_seconds=now - 60)
    served.fleet.run(1)
    expect(page.locator("#load .u-legend")).to_contain_text("Expected (95 %)")
    expect(page.locator("#load .u-legend")).to_contain_text("Arrived in 5 min")
    # In the right-hand part of the chart there is nothing but what is to come.
    painted = page.locator("#load canvas").evaluate(
        """canvas => {
            const [left, width] = [Math.round(canvas.width * 0.6), Math.round(canvas.width * 0.3)];
            const { data } = canvas.getContext('2d').getImageData(left, 0, width, canvas.height);
            return new Set(Array.from({ length: data.length / 4 }, (_, i) => data.slice(4 * i, 4 * i + 4).join())).size;
        }"""
    )
    assert painted > 10  # the grid alone has a few colours; the band and its edges are blended with it
    served.fleet.forecast = None
    served.fleet.run(1)
    expect(page.locator("#load .u-legend")).not_to_contain_text("Expected")


def test_a_new_tick_appears_by_itself(page: Page, served: Served) -> None:
    before = page.locator("#clock").inner_text()
    served.fleet.run(4)
    expect(page.locator("#clock")).not_to_have_text(before)
    view = served.fleet.recorder.snapshot.pools["demo", "chat-8b"]
    assert view.decision is not None
    expect(page.locator("#sentence")).to_have_text(view.decision.message)


def test_another_pool_can_be_chosen_and_stays_chosen_when_the_page_is_opened_again(page: Page) -> None:
    page.get_by_label("Pool").first.select_option("demo/assistant-70b")
    expect(page.locator("#bounds")).to_have_text("2 to 40")
    page.reload()
    expect(page.locator("#bounds")).to_have_text("2 to 40")


def test_the_colours_follow_the_system(page: Page) -> None:
    def background() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    page.emulate_media(color_scheme="light")
    light = background()
    page.emulate_media(color_scheme="dark")
    assert background() != light
    expect(page.locator(".uplot canvas")).to_have_count(4)


def test_on_a_telephone_nothing_is_wider_than_the_screen(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    expect(page.locator(".uplot").first).to_be_visible()
    page.wait_for_function("document.documentElement.scrollWidth <= window.innerWidth")


def test_when_the_controller_is_gone_the_page_says_so_and_keeps_what_it_knew(page: Page, served: Served) -> None:
    served.server.stop()
    expect(page.locator("#notice")).to_contain_text("No answer from Tokenscaler")
    expect(page.locator("#votes li").first).to_be_visible()
