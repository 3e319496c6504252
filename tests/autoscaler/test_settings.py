"""Settings of the process: what a file may say, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings
from autoscaler.settings import ControllerSettings, LeaseSettings, one_line, read_prometheus_settings

URL = "http://prometheus:9090"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "prometheus.yaml"


def test_without_a_file_there_are_defaults() -> None:
    assert read_prometheus_settings(URL, None) == (PrometheusSettings(url=URL), QuerySettings())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="an empty file"),
        pytest.param("# nothing\n", id="only a comment"),
        pytest.param("client: {}\nqueries: {}\n", id="empty groups"),
    ],
)
def test_a_file_that_says_nothing_leaves_the_defaults(path: Path, text: str) -> None:
    path.write_text(text)
    assert read_prometheus_settings(URL, path) == (PrometheusSettings(url=URL), QuerySettings())


def test_a_file_sets_login_and_queries(path: Path) -> None:
    path.write_text(
        "client:\n  bearer_token_file: /var/run/token\n  headers: {X-Scope-OrgID: inference}\n"
        "queries: {pod_label: kubernetes_pod_name}\n"
    )
    client, queries = read_prometheus_settings(URL, path)
    assert (client.url, client.bearer_token_file) == (URL, Path("/var/run/token"))
    assert client.headers == {"X-Scope-OrgID": "inference"}
    assert queries.pod_label == "kubernetes_pod_name"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("client: [", "line 1: not YAML: ", id="not YAML"),
        pytest.param("a: 1\n  b: 2\n", "line 2: not YAML: mapping values are not allowed here", id="wrong indentation"),
        pytest.param("- 1\n", "Input should be a valid dictionary", id="a list"),
        pytest.param("clients: {}\n", "clients: Extra inputs are not permitted", id="a misspelt group"),
        pytest.param("client: {tokenfile: x}\n", "tokenfile: Extra inputs are not permitted", id="a misspelt field"),
        pytest.param(
            "client: {url: 'http://elsewhere:9090'}\n",
            "client: url does not belong here: the address is given by --prometheus-url",
            id="a second address",
        ),
        pytest.param(
            "client: {basic_auth_username: me}\n",
            "basic_auth_username and basic_auth_password_file go together",
            id="half a login",
        ),
        pytest.param(
            "client: {threads: 0}\nqueries: {}\n", "threads: Input should be greater than or equal to 1", id="no thread"
        ),
        pytest.param(
            "queries: {pod_label: 'a-b'}\n", "queries.pod_label: String should match pattern", id="no label name"
        ),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong_in_one_line(path: Path, text: str, problem: str) -> None:
    path.write_text(text)
    with pytest.raises(ValueError, match=r".") as caught:
        read_prometheus_settings(URL, path)
    said = one_line(caught.value)
    assert said.startswith(f"{path}: {problem}")
    assert "\n" not in said


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("client: {bearer_token: hunter2}\n", id="an unknown field"),
        pytest.param("client: {headers: {Authorization: [hunter2]}}\n", id="a value of the wrong type"),
        pytest.param("client:\n  password: hunter2\n bad\n", id="not YAML"),
    ],
)
def test_a_secret_in_the_wrong_place_is_not_shown(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(ValueError, match=r".") as caught:
        read_prometheus_settings(URL, path)
    assert "hunter2" not in one_line(caught.value)


def test_a_file_that_is_not_there_is_an_error_of_the_system(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"prometheus\.yaml"):
        read_prometheus_settings(URL, path)


def test_a_file_that_is_no_text_is_refused(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="can't decode"):
        read_prometheus_settings(URL, path)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({"tick_seconds": 0}, "tick_seconds: Input should be greater than 0", id="no time between ticks"),
        pytest.param(
            {"tick_seconds": 61},
            "tick_seconds: Input should be less than or equal to 60",
            id="ticks so far apart that one missed tick would be a gap in the history",
        ),
        pytest.param({"http_port": 70_000}, "http_port: Input should be less than or equal to 65535", id="no port"),
        pytest.param(
            {"ceiling_dollars_per_hour": "$3000"},
            "ceiling_dollars_per_hour: String should match pattern '^[0-9]{1,9}(\\.[0-9]{1,6})?$'",
            id="a ceiling that is no number",
        ),
        pytest.param({"interval": 3}, "interval: Extra inputs are not permitted", id="an unknown setting"),
        pytest.param(
            {"is_dry_run": True, "metrics_api": {"host": "", "port": 8443, "service_namespace": "tokenscaler-system"}},
            "--dry-run serves no metrics API: an HPA would write what it reads there",
            id="a dry run by whose counts others would write",
        ),
    ],
)
def test_settings_out_of_bounds_are_refused(changes: dict[str, object], problem: str) -> None:
    ordinary: dict[str, object] = {"prometheus": {"url": URL}, "lease": {"identity": "a"}}
    with pytest.raises(ValidationError) as caught:
        ControllerSettings.model_validate(ordinary | changes)
    assert one_line(caught.value) == problem


def test_a_lease_needs_somebody_to_hold_it() -> None:
    with pytest.raises(ValidationError, match="identity"):
        LeaseSettings(identity="")
