from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, nan

import pytest

from autoscaler.observers.metrics import PoolQuery
from autoscaler.observers.prometheus_metrics import PrometheusMetricsObserver
from autoscaler.observers.workload import LivePod
from autoscaler.prometheus.answer import FailureKind, LabelledValue, PrometheusFailure
from autoscaler.prometheus.settings import QuerySettings
from policies.capacity.request_lengths import RequestLengths
from policies.observation import (
    MetricsObservation,
    ObservationUnavailable,
    QueryUnknown,
    QueryValue,
)
from policies.reasons import Reason
from policies.signals import PoolSignal, Signal
from tests.fakes.query_source import FakeQuerySource

START = 1_800_000_000.0
SCRAPE_SECONDS = 15.0
KEY = ("prod", "chat")

RUNNING = Signal.RUNNING_REQUESTS.value
WAITING = Signal.WAITING_REQUESTS.value
USAGE = Signal.KV_CACHE_USAGE.value
CONFIG = Signal.CACHE_CONFIG.value
PROMPT = Signal.PROMPT_TOKENS.value
GENERATED = Signal.GENERATION_TOKENS.value
FINISHED = Signal.REQUESTS_FINISHED.value
PREEMPTIONS = Signal.PREEMPTIONS.value


def pod_name(number: int) -> str:
    return f"vllm-7d4b9c6f5-xxxx{'bcdfghjklm'[number]}"


def a_pod(number: int, replica: str | None = None, *, is_ready: bool = True) -> LivePod:
    return LivePod(pod_name(number), replica or pod_name(number), is_ready, START if is_ready else None)


def a_pool(
    pods: Sequence[LivePod], queries: Mapping[str, str] | None = None, engine: str = "vllm", name: str = "chat"
) -> PoolQuery:
    return PoolQuery(("prod", name), engine, "vllm", tuple(pods), queries or {})


@dataclass
class Page:
    """What one pod's page says; None leaves the metric out."""

    running: float | None = 4.0
    waiting: float | None = 2.0
    usage: float | None = 0.5
    prompt_rate: float | None = 100.0
    generation_rate: float | None = 50.0
    finished_rate: float | None = 1.0
    capacity: str | None = "1000"  # kv_cache_size_tokens


@dataclass
class Scene:
    """A pool on a fake Prometheus whose pods are scraped every 15 s; ticks are as often."""

    source: FakeQuerySource = field(default_factory=FakeQuerySource)
    pages: dict[int, Page] = field(default_factory=dict)
    sampled_at: dict[int, float] = field(default_factory=dict)
    now: float = START

    def __post_init__(self) -> None:
        self.observer = PrometheusMetricsObserver(self.source, QuerySettings())

    def scrape(self, *numbers: int) -> None:
        for number in numbers:
            self.pages.setdefault(number, Page())
            self.sampled_at[number] = self.now

    def tick(self, *pools: PoolQuery) -> MetricsObservation | ObservationUnavailable:
        self.source.now_seconds = self.now
        self._write_rows()
        return self.observer.observe_metrics(pools, self.now)[pools[0].key]

    def observed(self, *pools: PoolQuery) -> MetricsObservation:
        found = self.tick(*pools)
        assert isinstance(found, MetricsObservation), found
        return found

    def _write_rows(self) -> None:
        rows: dict[str, list[LabelledValue]] = {"sampleTime": []}
        for number, page in self.pages.items():
            if number not in self.sampled_at:
                continue
            labels = {"namespace": "prod", "pod": pod_name(number)}
            rows["sampleTime"].append((labels, self.sampled_at[number]))
            values = {
                RUNNING: page.running,
                WAITING: page.waiting,
                USAGE: page.usage,
                PROMPT: page.prompt_rate,
                GENERATED: page.generation_rate,
                FINISHED: page.finished_rate,
            }
            for name, value in values.items():
                if value is not None:
                    extra = {"engine": "0"} if name == USAGE else {}
                    rows.setdefault(name, []).append((labels | extra, value))
            if page.capacity is not None:
                rows.setdefault(CONFIG, []).append(
                    ({**labels, "engine": "0", "kv_cache_size_tokens": page.capacity}, 1)
                )
        rows["windowStart"] = [(labels, 1.0) for labels, at in rows["sampleTime"] if self.window_is_full]
        self.source.rows = rows | {name: rows.get(name, found) for name, found in self.extra_rows.items()}

    window_is_full: bool = True
    extra_rows: dict[str, list[LabelledValue]] = field(default_factory=dict)

    def vanish(self, *numbers: int) -> None:
        """As after a scrape that failed: the series are marked stale and no longer answered."""
        for number in numbers:
            self.sampled_at.pop(number, None)


def two_replicas() -> tuple[Scene, PoolQuery]:
    scene = Scene()
    scene.scrape(0, 1)
    return scene, a_pool([a_pod(0), a_pod(1)])


def signal(
    total: float, maximum: float, fresh: int = 2, held: int = 0, unknown: int = 0, age: float = 0.0
) -> PoolSignal:
    # Held replicas all have the largest value in these cases.
    return PoolSignal(total, maximum, fresh, held, unknown, age, held_total=held * maximum)


def test_every_signal_of_the_live_pods_is_added_up() -> None:
    scene, pool = two_replicas()
    scene.pages[1] = Page(running=6.0, usage=0.9, capacity="3000")
    found = scene.observed(pool)
    assert found.signals == {
        Signal.RUNNING_REQUESTS: signal(10.0, 6.0),
        Signal.WAITING_REQUESTS: signal(4.0, 2.0),
        Signal.KV_CACHE_USAGE: signal(1.4, 0.9),
        Signal.KV_CACHE_USED_TOKENS: signal(3200.0, 2700.0),
        Signal.KV_CACHE_CAPACITY_TOKENS: signal(4000.0, 3000.0),
        Signal.PROMPT_TOKENS: signal(200.0, 100.0),
        Signal.GENERATION_TOKENS: signal(100.0, 50.0),
        Signal.REQUESTS_FINISHED: signal(2.0, 1.0),
        # Of what is in flight the growth is not known yet.
        Signal.REQUESTS_ARRIVED: signal(0.0, 0.0, fresh=0, unknown=2),
        Signal.REQUESTS_ARRIVED_RECENTLY: signal(0.0, 0.0, fresh=0, unknown=2),
    }
    assert (found.ready_replicas, found.fresh_replicas, found.coverage, found.warnings) == (2, 2, 1.0, ())


def test_rates_are_asked_of_the_time_from_which_samples_have_come() -> None:
    scene, pool = two_replicas()
    offsets = []
    for tick in range(10):
        lag_seconds = 60.0 if tick < 6 else 0.0
        scene.sampled_at = dict.fromkeys((0, 1), scene.now - lag_seconds)
        scene.tick(pool)
        offsets.append(" offset 60s" in scene.source.newest_promql[PROMPT])
        scene.now += SCRAPE_SECONDS
    # The first tick meets the pods, the second sees samples come; what is asked goes by the tick before.
    assert offsets == [False, False, True, True, True, True, True, False, False, False]


def test_pods_that_are_gone_or_not_ready_are_not_in_the_sums() -> None:
    scene, _ = two_replicas()
    scene.scrape(2)
    found = scene.observed(a_pool([a_pod(0), a_pod(1, is_ready=False)]))
    assert found.signals[Signal.RUNNING_REQUESTS] == replace(signal(4.0, 4.0, fresh=1), unsteady_total=4.0)
    assert found.ready_replicas == 1


def test_what_stands_still_is_no_reason_to_grow_and_once_it_is_wedged_none_to_stay() -> None:
    scene, _ = two_replicas()
    scene.scrape(2)
    pool = a_pool([a_pod(0), a_pod(1), a_pod(2)])
    scene.pages[1] = Page(running=9.0, waiting=30.0, usage=1.0, prompt_rate=0.0, generation_rate=0.0, finished_rate=0.0)
    seen = []
    for _ in range(8):
        found = scene.observed(pool)
        running = found.signals[Signal.RUNNING_REQUESTS]
        seen.append((found.ready_replicas, running.total, running.unsteady_total, found.wedged_replicas))
        scene.now += SCRAPE_SECONDS
        scene.scrape(0, 1, 2)
    not_for_long = [(3, 17.0, 0.0, ())] * 3
    assert seen == [*not_for_long, *[(2, 8.0, 9.0, ())] * 4, (2, 8.0, 0.0, (pod_name(1),))]
    assert found.signals[Signal.KV_CACHE_USAGE] == signal(1.0, 0.5)
    assert (found.fresh_replicas, found.coverage) == (2, 1.0)


STUCK = Page(running=9.0, waiting=500.0, usage=1.0, prompt_rate=0.0, generation_rate=0.0, finished_rate=0.0)


def long_ready(*numbers: int) -> PoolQuery:
    return a_pool([replace(a_pod(number), ready_since_seconds=START - 3600.0) for number in numbers])


def test_what_has_piled_up_before_this_process_began_orders_no_fleet() -> None:
    scene, _ = two_replicas()
    scene.scrape(2)
    scene.pages[1] = STUCK
    pool, seen = long_ready(0, 1, 2), []
    for _ in range(8):
        found = scene.observed(pool)
        waiting = found.signals[Signal.WAITING_REQUESTS]
        seen.append((waiting.total, waiting.unsteady_total, found.wedged_replicas))
        scene.now += SCRAPE_SECONDS
        scene.scrape(0, 1, 2)
    # It is wedged no sooner than one that was watched from the start.
    assert seen == [*[(4.0, 500.0, ())] * 7, (4.0, 0.0, (pod_name(1),))]


def test_a_replica_that_was_wedged_before_an_outage_of_prometheus_is_so_after_it() -> None:
    scene, _ = two_replicas()
    scene.scrape(2)
    scene.pages[1] = STUCK
    pool = long_ready(0, 1, 2)
    for _ in range(8):
        assert isinstance(scene.tick(pool), MetricsObservation)
        scene.now += SCRAPE_SECONDS
        scene.scrape(0, 1, 2)
    scene.now += 600.0
    scene.scrape(0, 1, 2)
    found = scene.observed(pool)
    assert (found.wedged_replicas, found.signals[Signal.WAITING_REQUESTS].total) == ((pod_name(1),), 4.0)


def test_a_replica_that_holds_requests_and_goes_on_is_not_presumed_to_stand_still() -> None:
    scene, _ = two_replicas()
    scene.pages[1] = replace(STUCK, generation_rate=1.0)
    assert scene.observed(long_ready(0, 1)).signals[Signal.WAITING_REQUESTS].total == 502.0


@pytest.mark.parametrize(
    ("running", "serving"),
    [
        pytest.param(6.0, 1, id="one that serves on"),
        pytest.param(0.0, 0, id="one that has nothing to do, such as one that has just started"),
    ],
)
def test_what_an_unready_replica_serves_is_added_up_apart(running: float, serving: int) -> None:
    scene, _ = two_replicas()
    scene.pages[1] = Page(running=running, waiting=0.0, generation_rate=0.0, finished_rate=0.0)
    found = scene.observed(a_pool([a_pod(0), a_pod(1, is_ready=False)]))
    assert found.unsteady_replicas == serving
    assert found.signals[Signal.RUNNING_REQUESTS] == replace(signal(4.0, 4.0, fresh=1), unsteady_total=running)


def test_what_an_unready_replica_served_long_ago_is_not_counted() -> None:
    scene, _ = two_replicas()
    scene.vanish(1)
    scene.now += 60.0
    scene.scrape(0)
    found = scene.observed(a_pool([a_pod(0), a_pod(1, is_ready=False)]))
    assert found.unsteady_replicas == 0


def test_a_pool_without_ready_replicas_misses_nothing() -> None:
    scene = Scene()
    found = scene.observed(a_pool([]))
    assert found.signals[Signal.RUNNING_REQUESTS] == signal(0.0, 0.0, fresh=0)
    assert (found.coverage, found.warnings) == (1.0, ())


@pytest.mark.parametrize(
    ("seconds_without_a_sample", "expected", "fresh"),
    [
        pytest.param(15.0, signal(8.0, 4.0, fresh=2, age=15.0), 2, id="one scrape was missed: still fresh"),
        pytest.param(30.0, signal(8.0, 4.0, fresh=2, age=30.0), 2, id="two intervals: still fresh"),
        pytest.param(45.0, signal(8.0, 4.0, fresh=1, held=1, age=45.0), 1, id="longer: held"),
        pytest.param(120.0, signal(8.0, 4.0, fresh=1, held=1, age=120.0), 1, id="up to 120 s"),
        pytest.param(135.0, signal(4.0, 4.0, fresh=1, unknown=1), 1, id="then unknown, never zero"),
    ],
)
def test_the_age_of_a_sample(seconds_without_a_sample: float, expected: PoolSignal, fresh: int) -> None:
    scene, pool = two_replicas()
    scene.observed(pool)
    scene.now += SCRAPE_SECONDS
    scene.scrape(0, 1)
    scene.observed(pool)
    scene.vanish(1)
    for _ in range(round(seconds_without_a_sample / SCRAPE_SECONDS)):
        scene.now += SCRAPE_SECONDS
        scene.scrape(0)
        found = scene.observed(pool)
    assert found.signals[Signal.RUNNING_REQUESTS] == expected
    assert found.fresh_replicas == fresh


def test_a_steady_lag_is_no_missing_data() -> None:
    scene, pool = two_replicas()
    for _ in range(4):
        scene.sampled_at = dict.fromkeys((0, 1), scene.now - 60.0)
        found = scene.observed(pool)
        scene.now += SCRAPE_SECONDS
    assert found.signals[Signal.RUNNING_REQUESTS] == signal(8.0, 4.0, age=60.0)


def test_a_pod_that_was_just_met_is_judged_by_the_age_of_its_sample() -> None:
    scene, pool = two_replicas()
    scene.sampled_at[1] = scene.now - 90.0
    assert scene.observed(pool).signals[Signal.RUNNING_REQUESTS] == signal(8.0, 4.0, fresh=1, held=1, age=90.0)


def test_our_own_clock_may_be_wrong() -> None:
    scene, pool = two_replicas()
    scene.source.now_seconds = START
    scene._write_rows()
    found = scene.observer.observe_metrics([pool], START + 4000.0)[KEY]
    assert isinstance(found, MetricsObservation)
    assert found.signals[Signal.RUNNING_REQUESTS] == signal(8.0, 4.0)


@pytest.mark.parametrize(
    ("value", "known"),
    [
        pytest.param(0.0, True, id="zero of a page that was scraped is zero"),
        pytest.param(nan, False, id="NaN"),
        pytest.param(inf, False, id="infinite"),
        pytest.param(-1.0, False, id="a sentinel"),
    ],
)
def test_only_numbers_count(value: float, known: bool) -> None:
    scene, pool = two_replicas()
    scene.pages[1] = Page(running=value)
    found = scene.observed(pool).signals[Signal.RUNNING_REQUESTS]
    assert (found.total, found.known_replicas, found.unknown_replicas) == (4.0, 1 + known, 1 - known)


def test_a_required_signal_that_is_missing_is_unknown_and_hinted_at() -> None:
    scene, pool = two_replicas()
    scene.pages[0] = scene.pages[1] = Page(running=None)
    found = scene.observed(pool)
    assert found.signals[Signal.RUNNING_REQUESTS] == signal(0.0, 0.0, fresh=0, unknown=2)
    assert found.fresh_replicas == 2
    assert found.warnings == (
        "runningRequests is not on the page of 2 of 2 ready replicas, though other metrics are: "
        "vllm:num_requests_running may have been renamed; tokenscaler doctor metrics --page URL shows what is there",
    )


def test_an_optional_signal_that_is_missing_is_absent() -> None:
    scene, pool = two_replicas()
    assert Signal.PREEMPTIONS not in scene.observed(pool).signals


def test_an_optional_signal_that_was_there_and_is_gone_is_unknown() -> None:
    scene, pool = two_replicas()
    labels = [{"namespace": "prod", "pod": pod_name(number)} for number in (0, 1)]
    scene.extra_rows[PREEMPTIONS] = [(each, 0.5) for each in labels]
    scene.observed(pool)  # the slow queries do not all find room at the first tick
    scene.now += SCRAPE_SECONDS
    scene.scrape(0, 1)
    assert scene.observed(pool).signals[Signal.PREEMPTIONS] == signal(1.0, 0.5)
    scene.extra_rows[PREEMPTIONS] = []
    for _ in range(5):
        scene.now += SCRAPE_SECONDS
        scene.scrape(0, 1)
        found = scene.observed(pool)
    assert found.signals[Signal.PREEMPTIONS] == signal(0.0, 0.0, fresh=0, unknown=2)


def test_the_first_sample_of_a_counter_is_unknown_and_no_alarm() -> None:
    scene, pool = two_replicas()
    scene.pages[1] = Page(prompt_rate=None, generation_rate=None, finished_rate=None)
    found = scene.observed(pool)
    assert found.signals[Signal.PROMPT_TOKENS] == signal(100.0, 100.0, fresh=1, unknown=1)
    assert found.signals[Signal.RUNNING_REQUESTS].unknown_replicas == 0
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("ready_for_seconds", "known"),
    [
        pytest.param(20.0, 2, id="a new pod's counters show all it has done"),
        pytest.param(900.0, 0, id="an older pod's first samples would show a fraction"),
    ],
)
def test_rates_over_a_window_that_is_not_filled_with_samples(ready_for_seconds: float, known: int) -> None:
    scene = Scene()
    scene.scrape(0, 1)
    scene.window_is_full = False
    pods = [LivePod(pod_name(number), pod_name(number), True, START - ready_for_seconds) for number in (0, 1)]
    found = scene.observed(a_pool(pods)).signals
    assert found[Signal.PROMPT_TOKENS].known_replicas == known
    assert found[Signal.RUNNING_REQUESTS].known_replicas == 2


def test_after_an_outage_rates_are_unknown_until_the_window_is_filled_again() -> None:
    scene = Scene()
    scene.scrape(0)
    pool = a_pool([LivePod(pod_name(0), "r", True, START - 3600.0)])
    assert scene.observed(pool).signals[Signal.PROMPT_TOKENS].known_replicas == 1
    scene.source.failures["*"] = LATE
    scene.now += 90.0
    scene.tick(pool)
    scene.source.failures.clear()
    scene.window_is_full = False
    known = []
    for second in (0, 15, 30, 45, 60):
        scene.scrape(0)
        scene.window_is_full = second == 60
        known.append(scene.observed(pool).signals[Signal.PROMPT_TOKENS].known_replicas)
        scene.now += SCRAPE_SECONDS
    assert known == [0, 0, 0, 0, 1]


def test_arrivals_are_what_has_finished_and_what_has_come_to_be_in_flight() -> None:
    scene, pool = two_replicas()
    arrived = []
    for in_flight in (6.0, 6.0, 9.0, 9.0, 9.0, 9.0, 0.0):
        for page in scene.pages.values():
            page.running, page.waiting = in_flight - 2.0, 2.0
        found = scene.observed(pool).signals
        minute, half = found[Signal.REQUESTS_ARRIVED], found[Signal.REQUESTS_ARRIVED_RECENTLY]
        arrived.append((minute.total, half.total))
        scene.now += SCRAPE_SECONDS
        scene.scrape(0, 1)
    assert arrived == [
        (0.0, 0.0),  # unknown: one sample
        (2.0, 2.0),
        (2.2, 2.2),  # 3 more on each in 30 s
        (pytest.approx(2 + 6 / 45), 2.2),
        (2.1, 2.0),
        (2.1, 2.0),
        (pytest.approx(2 - 18 / 60), pytest.approx(2 - 18 / 30)),
    ]


def test_a_process_that_began_anew_is_no_negative_arrival() -> None:
    scene, pool = two_replicas()
    scene.observed(pool)
    scene.now += SCRAPE_SECONDS
    scene.scrape(0, 1)
    for page in scene.pages.values():
        page.running, page.waiting, page.finished_rate = 0.0, 0.0, 0.0
    assert scene.observed(pool).signals[Signal.REQUESTS_ARRIVED] == signal(0.0, 0.0)


def test_a_counter_without_a_rate_after_a_whole_window_is_hinted_at() -> None:
    scene, pool = two_replicas()
    scene.pages[1] = Page(prompt_rate=None)
    for _ in range(6):
        found = scene.observed(pool)
        scene.now += SCRAPE_SECONDS
        scene.scrape(0, 1)
    assert [warning[:60] for warning in found.warnings] == [
        "promptTokensTotal is not on the page of 1 of 2 ready replica"
    ]


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        pytest.param("1000", signal(1000.0, 500.0), id="a size"),
        pytest.param("None", signal(500.0, 500.0, fresh=1, unknown=1), id="the text None is unknown, not zero"),
        pytest.param("0", signal(500.0, 500.0, fresh=1, unknown=1), id="nor is a size of zero believed"),
        pytest.param(None, signal(500.0, 500.0, fresh=1, unknown=1), id="no size yet where others have one"),
    ],
)
def test_used_tokens_need_the_size_of_the_cache(capacity: str | None, expected: PoolSignal) -> None:
    scene, pool = two_replicas()
    scene.pages[1] = Page(capacity=capacity)
    assert scene.observed(pool).signals[Signal.KV_CACHE_USED_TOKENS] == expected


def test_a_size_that_is_not_known_yet_is_no_alarm_until_it_is_overdue() -> None:
    scene, pool = two_replicas()
    scene.pages[1] = Page(capacity=None)
    assert scene.observed(pool).warnings == ()
    for _ in range(5):
        scene.now += SCRAPE_SECONDS
        scene.scrape(0, 1)
        warnings = scene.observed(pool).warnings
    assert [warning.partition(" ")[0] for warning in warnings] == ["kvCacheUsedTokens", "kvCacheCapacityTokens"]


def test_without_any_size_the_token_counts_are_absent() -> None:
    scene, pool = two_replicas()
    scene.pages = {0: Page(capacity=None), 1: Page(capacity=None)}
    found = scene.observed(pool).signals
    assert Signal.KV_CACHE_USED_TOKENS not in found
    assert found[Signal.KV_CACHE_USAGE] == signal(1.0, 0.5)


@pytest.mark.parametrize(
    "seconds_between_ticks",
    [
        pytest.param(15.0, id="asked again at every tick"),
        pytest.param(5.0, id="not asked again at every tick"),
    ],
)
def test_a_size_that_was_asked_for_in_vain_from_the_start_is_unknown_not_absent(seconds_between_ticks: float) -> None:
    scene, pool = two_replicas()
    scene.source.failures[CONFIG] = LATE
    for _ in range(4):
        found = scene.observed(pool).signals
        assert found[Signal.KV_CACHE_USED_TOKENS].unknown_replicas == 2
        assert found[Signal.KV_CACHE_CAPACITY_TOKENS].unknown_replicas == 2
        scene.now += seconds_between_ticks
        scene.scrape(0, 1)
    del scene.source.failures[CONFIG]
    scene.pages = {0: Page(capacity=None), 1: Page(capacity=None)}
    scene.now += SCRAPE_SECONDS
    scene.scrape(0, 1)
    assert Signal.KV_CACHE_USED_TOKENS not in scene.observed(pool).signals


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param([], id="no pods"),
        pytest.param([a_pod(0, is_ready=False)], id="no ready pod"),
        pytest.param([a_pod(5), a_pod(6)], id="pods that were never scraped"),
    ],
)
def test_what_is_on_no_page_because_no_page_was_seen_is_not_absent(pods: list[LivePod]) -> None:
    scene, _ = two_replicas()
    scene.now += 600.0
    found = scene.observed(a_pool(pods)).signals
    assert found[Signal.KV_CACHE_CAPACITY_TOKENS].known_replicas == 0
    assert found[Signal.KV_CACHE_USED_TOKENS].known_replicas == 0


def test_a_new_pods_size_is_asked_for_within_15_seconds() -> None:
    scene, pool = two_replicas()
    scene.observed(pool)
    scene.scrape(2)
    larger = a_pool([a_pod(0), a_pod(1), a_pod(2)])
    for _ in range(2):
        scene.now += SCRAPE_SECONDS
        scene.scrape(0, 1, 2)
        found = scene.observed(larger)
    assert found.signals[Signal.KV_CACHE_USED_TOKENS] == signal(1500.0, 500.0, fresh=3)


def test_engines_of_one_pod_weigh_by_their_size() -> None:
    scene = Scene()
    scene.scrape(0)
    scene.pages[0] = Page(usage=None, capacity=None)
    labels = {"namespace": "prod", "pod": pod_name(0)}
    scene.extra_rows[USAGE] = [({**labels, "engine": "0"}, 0.9), ({**labels, "engine": "1"}, 0.1)]
    scene.extra_rows[CONFIG] = [
        ({**labels, "engine": "0", "num_gpu_blocks": "625", "block_size": "16"}, 1.0),
        ({**labels, "engine": "1", "kv_cache_size_tokens": "30000"}, 1.0),
    ]
    found = scene.observed(a_pool([a_pod(0)])).signals
    assert found[Signal.KV_CACHE_USAGE] == signal(0.3, 0.3, fresh=1)
    assert found[Signal.KV_CACHE_USED_TOKENS] == signal(12_000.0, 12_000.0, fresh=1)


def test_a_replica_of_several_pods_is_ready_when_all_are_and_adds_them_up() -> None:
    scene = Scene()
    scene.scrape(0, 1, 2)
    pods = [a_pod(0, "g0"), a_pod(1, "g0"), a_pod(2, "g1"), a_pod(3, "g1", is_ready=False)]
    found = scene.observed(a_pool(pods))
    assert found.ready_replicas == 1
    assert found.signals[Signal.RUNNING_REQUESTS] == replace(signal(8.0, 8.0, fresh=1), unsteady_total=4.0)
    assert found.signals[Signal.KV_CACHE_USAGE] == replace(signal(0.5, 0.5, fresh=1), unsteady_total=0.5)


def test_workers_without_a_page_are_no_missing_data_but_a_page_that_is_gone_is() -> None:
    scene = Scene()
    scene.scrape(0, 2, 3)
    pods = [a_pod(0, "g0"), a_pod(1, "g0"), a_pod(2, "g1"), a_pod(3, "g1")]
    assert scene.observed(a_pool(pods)).signals[Signal.RUNNING_REQUESTS] == signal(12.0, 8.0)
    scene.vanish(3)
    for _ in range(10):
        scene.now += SCRAPE_SECONDS
        scene.scrape(0, 2)
        found = scene.observed(a_pool(pods))
    assert found.signals[Signal.RUNNING_REQUESTS] == signal(4.0, 4.0, fresh=1, unknown=1)


REFUSED = PrometheusFailure(FailureKind.REJECTED, "query x: 422 execution: no", 422, "execution")
LATE = PrometheusFailure(FailureKind.TIMEOUT, "query x: no answer within 5 s")


def test_one_failed_query_makes_its_signal_unknown_and_leaves_the_others() -> None:
    scene, pool = two_replicas()
    scene.source.failures[WAITING] = REFUSED
    found = scene.observed(pool)
    assert found.signals[Signal.WAITING_REQUESTS] == signal(0.0, 0.0, fresh=0, unknown=2)
    assert found.signals[Signal.RUNNING_REQUESTS] == signal(8.0, 4.0)
    assert found.warnings == (REFUSED.message,)


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(Page(None, None, None, None, None, None, None), id="before all other queries"),
        pytest.param(Page(waiting=None, running=9.0), id="before one of the gauges was read"),
    ],
)
def test_a_scrape_that_fails_between_two_queries_of_a_look_leaves_the_replica_as_it_was(left: Page) -> None:
    scene, pool = two_replicas()
    scene.observed(pool)
    scene.now += SCRAPE_SECONDS
    scene.scrape(0, 1)
    scene.pages[1] = left  # the query for sample times was answered before its scrape failed
    found = scene.observed(pool)
    assert found.signals[Signal.RUNNING_REQUESTS] == signal(8.0, 4.0, age=15.0)
    assert found.signals[Signal.WAITING_REQUESTS] == signal(4.0, 2.0, age=15.0)
    scene.now += 2 * SCRAPE_SECONDS
    scene.scrape(0)
    del scene.sampled_at[1]
    found = scene.observed(pool)
    assert found.signals[Signal.RUNNING_REQUESTS] == signal(8.0, 4.0, fresh=1, held=1, age=45.0)


def test_a_gauge_that_is_gone_from_two_pages_in_a_row_is_unknown() -> None:
    scene, pool = two_replicas()
    scene.observed(pool)
    scene.pages[1] = Page(waiting=None)
    for _ in range(2):
        scene.now += SCRAPE_SECONDS
        scene.scrape(0, 1)
        found = scene.observed(pool)
    assert found.signals[Signal.WAITING_REQUESTS] == signal(2.0, 2.0, fresh=1, unknown=1)


def test_without_sample_times_the_last_ones_are_held() -> None:
    scene, pool = two_replicas()
    scene.observed(pool)
    scene.source.failures["sampleTime"] = LATE
    for _ in range(3):
        scene.now += SCRAPE_SECONDS
        found = scene.observed(pool)
    assert found.signals[Signal.RUNNING_REQUESTS] == signal(8.0, 4.0, fresh=0, held=2, age=45.0)


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        pytest.param(LATE, Reason.PROMETHEUS_TIMEOUT, id="no answer in time"),
        pytest.param(REFUSED, Reason.PROMETHEUS_REJECTED, id="refused"),
        pytest.param(
            PrometheusFailure(FailureKind.UNREACHABLE, "refused"), Reason.PROMETHEUS_UNREACHABLE, id="unreachable"
        ),
        pytest.param(
            PrometheusFailure(FailureKind.BAD_ANSWER, "HTML"), Reason.PROMETHEUS_BAD_ANSWER, id="a login page"
        ),
    ],
)
def test_when_nothing_is_answered_the_pool_is_unavailable(failure: PrometheusFailure, reason: Reason) -> None:
    scene, _ = two_replicas()
    scene.source.failures["*"] = failure
    assert scene.tick(a_pool([a_pod(0)], {"pending": "q"})) == ObservationUnavailable(reason, failure.message)


def test_the_users_own_query_is_not_lost_with_the_engines() -> None:
    scene, _ = two_replicas()
    scene.source.numbers["q"] = 7.0
    names = (RUNNING, WAITING, USAGE, PROMPT, GENERATED, FINISHED, CONFIG, PREEMPTIONS, "sampleTime", "requestSizes")
    scene.source.failures = dict.fromkeys(
        (*names, "windowStart", "prefixCache", "timeToFirstTokenSeconds", "interTokenLatencySeconds"), LATE
    )
    found = scene.observed(a_pool([a_pod(0)], {"pending": "q"}))
    assert found.queries == {"pending": QueryValue(7.0, 0.0)}
    assert found.coverage == 0.0
    assert found.signals[Signal.RUNNING_REQUESTS] == signal(0.0, 0.0, fresh=0, unknown=1)


def test_a_partial_answer_makes_what_is_missing_unknown_and_is_passed_on() -> None:
    scene, pool = two_replicas()
    scene.observed(pool)
    scene.now += SCRAPE_SECONDS
    scene.scrape(0, 1)
    scene.pages[1] = Page(waiting=None)
    scene.source.warnings[WAITING] = ("store 10.0.0.7 did not answer",)
    found = scene.observed(pool)
    assert found.signals[Signal.WAITING_REQUESTS] == signal(2.0, 2.0, fresh=1, unknown=1)
    assert found.warnings == ("query waitingRequests: store 10.0.0.7 did not answer",)


@pytest.mark.parametrize(
    ("ready_for_seconds", "ready", "fresh"),
    [
        pytest.param(10.0, 1, 1, id="a replica that has not been scraped yet is not missing"),
        pytest.param(60.0, 2, 1, id="after a minute it is"),
    ],
)
def test_a_replica_that_has_just_become_ready(ready_for_seconds: float, ready: int, fresh: int) -> None:
    scene = Scene()
    scene.scrape(0)
    new = LivePod(pod_name(1), pod_name(1), True, START - ready_for_seconds)
    found = scene.observed(a_pool([a_pod(0), new]))
    assert (found.ready_replicas, found.fresh_replicas) == (ready, fresh)
    assert found.signals[Signal.RUNNING_REQUESTS].ready_replicas == ready


def test_pods_that_nobody_scrapes_are_pointed_out() -> None:
    scene = Scene()
    found = scene.observed(a_pool([LivePod(pod_name(0), pod_name(0), True, START - 300.0)]))
    assert found.coverage == 0.0
    assert found.warnings == (
        "no sample of any of the pool's 1 pods is in Prometheus: are they scraped, and do their series carry the "
        "labels namespace and pod?",
    )


@pytest.mark.parametrize(
    ("page", "number", "expected"),
    [
        pytest.param(Page(), 5.0, QueryValue(5.0, 0.0), id="a number"),
        pytest.param(Page(), None, QueryUnknown("the query has no series"), id="no series"),
        pytest.param(Page(), nan, QueryUnknown("the query is not a number"), id="NaN while there is traffic"),
        pytest.param(
            Page(running=0.0, waiting=0.0, finished_rate=0.0),
            nan,
            QueryValue(0.0, 0.0),
            id="0/0 of a pool that provably has no traffic is zero",
        ),
        pytest.param(
            Page(running=0.0, waiting=0.0, finished_rate=None),
            nan,
            QueryUnknown("the query is not a number"),
            id="no traffic that is not proven",
        ),
        pytest.param(
            Page(running=0.0, waiting=0.0, finished_rate=0.0),
            inf,
            QueryUnknown("the query is infinite"),
            id="infinite is never zero",
        ),
    ],
)
def test_the_users_own_queries(page: Page, number: float | None, expected: QueryValue | QueryUnknown) -> None:
    scene = Scene()
    scene.scrape(0)
    scene.pages[0] = page
    if number is not None:
        scene.source.numbers["q"] = number
    assert scene.observed(a_pool([a_pod(0)], {"pending": "q"})).queries == {"pending": expected}


def test_a_refused_query_of_one_pool_does_not_spoil_anothers() -> None:
    scene, _ = two_replicas()
    scene.source.numbers = {"good": 1.0, "bad": 1.0}
    scene.source.refused = {"bad"}
    pools = [a_pool([], {"q": "good"}), a_pool([], {"q": "bad"}, name="other")]
    assert scene.observed(*pools).queries == {"q": QueryValue(1.0, 0.0)}
    assert len(scene.source.rounds) == 2
    assert scene.observed(*pools).queries == {"q": QueryValue(1.0, 0.0)}
    assert len(scene.source.rounds) == 3, "the culprit is remembered, so one round is enough"


def test_a_pool_of_custom_queries_misses_nothing_on_its_replicas() -> None:
    scene = Scene()
    scene.source.numbers["q"] = 3.0
    found = scene.observed(a_pool([a_pod(0)], {"q": "q"}, engine="custom"))
    assert (found.signals, found.coverage, found.queries) == ({}, 1.0, {"q": QueryValue(3.0, 0.0)})


def workload_rows(label: str, values: Mapping[str, float], workload: str = "vllm") -> list[LabelledValue]:
    return [
        ({"namespace": "prod", "tokenscaler_workload": workload, label: name}, value) for name, value in values.items()
    ]


def sizes(prompt_tokens: float, requests: float) -> list[LabelledValue]:
    parts = {
        "promptTokens": prompt_tokens,
        "prompts": requests,
        "generatedTokens": requests * 100,
        "generations": requests,
    }
    return workload_rows("tokenscaler_part", parts)


def minutes(scene: Scene, pool: PoolQuery, count: int) -> MetricsObservation:
    for _ in range(count * 4):
        found = scene.observed(pool)
        scene.now += SCRAPE_SECONDS
        scene.scrape(0, 1)
    return found


@pytest.mark.parametrize(
    ("later", "after_minutes", "expected"),
    [
        pytest.param(sizes(100_000, 100), 3, 1000.0, id="a steady mean"),
        pytest.param(sizes(3_000_000, 1000), 1, 2666.7, id="500 new requests outweigh the 100 before them"),
        pytest.param(sizes(300_000, 100), 1, 1666.7, id="50 new requests count as a third beside 100"),
        pytest.param(sizes(30_000, 1), 1, 1144.3, id="one long request in two minutes moves it by its share"),
        pytest.param([], 3, 1000.0, id="held without any"),
    ],
)
def test_request_sizes(later: list[LabelledValue], after_minutes: int, expected: float) -> None:
    scene, pool = two_replicas()
    scene.extra_rows["requestSizes"] = sizes(100_000, 100)
    first = minutes(scene, pool, 1)
    scene.extra_rows["requestSizes"] = later
    found = minutes(scene, pool, after_minutes)
    assert (first.prompt_tokens_per_request, first.generation_tokens_per_request) == (1000.0, 100.0)
    assert found.prompt_tokens_per_request == pytest.approx(expected, abs=0.1)


def test_before_20_requests_no_size_is_known() -> None:
    scene, pool = two_replicas()
    scene.extra_rows["requestSizes"] = sizes(19_000, 19)
    assert minutes(scene, pool, 1).prompt_tokens_per_request is None
    assert minutes(scene, pool, 1).prompt_tokens_per_request == pytest.approx(1000.0)


def test_the_prefix_cache_hit_share() -> None:
    scene, pool = two_replicas()
    scene.extra_rows["prefixCache"] = workload_rows("tokenscaler_part", {"prefixHits": 64, "prefixQueries": 117})
    assert minutes(scene, pool, 1).prefix_cache_hit_share == pytest.approx(64 / 117)
    scene.extra_rows["prefixCache"] = workload_rows("tokenscaler_part", {"prefixHits": 0, "prefixQueries": 0})
    assert minutes(scene, pool, 2).prefix_cache_hit_share == pytest.approx(64 / 117), "0 / 0 says nothing new"


def test_latency_of_the_pool_from_its_workloads_buckets() -> None:
    scene, pool = two_replicas()
    scene.extra_rows["interTokenLatencySeconds"] = workload_rows("le", {"0.01": 10.0, "0.025": 10.0, "+Inf": 10.0})
    scene.extra_rows["timeToFirstTokenSeconds"] = workload_rows("le", {"10.0": 5.0, "+Inf": 10.0})
    latency = minutes(scene, pool, 1).latency
    assert latency.inter_token_latency_p50_seconds == pytest.approx(0.005)
    assert latency.inter_token_latency_p99_seconds == pytest.approx(0.0099)
    assert latency.inter_token_latency_evenness_floor == pytest.approx(1.98)
    assert (latency.time_to_first_token_p99_seconds, latency.is_censored) == (10.0, True)


def test_lengths_of_the_pools_requests_from_its_workloads_buckets() -> None:
    scene, pool = two_replicas()
    buckets = {"1000.0": 0.0, "2000.0": 2.0, "+Inf": 2.0}
    scene.extra_rows["promptTokensPerRequest"] = workload_rows("le", buckets)
    assert minutes(scene, pool, 1).request_lengths is None, "prompts alone say nothing"
    scene.extra_rows["generationTokensPerRequest"] = workload_rows("le", buckets)
    assert minutes(scene, pool, 1).request_lengths == RequestLengths(0.0, ((1.0, 1.0),))


def test_slow_answers_outlive_a_failure_but_not_two_and_a_half_minutes() -> None:
    scene, pool = two_replicas()
    scene.extra_rows["interTokenLatencySeconds"] = workload_rows("le", {"0.01": 10.0, "0.025": 10.0, "+Inf": 10.0})
    scene.extra_rows[PREEMPTIONS] = [({"namespace": "prod", "pod": pod_name(number)}, 0.5) for number in (0, 1)]
    minutes(scene, pool, 1)
    scene.source.failures = {PREEMPTIONS: REFUSED, "interTokenLatencySeconds": REFUSED}
    for minute, known in ((1, 2), (2, 2), (3, 0)):
        found = minutes(scene, pool, 1)
        assert found.signals[Signal.PREEMPTIONS].known_replicas == known, minute
        assert (found.latency.inter_token_latency_p50_seconds is not None) is bool(known), minute
        assert found.signals[Signal.RUNNING_REQUESTS].known_replicas == 2


def test_a_clock_that_is_set_back_keeps_no_slow_answer_alive() -> None:
    scene, pool = two_replicas()
    scene.extra_rows["interTokenLatencySeconds"] = workload_rows("le", {"0.01": 10.0, "0.025": 10.0, "+Inf": 10.0})
    minutes(scene, pool, 1)
    scene.source.failures = {"interTokenLatencySeconds": REFUSED}
    scene.now -= 3600.0
    assert minutes(scene, pool, 2).latency.inter_token_latency_p50_seconds is not None
    assert minutes(scene, pool, 1).latency.inter_token_latency_p50_seconds is None


def test_two_pools_that_cannot_be_told_apart_by_name_get_no_latency() -> None:
    scene, pool = two_replicas()
    scene.extra_rows["timeToFirstTokenSeconds"] = workload_rows("le", {"10.0": 5.0, "+Inf": 5.0})
    twin = PoolQuery(("prod", "twin"), "vllm", "other", (LivePod("vllm-0", "vllm-0", True, START),), {})
    for _ in range(2):
        found = scene.observed(pool, twin)
        scene.now += SCRAPE_SECONDS
    assert found.latency.time_to_first_token_p99_seconds is None


def test_no_tick_asks_more_than_12_questions_and_each_slow_one_comes_once_a_minute() -> None:
    scene = Scene()
    engines = ("vllm", "sglang", "tensorrt-llm", "triton-tensorrt-llm")
    pools = [a_pool([], engine=engine, name=engine) for engine in engines]
    for _ in range(60):
        scene.observed(*pools)
        scene.now += 5.0
    assert max(len(names) for names in scene.source.rounds) == 12
    asked = [name for names in scene.source.rounds for name in names]
    assert asked.count(RUNNING) == 60
    assert {asked.count(name) for name in (CONFIG, "requestSizes", "prefixCache", "interTokenLatencySeconds")} == {5}


def test_trtllm_replicas_that_have_never_served_are_idle_not_unknown() -> None:
    scene = Scene()
    labels = {"namespace": "prod", "pod": pod_name(0)}
    scene.extra_rows["sampleTime"] = [(labels, START)]
    scene.pages = {}
    scene.source.now_seconds = START
    scene.source.rows = {"sampleTime": [(labels, START)]}
    pool = a_pool([a_pod(0)], engine="tensorrt-llm")
    idle = scene.observer.observe_metrics([pool], START)[KEY]
    assert isinstance(idle, MetricsObservation)
    assert idle.signals[Signal.RUNNING_REQUESTS] == signal(0.0, 0.0, fresh=1)
    scene.source.rows[USAGE] = [(labels, 0.2)]
    served = scene.observer.observe_metrics([pool], START + 1)[KEY]
    assert isinstance(served, MetricsObservation)
    assert served.signals[Signal.RUNNING_REQUESTS] == signal(0.0, 0.0, fresh=0, unknown=1), "one of them was renamed"


def test_ten_thousand_pods_are_observed_together() -> None:
    source = FakeQuerySource()
    observer = PrometheusMetricsObserver(source, QuerySettings())
    pools, labels = [], []
    for number in range(1000):
        pods = [LivePod(f"m{number}-{each}", f"m{number}-{each}", True, START) for each in range(10)]
        pools.append(PoolQuery(("prod", f"m{number}"), "vllm", f"m{number}", tuple(pods), {}))
        labels += [{"namespace": "prod", "pod": pod.name} for pod in pods]
    source.rows = {name: [(each, 0.5) for each in labels] for name in (RUNNING, WAITING, PROMPT, GENERATED, FINISHED)}
    source.rows[USAGE] = [({**each, "engine": "0"}, 0.5) for each in labels]
    source.rows[CONFIG] = [({**each, "engine": "0", "kv_cache_size_tokens": "1000"}, 1.0) for each in labels]
    for tick in range(4):
        source.now_seconds = START + 15.0 * tick
        source.rows["sampleTime"] = source.rows["windowStart"] = [(each, source.now_seconds) for each in labels]
        found = observer.observe_metrics(pools, source.now_seconds)
    assert len(found) == 1000
    first = found["prod", "m0"]
    assert isinstance(first, MetricsObservation)
    assert first.signals[Signal.KV_CACHE_USED_TOKENS].total == 5000.0
