"""The query plan on a real Prometheus that scrapes real pages every second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

import pytest

from autoscaler.clock import SystemClock
from autoscaler.engines.page_report import report_page
from autoscaler.observers.metrics import PoolQuery
from autoscaler.observers.prometheus_metrics import PrometheusMetricsObserver
from autoscaler.observers.workload import LivePod
from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings
from autoscaler.prometheus.source import PrometheusSource
from policies.capacity.objectives import LatencyObjectives
from policies.observation import MetricsObservation, ObservationUnavailable, QueryUnknown, QueryValue
from policies.reasons import Reason
from policies.signals import PoolSignal, Signal
from tests.autoscaler.engines.pages_by_name import all_pages
from tests.servers.page_exporter import Page, PageExporter
from tests.servers.process import wait_until
from tests.servers.prometheus_server import PrometheusServer

pytestmark = pytest.mark.prometheus

# Short windows, so that a test waits for seconds; one scrape a second gives as many samples as one in 15 s over 2 min.
QUERIES = QuerySettings(
    rate_window_seconds=8, latency_window_seconds=10, request_window_seconds=60, slow_interval_seconds=2
)
GAUGES = (Signal.RUNNING_REQUESTS, Signal.WAITING_REQUESTS, Signal.KV_CACHE_USAGE)


def deployment(name: str, count: int) -> list[str]:
    """Names as a Deployment gives them."""
    return [f"{name}-7d4b9c6f5-{''.join(letter * 5)}" for letter in "bcdfghjklm"[:count]]


@dataclass
class Traffic:
    """A vLLM page whose counters grow with time; `restart()` is a container restart in the same pod."""

    running: float = 3.0
    waiting: float = 1.0
    usage: float = 0.5
    prefix: str = "vllm:"
    running_name: str = "num_requests_running"
    prompt_tokens_per_second: float = 200.0
    requests_per_second: float = 2.0
    latency_seconds: float = 0.03
    started: float = field(default_factory=time.monotonic)

    def restart(self) -> None:
        self.started = time.monotonic()

    def __call__(self) -> str:
        seconds = time.monotonic() - self.started
        requests = self.requests_per_second * seconds
        name = self.prefix
        lines = [
            f'{name}{self.running_name}{{engine="0"}} {self.running}',
            f'{name}num_requests_waiting{{engine="0"}} {self.waiting}',
            f'{name}kv_cache_usage_perc{{engine="0"}} {self.usage}',
            f'{name}cache_config_info{{engine="0",num_gpu_blocks="1000",block_size="16"}} 1',
            f'{name}prompt_tokens_total{{engine="0"}} {self.prompt_tokens_per_second * seconds}',
            f'{name}generation_tokens_total{{engine="0"}} {50 * seconds}',
            f'{name}request_success_total{{engine="0",finished_reason="stop"}} {0.75 * requests}',
            f'{name}request_success_total{{engine="0",finished_reason="length"}} {0.25 * requests}',
            f'{name}request_prompt_tokens_sum{{engine="0"}} {self.prompt_tokens_per_second * seconds}',
            f'{name}request_prompt_tokens_count{{engine="0"}} {requests}',
            f'{name}request_generation_tokens_sum{{engine="0"}} {50 * seconds}',
            f'{name}request_generation_tokens_count{{engine="0"}} {requests}',
            f'{name}prefix_cache_queries_total{{engine="0"}} {200 * seconds}',
            f'{name}prefix_cache_hits_total{{engine="0"}} {50 * seconds}',
        ]
        for edge in (0.01, 0.025, 0.05, 0.1, float("inf")):
            count = requests * 20 if self.latency_seconds <= edge else 0.0
            text = "+Inf" if edge == float("inf") else str(edge)
            lines.append(f'{name}inter_token_latency_seconds_bucket{{engine="0",le="{text}"}} {count}')
            lines.append(f'{name}time_to_first_token_seconds_bucket{{engine="0",le="{text}"}} {count / 20}')
            lines.append(f'{name}request_time_per_output_token_seconds_bucket{{engine="0",le="{text}"}} {count / 20}')
        # Nine of ten requests are short, and the tenth is long.
        for edge, share in (("50", 0.0), ("100", 0.9), ("500", 0.9), ("1000", 1.0), ("+Inf", 1.0)):
            lines.append(f'{name}request_prompt_tokens_bucket{{engine="0",le="{edge}"}} {100 * share * requests}')
            lines.append(f'{name}request_generation_tokens_bucket{{engine="0",le="{edge}"}} {100 * share * requests}')
        # The mean of the requests is not that of the gaps: shorter answers come more slowly.
        spent = requests * 2 * self.latency_seconds
        lines.append(f'{name}request_time_per_output_token_seconds_sum{{engine="0"}} {spent}')
        lines.append(f'{name}inter_token_latency_seconds_sum{{engine="0"}} {spent * 10}')
        return "\n".join(lines) + "\n"


class Town:
    """All pools of this file on one Prometheus; each test has a namespace of its own."""

    def __init__(self, exporter: PageExporter) -> None:
        self.exporter = exporter
        self.targets: list[dict[str, object]] = []
        self.pools: dict[str, list[str]] = {}

    def add(self, namespace: str, pages: dict[str, Page], **labels: str) -> None:
        self.pools.setdefault(namespace, []).extend(pod for pod in pages if pod not in self.pools.get(namespace, ()))
        for pod, page in pages.items():
            self.exporter.pages[pod] = page
            self.targets.append(self.exporter.scrape_targets(namespace, pod, **labels))

    def query(self, namespace: str, engine: str = "vllm", queries: dict[str, str] | None = None) -> PoolQuery:
        pods = tuple(LivePod(pod, pod, True, 0.0) for pod in self.pools[namespace])
        return PoolQuery((namespace, namespace), engine, namespace, pods, queries or {})


SAMPLE_PODS = {f"sample-{number}": (name, text) for number, (name, text) in enumerate(all_pages().items())}
TWINS = deployment("twins", 2)


def build_town(exporter: PageExporter) -> Town:
    town = Town(exporter)
    for pod, (_, text) in SAMPLE_PODS.items():
        town.add("samples", {pod: text})
    town.add("plain", {pod: Traffic() for pod in deployment("plain", 3)})
    town.add("escaped", {pod: Traffic(prefix="vllm_") for pod in deployment("escaped", 2)})
    town.add("halves", {pod: Traffic() for pod in deployment("halves", 4)})
    town.add("stuck", {pod: Traffic() for pod in deployment("stuck", 2)})
    town.add("renamed", {pod: Traffic() for pod in deployment("renamed", 2)})
    town.add("broken", {pod: Traffic(running=float("nan")) for pod in deployment("broken", 2)})
    town.add("restarting", {pod: Traffic() for pod in deployment("restarting", 2)})
    town.add("slow", {pod: Traffic(latency_seconds=0.5) for pod in deployment("slow", 2)})
    for replica in ("a", "b"):  # each page arrives through two Prometheus servers and two scrape jobs
        for endpoint in ("http", "metrics"):
            town.add("twins", {pod: Traffic() for pod in TWINS}, prometheus_replica=replica, endpoint=endpoint)
    for pod in TWINS:
        town.exporter.pages[pod] = Traffic()
    town.add("parallel", {"parallel-0": parallel_page()})
    return town


def parallel_page() -> str:
    """Two data-parallel engines of different size, one of them twice through two processes of the API server."""
    return (
        "\n".join(
            [
                'vllm:num_requests_running{engine="0"} 4',
                'vllm:num_requests_running{engine="1",pid="17"} 6',
                'vllm:num_requests_running{engine="1",pid="18"} 6',
                'vllm:num_requests_waiting{engine="0"} 1',
                'vllm:num_requests_waiting{engine="1"} 2',
                'vllm:kv_cache_usage_perc{engine="0"} 0.9',
                'vllm:gpu_cache_usage_perc{engine="0"} 0.9',
                'vllm:kv_cache_usage_perc{engine="1"} 0.1',
                'vllm:gpu_cache_usage_perc{engine="1"} 0.1',
                'vllm:cache_config_info{engine="0",num_gpu_blocks="625",block_size="16"} 1',
                'vllm:cache_config_info{engine="1",num_gpu_blocks="118",block_size="4",kv_cache_size_tokens="30000"} 1',
            ]
        )
        + "\n"
    )


@dataclass
class Site:
    """A running Prometheus, the town behind it, and a way to observe it."""

    town: Town
    server: PrometheusServer
    source: PrometheusSource
    observer: PrometheusMetricsObserver

    def observe(self, *pools: PoolQuery) -> MetricsObservation:
        found = self.observer.observe_metrics(pools, time.time())[pools[0].key]
        assert isinstance(found, MetricsObservation), found
        return found

    def observe_until(
        self, pools: Sequence[PoolQuery], condition: Callable[[MetricsObservation], bool], timeout_seconds: float = 30
    ) -> MetricsObservation:
        newest: list[MetricsObservation] = []

        def holds() -> bool:
            newest[:] = [self.observe(*pools)]
            return condition(newest[0])

        try:
            wait_until(holds, "the observation", timeout_seconds, poll_seconds=0.5)
        except TimeoutError as error:
            raise AssertionError(newest[0]) from error
        return newest[0]


@pytest.fixture(scope="module")
def prometheus() -> Iterator[tuple[Town, PrometheusServer]]:
    with PageExporter() as exporter:
        town = build_town(exporter)
        jobs = [{"job_name": "pods", "static_configs": town.targets}]
        with PrometheusServer(jobs) as server:
            server.wait_for("vllm:num_requests_running{namespace='plain'}", series=3)
            yield town, server


@pytest.fixture
def site(prometheus: tuple[Town, PrometheusServer]) -> Iterator[Site]:
    town, server = prometheus
    source = PrometheusSource(PrometheusSettings(url=server.url), SystemClock())
    yield Site(town, server, source, PrometheusMetricsObserver(source, QUERIES))
    source.close()


def known(observation: MetricsObservation, signal: Signal) -> tuple[float, int]:
    found = observation.signals[signal]
    return (found.total, found.known_replicas)


def is_settled(observation: MetricsObservation) -> bool:
    """Whether every replica has a rate and the slow queries have been answered."""
    finished = observation.signals[Signal.REQUESTS_FINISHED]
    has_slow = observation.prompt_tokens_per_request is not None and observation.latency.inter_token_latency_p99_seconds
    return finished.unknown_replicas == 0 and bool(has_slow) and observation.request_lengths is not None


def test_a_pool_of_vllm_is_read_whole(site: Site) -> None:
    pool = site.town.query("plain")
    found = site.observe_until([pool], is_settled, timeout_seconds=40)
    assert found.coverage == 1.0
    assert known(found, Signal.RUNNING_REQUESTS) == (9.0, 3)
    assert known(found, Signal.WAITING_REQUESTS) == (3.0, 3)
    assert known(found, Signal.KV_CACHE_USED_TOKENS) == (24_000.0, 3)
    assert known(found, Signal.KV_CACHE_CAPACITY_TOKENS) == (48_000.0, 3)
    # The window has only just been filled: what lies before its first sample is missing.
    assert known(found, Signal.PROMPT_TOKENS)[0] == pytest.approx(600, rel=0.35)
    assert known(found, Signal.REQUESTS_FINISHED)[0] == pytest.approx(6, rel=0.35)
    assert found.prompt_tokens_per_request == pytest.approx(100, rel=0.1)
    assert found.generation_tokens_per_request == pytest.approx(25, rel=0.1)
    assert found.prefix_cache_hit_share == pytest.approx(0.25, abs=0.02)
    assert found.request_lengths is not None
    assert found.request_lengths.prompt_variation == pytest.approx(1.42, abs=0.02)
    assert [share for _, share in found.request_lengths.answers] == pytest.approx([0.9, 0.1], abs=0.01)
    assert found.latency.inter_token_latency_p50_seconds == pytest.approx(0.0375, abs=0.001)
    assert found.latency.inter_token_latency_p99_seconds == pytest.approx(0.04975, abs=0.001)
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("namespace", "outside"),
    [pytest.param("plain", 0.0, id="within the objectives"), pytest.param("slow", 1.0, id="beyond the last bucket")],
)
def test_what_a_capacity_is_learned_from_is_read(site: Site, namespace: str, outside: float) -> None:
    pool = replace(site.town.query(namespace), objectives=LatencyObjectives())
    replicas = len(pool.pods)

    def is_known(found: MetricsObservation) -> bool:
        # Without the requests' mean that of the gaps stands in for it, until the next tick's queries are answered.
        is_of_requests = found.latency.mean_time_per_output_token_seconds == pytest.approx(2 * latency, rel=0.1)
        return known(found, Signal.REQUESTS_ARRIVED)[1] == replicas and is_of_requests

    latency = 0.03 if namespace == "plain" else 0.5
    found = site.observe_until([pool], is_known, timeout_seconds=40)
    # What is in flight does not grow, so as many arrive as finish.
    assert known(found, Signal.REQUESTS_ARRIVED)[0] == pytest.approx(2 * replicas, rel=0.35)
    assert known(found, Signal.REQUESTS_ARRIVED_RECENTLY)[0] == pytest.approx(2 * replicas, rel=0.35)
    assert found.latency.outside_objectives_share == pytest.approx(outside)


@pytest.mark.parametrize("pod", SAMPLE_PODS, ids=[name for name, _ in SAMPLE_PODS.values()])
def test_a_sample_page_gives_the_same_numbers_through_prometheus_as_read_directly(site: Site, pod: str) -> None:
    report = report_page(SAMPLE_PODS[pod][1])
    engine = report.engine or "vllm"
    live = PoolQuery(("samples", pod), engine, pod, (LivePod(pod, pod, True, 0.0),), {})
    site.server.wait_for(f'scrape_samples_post_metric_relabeling{{pod="{pod}"}} > 0')
    found = site.observe(live)
    for signal in GAUGES:
        on_page = report.signals.get(signal)
        seen = found.signals.get(signal, PoolSignal(0.0, 0.0, 0, 0, 1, 0.0))
        if on_page is None or on_page.value is None or not isfinite(on_page.value):
            # Trtllm pages without any lazily created gauge are those of a replica that has never served.
            assert seen.total == 0.0
        else:
            assert (seen.total, seen.fresh_replicas) == (pytest.approx(on_page.value), 1)


def test_escaped_names_are_read_like_the_others(site: Site) -> None:
    assert known(site.observe(site.town.query("escaped")), Signal.RUNNING_REQUESTS) == (6.0, 2)


def test_twins_and_double_scrapes_count_once(site: Site) -> None:
    pool = site.town.query("twins")
    found = site.observe_until([pool], is_settled, timeout_seconds=40)
    assert site.server.query("count(vllm:num_requests_running{namespace='twins'})")[0]["value"][1] == "8"
    assert known(found, Signal.RUNNING_REQUESTS) == (6.0, 2)
    assert known(found, Signal.KV_CACHE_USED_TOKENS) == (16_000.0, 2)
    # Twice that would be counted twice; on a busy machine scrapes come late.
    assert known(found, Signal.PROMPT_TOKENS)[0] == pytest.approx(400, rel=0.35)
    assert found.prompt_tokens_per_request == pytest.approx(100, rel=0.1)


def test_data_parallel_engines_of_a_pod_are_added_up_and_weigh_by_size(site: Site) -> None:
    site.server.wait_for("vllm:num_requests_running{namespace='parallel'}", series=3)
    found = site.observe(site.town.query("parallel"))
    assert known(found, Signal.RUNNING_REQUESTS) == (10.0, 1)
    assert known(found, Signal.WAITING_REQUESTS) == (3.0, 1)
    assert known(found, Signal.KV_CACHE_USAGE) == (pytest.approx(0.3), 1)
    assert known(found, Signal.KV_CACHE_CAPACITY_TOKENS) == (40_000.0, 1)


def test_nan_is_unknown_not_zero(site: Site) -> None:
    found = site.observe(site.town.query("broken"))
    assert known(found, Signal.RUNNING_REQUESTS) == (0.0, 0)
    assert found.signals[Signal.RUNNING_REQUESTS].unknown_replicas == 2
    assert known(found, Signal.WAITING_REQUESTS) == (2.0, 2)


@pytest.mark.parametrize("failure", ["dead", "hanging", "error"])
def test_exporters_that_fail_are_held_and_lower_the_coverage(site: Site, failure: Page) -> None:
    namespace = {"dead": "halves", "hanging": "stuck", "error": "escaped"}[str(failure)]
    pool = site.town.query(namespace)
    count = len(pool.pods)
    site.observe_until([pool], lambda found: found.coverage == 1.0)
    failing = [pod.name for pod in pool.pods[: count // 2]]
    pages = {pod: site.town.exporter.pages[pod] for pod in failing}
    try:
        site.town.exporter.pages |= dict.fromkeys(failing, failure)
        found = site.observe_until([pool], lambda found: found.coverage == 0.5)
    finally:
        site.town.exporter.pages |= pages
    running = found.signals[Signal.RUNNING_REQUESTS]
    assert running.fresh_replicas == count / 2
    assert running.total == 3.0 * running.known_replicas
    # Where a scrape ends between two queries of one look, its value is not held but unknown. Never zero.
    assert running.held_replicas + running.unknown_replicas == count / 2
    site.observe_until([pool], lambda found: found.coverage == 1.0)


def test_a_metric_that_is_renamed_while_the_page_goes_on_is_unknown_and_named(site: Site) -> None:
    pool = site.town.query("renamed")
    assert known(site.observe(pool), Signal.RUNNING_REQUESTS) == (6.0, 2)
    for pod in site.town.pools["renamed"]:
        page = site.town.exporter.pages[pod]
        assert isinstance(page, Traffic)
        page.running_name = "num_requests_active"
    found = site.observe_until([pool], lambda found: found.signals[Signal.RUNNING_REQUESTS].unknown_replicas == 2)
    assert found.coverage == 1.0
    assert known(found, Signal.WAITING_REQUESTS) == (2.0, 2)
    assert "vllm:num_requests_running may have been renamed" in found.warnings[0]


def test_counters_that_restart_at_zero_never_make_a_negative_or_a_huge_rate(site: Site) -> None:
    pool = site.town.query("restarting")
    site.observe_until([pool], is_settled, timeout_seconds=40)
    for pod in site.town.pools["restarting"]:
        page = site.town.exporter.pages[pod]
        assert isinstance(page, Traffic)
        page.restart()
    until = time.monotonic() + 10
    while time.monotonic() < until:
        # What was counted between the last scrape and the restart is lost: a little less for a while, never more.
        assert 0.6 * 400 <= known(site.observe(pool), Signal.PROMPT_TOKENS)[0] <= 1.1 * 400
        time.sleep(0.5)


def test_a_latency_beyond_the_last_bucket_is_said_to_be_at_least_that(site: Site) -> None:
    found = site.observe_until([site.town.query("slow")], is_settled, timeout_seconds=40)
    assert found.latency.time_to_first_token_p99_seconds == 0.1
    assert found.latency.is_censored


def test_a_pod_that_is_gone_counts_nothing_though_prometheus_still_has_it(site: Site) -> None:
    whole = site.town.query("plain")
    less = PoolQuery(whole.key, whole.engine, whole.target_name, whole.pods[:1], {})
    assert known(site.observe(less), Signal.RUNNING_REQUESTS) == (3.0, 1)


def test_pools_of_all_engines_are_read_in_the_same_few_queries(site: Site) -> None:
    pods = {name: pod for pod, (name, _) in SAMPLE_PODS.items()}
    sglang = PoolQuery(("samples", "s"), "sglang", "s", (LivePod(pods["sglang"], "r", True, 0.0),), {})
    triton_pod = next(pod for name, pod in pods.items() if "Triton" in name)
    triton = PoolQuery(("samples", "t"), "triton-tensorrt-llm", "t", (LivePod(triton_pod, "r", True, 0.0),), {})
    asked_before = site.source.counts().asked
    both = site.observer.observe_metrics([sglang, triton, site.town.query("plain")], time.time())
    assert site.source.counts().asked - asked_before == 12
    assert site.source.counts().answered == site.source.counts().asked
    first, second = both["samples", "s"], both["samples", "t"]
    assert isinstance(first, MetricsObservation)
    assert isinstance(second, MetricsObservation)
    assert known(first, Signal.KV_CACHE_USED_TOKENS) == (123_859.0, 1)
    assert known(first, Signal.WAITING_REQUESTS) == (2826.0, 1)
    assert known(second, Signal.KV_CACHE_CAPACITY_TOKENS) == (6239.0 * 64, 1)
    assert known(second, Signal.KV_CACHE_USAGE) == (pytest.approx(1 / 6239), 1)


USERS = {
    "sum of series": ("vllm:num_requests_running{namespace='plain'}", QueryValue(9.0, 0.0)),
    "a scalar": ("scalar(vector(4))", QueryValue(4.0, 0.0)),
    "a comment at the end": ("vector(2) # two", QueryValue(2.0, 0.0)),
    "top-level or": ("vector(5) or vector(6)", QueryValue(5.0, 0.0)),
    "no series": ("there_is_no_such_metric", QueryUnknown("the query has no series")),
    "0/0": ("vector(0) / vector(0)", QueryUnknown("the query is not a number")),
    "1/0": ("vector(1) / vector(0)", QueryUnknown("the query is infinite")),
    "negative": ("-vector(1)", QueryUnknown("the query is negative (-1)")),
}


def test_the_users_own_queries_are_answered_in_one_request(site: Site) -> None:
    pool = site.town.query(
        "plain", "custom", {name: promql for name, (promql, _) in USERS.items() if name != "a scalar"}
    )
    found = site.observe(pool)
    assert found.queries == {name: expected for name, (_, expected) in USERS.items() if name != "a scalar"}
    assert site.source.counts().asked == 1


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        pytest.param("sum(", "parse error", id="a syntax error"),
        pytest.param("up{", "parse error", id="an open bracket"),
        pytest.param("sum(up) by", "parse error", id="an error that is not in the brackets"),
        pytest.param(
            "vllm:num_requests_running * on (namespace) vllm:num_requests_waiting",
            "found duplicate series",
            id="an error that shows only with data",
        ),
        pytest.param("up[5m]", "resultType 'matrix'", id="a range"),
        pytest.param('"text"', "resultType 'string'", id="a string"),
    ],
)
def test_a_bad_query_of_one_user_harms_nobody_else(site: Site, bad: str, why: str) -> None:
    queries = {name: promql for name, (promql, _) in USERS.items()}
    found = site.observe(site.town.query("plain", "custom", queries), site.town.query("twins", "custom", {"q": bad}))
    assert found.queries == {name: expected for name, (_, expected) in USERS.items()}
    other = site.observe(site.town.query("twins", "custom", {"q": bad}))
    unknown = other.queries["q"]
    assert isinstance(unknown, QueryUnknown)
    assert why in unknown.why


def test_an_answer_that_is_too_large_is_not_read(site: Site) -> None:
    source = PrometheusSource(PrometheusSettings(url=site.server.url, maximum_answer_bytes=1024), SystemClock())
    observer = PrometheusMetricsObserver(source, QUERIES)
    found = observer.observe_metrics([site.town.query("plain"), site.town.query("samples")], time.time())
    source.close()
    first = found["plain", "plain"]
    assert isinstance(first, MetricsObservation), "small answers still count"
    assert any("the answer has more than 1024 bytes" in warning for warning in first.warnings)
    assert first.coverage == 0.0


def test_a_prometheus_that_hangs_or_dies_is_unavailable_in_bounded_time_and_comes_back(site: Site) -> None:
    pool = site.town.query("plain")
    assert site.observe(pool).coverage == 1.0

    def unavailable() -> ObservationUnavailable:
        started = time.monotonic()
        found = site.observer.observe_metrics([pool], time.time())[pool.key]
        # A round of 5 s; the rest is for a machine that is busy.
        assert time.monotonic() - started < 30
        assert isinstance(found, ObservationUnavailable), found
        return found

    site.server.suspend()
    try:
        assert unavailable().reason is Reason.PROMETHEUS_TIMEOUT
        assert unavailable().reason is Reason.PROMETHEUS_TIMEOUT
    finally:
        site.server.resume()
    wait_until(
        lambda: isinstance(site.observer.observe_metrics([pool], time.time())[pool.key], MetricsObservation),
        "an answer",
        20,
    )
    site.server.kill()
    try:
        assert unavailable().reason is Reason.PROMETHEUS_UNREACHABLE
    finally:
        site.server.start()
    site.observe_until([pool], lambda found: found.coverage == 1.0)


def test_after_an_outage_no_rate_is_known_before_it_is_true_again(site: Site) -> None:
    pool = site.town.query("plain")
    site.observe_until([pool], is_settled, timeout_seconds=40)
    site.server.kill()
    time.sleep(QUERIES.rate_window_seconds + 2)
    site.server.start()
    seen = []

    def is_whole_again(found: MetricsObservation) -> bool:
        seen.append(known(found, Signal.PROMPT_TOKENS))
        return found.coverage == 1.0 and known(found, Signal.PROMPT_TOKENS)[1] == 3

    site.observe_until([pool], is_whole_again)
    assert any(count == 0 for _, count in seen), "rates were unknown in between"
    assert all(rate >= 0.75 * 200 * count for rate, count in seen), seen
