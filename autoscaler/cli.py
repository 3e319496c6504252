"""The `tokenscaler` command. Exit codes: 0 fine, 1 what was checked is not right, 2 wrong usage or input."""

from __future__ import annotations

import socket
import sys
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console

if TYPE_CHECKING:  # a command loads what it needs and no more
    from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings

app = typer.Typer(
    name="tokenscaler",
    help="A Kubernetes autoscaler for LLM inference fleets.\n\nExample: tokenscaler demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
doctor_app = typer.Typer(
    help="Read-only checks of what Tokenscaler would work on.\n\nExample: tokenscaler doctor metrics --page page.txt",
    no_args_is_help=True,
)
app.add_typer(doctor_app, name="doctor")


# What several commands ask for in the same words.
LoadPrometheus = Annotated[
    str | None, typer.Option(help="Instead of a trace: the pool's own recorded load, from --start to --end.")
]
PrometheusConfig = Annotated[
    Path | None, typer.Option(help="YAML with authentication, TLS, headers and timeouts of the Prometheus client.")
]
TraceScale = Annotated[float, typer.Option(help="So many times the trace's users.")]
FleetName = Annotated[str | None, typer.Option(help="FLEET.yaml, or the name of a replica profile.")]
Baselines = Annotated[list[str] | None, typer.Option(help="A policy to compare with (repeatable).")]
LoadStart = Annotated[
    str | None, typer.Option(help="Begin at this second of the trace; of Prometheus: unix seconds or a date.")
]
LoadEnd = Annotated[str | None, typer.Option(help="End there.")]


class Output(StrEnum):
    """Text for a person, JSON for a machine."""

    TEXT = "text"
    JSON = "json"


def main() -> None:
    """Runs the command line."""
    app()


def refuse(message: str) -> NoReturn:
    """Says on stderr what cannot be done, and exits with 2."""
    typer.echo(f"tokenscaler: {message}", err=True)
    raise typer.Exit(2)


def _console() -> Console:
    # A pipe has no width of its own; 200 columns keep a line a line for grep.
    # No markup: what is printed holds PromQL, whose [5m] is no style.
    width = None if sys.stdout.isatty() else 200
    return Console(highlight=False, markup=False, emoji=False, width=width)


def _prometheus_settings(url: str, path: Path | None) -> tuple[PrometheusSettings, QuerySettings]:
    """The settings for `url`, with the file's where one is given; refuses what cannot be read."""
    from autoscaler.settings import one_line, read_prometheus_settings

    try:
        return read_prometheus_settings(url, path)
    except (ValueError, OSError) as error:
        refuse(one_line(error))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tokenscaler {metadata.version('tokenscaler')}")
        raise typer.Exit(0)


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A Kubernetes autoscaler for LLM inference fleets.

    Example: tokenscaler demo
    """


@app.command()
def run(
    prometheus_url: Annotated[
        str, typer.Option(envvar="TOKENSCALER_PROMETHEUS_URL", help="Base URL; a path prefix may follow.")
    ],
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Else the pod's ServiceAccount, else the usual kubeconfig.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    namespace: Annotated[list[str] | None, typer.Option(help="Only these namespaces (repeatable).")] = None,
    config: Annotated[
        Path | None, typer.Option(help="Folder of InferenceScaler YAML, where no CRD may be installed.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing, whatever the objects say.")] = False,
    tick_seconds: Annotated[float, typer.Option(min=0.1, max=60, help="Seconds between decisions.")] = 15.0,
    http_host: Annotated[str, typer.Option(help="Address of /healthz, /readyz, /metrics and the page.")] = "0.0.0.0",
    http_port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free port.")] = 8080,
    ceiling_dollars_per_hour: Annotated[
        str | None,
        typer.Option(
            envvar="TOKENSCALER_CEILING_DOLLARS_PER_HOUR",
            help="Most dollars an hour of the nodes of all AcceleratorPools together, by their nodeDollarsPerHour.",
        ),
    ] = None,
    decisions: Annotated[
        str | None, typer.Option(help="File for one JSON line a decision (rotated); - is stdout.")
    ] = None,
    lease_namespace: Annotated[
        str,
        typer.Option(
            envvar="TOKENSCALER_LEASE_NAMESPACE", help="Of the Lease by which one of several leads; it exists."
        ),
    ] = "tokenscaler-system",
    lease_name: Annotated[str, typer.Option(help="Name of that Lease.")] = "tokenscaler",
    identity: Annotated[
        str | None,
        typer.Option(envvar="TOKENSCALER_IDENTITY", help="Unique name of this process; default: the host's."),
    ] = None,
    prometheus_config: PrometheusConfig = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    metrics_api_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve external.metrics.k8s.io there, over TLS, for HPAs.")
    ] = None,
    metrics_api_service: Annotated[
        str, typer.Option(help="Service of the metrics API, in the Lease's namespace; its certificate is for it.")
    ] = "tokenscaler-metrics",
    metrics_api_certificate: Annotated[
        Path | None,
        typer.Option(help="Folder with tls.crt and tls.key; else a certificate of its own, kept in a Secret."),
    ] = None,
    forward_to: Annotated[
        str | None, typer.Option(help="https address of the provider to ask for metrics that we do not have.")
    ] = None,
    forward_to_ca: Annotated[Path | None, typer.Option(help="File with the CA of its certificate.")] = None,
    forward_to_token: Annotated[
        Path | None, typer.Option(help="File with the bearer token for it; default: the pod's own.")
    ] = None,
    forward_to_front_proxy: Annotated[
        Path | None,
        typer.Option(help="Folder with tls.crt and tls.key that it trusts as a front proxy: no token then."),
    ] = None,
    keda_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Answer KEDA's external scaler calls (gRPC) there.")
    ] = None,
    keda_certificate: Annotated[
        Path | None, typer.Option(help="Folder with tls.crt, tls.key, and ca.crt that signs KEDA's certificate.")
    ] = None,
) -> None:
    """Run the controller.

    Example: tokenscaler run --prometheus-url http://prometheus.monitoring:9090 --dry-run
    """
    from autoscaler.external_metrics.settings import SERVICE_ACCOUNT_TOKEN, ForwardSettings, MetricsApiSettings
    from autoscaler.keda_external_scaler.settings import ExternalScalerSettings
    from autoscaler.process_log import configure_process_log
    from autoscaler.settings import ControllerSettings, LeaseSettings, one_line, read_prometheus_settings
    from autoscaler.wiring import StartFailed, run_controller

    if log_level not in {"debug", "info", "warning", "error"}:
        refuse(f"--log-level {log_level}: debug, info, warning or error is wanted")
    configure_process_log(log_level)
    if forward_to is not None and metrics_api_port is None:
        refuse("--forward-to goes with --metrics-api-port: it is what our metrics API does with what it does not know")
    if (keda_port is None) != (keda_certificate is None):
        refuse("--keda-port and --keda-certificate go together: nobody is answered in the clear")
    try:
        prometheus, queries = read_prometheus_settings(prometheus_url, prometheus_config)
        settings = ControllerSettings(
            prometheus=prometheus,
            queries=queries,
            lease=LeaseSettings(namespace=lease_namespace, name=lease_name, identity=identity or socket.gethostname()),
            kubeconfig=kubeconfig,
            context=context,
            namespaces=tuple(namespace or ()),
            config_directory=config,
            is_dry_run=dry_run,
            tick_seconds=tick_seconds,
            http_host=http_host,
            http_port=http_port,
            ceiling_dollars_per_hour=ceiling_dollars_per_hour,
            decision_log=Path(decisions) if decisions and decisions != "-" else None,
            writes_decisions_to_stdout=decisions == "-",
            metrics_api=None
            if metrics_api_port is None
            else MetricsApiSettings(
                host=http_host,
                port=metrics_api_port,
                service_namespace=lease_namespace,
                service_name=metrics_api_service,
                certificate_directory=metrics_api_certificate,
                forward_to=None
                if forward_to is None
                else ForwardSettings(
                    url=forward_to,
                    authority=forward_to_ca,
                    token=forward_to_token or SERVICE_ACCOUNT_TOKEN,
                    front_proxy_directory=forward_to_front_proxy,
                ),
            ),
            external_scaler=None
            if keda_port is None or keda_certificate is None
            else ExternalScalerSettings(host=http_host, port=keda_port, certificate_directory=keda_certificate),
        )
    except (ValueError, OSError) as error:
        refuse(one_line(error))
    result = run_controller(settings)
    if isinstance(result, StartFailed):
        refuse(result.message)
    raise typer.Exit(result)


@app.command()
def demo(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page on 127.0.0.1; a free one if taken.")
    ] = 8080,
    speed: Annotated[float, typer.Option(min=1, max=600, help="Simulated seconds in one second.")] = 30.0,
    duration: Annotated[float | None, typer.Option(min=0.1, help="Stop after so many real seconds.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed is another day.")] = 1,
) -> None:
    """Run the real controller loop on a simulated fleet: no cluster, no Prometheus.

    Example: tokenscaler demo --speed 60
    """
    from autoscaler.demo import run_demo

    raise typer.Exit(run_demo(port=port, speed=speed, duration_seconds=duration, seed=seed))


@app.command()
def explain(
    target: Annotated[str | None, typer.Argument(help="NAMESPACE/NAME of an InferenceScaler.")] = None,
    log: Annotated[Path | None, typer.Option(help="Decision log: every record is decided again.")] = None,
    url: Annotated[str | None, typer.Option(help="A controller's HTTP address, for its newest decisions.")] = None,
    at: Annotated[
        str | None, typer.Option(help="The decision in force at a time such as 2026-11-30T09:30:00Z.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="A line a change of the last 90s, 30m, 2h or 1d (of the log, back from its end).")
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Else the usual kubeconfig.")] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    output: Annotated[Output, typer.Option(help="text or json.")] = Output.TEXT,
) -> None:
    """Say why a pool has this many replicas, and decide the record again.

    Exit 1 where a record comes out otherwise, 2 where there is none to be had.

    Examples: tokenscaler explain inference/llama-70b --url http://localhost:8080 --since 2h;
    tokenscaler explain --log decisions.jsonl
    """
    from autoscaler.explain_command import explain_log, explain_target
    from autoscaler.record_window import parse_window

    if target is None and log is None:
        refuse("explain: give NAMESPACE/NAME or --log FILE (or both)")
    window = parse_window(at, since)
    if isinstance(window, str):
        refuse(window)
    if log is not None:
        raise typer.Exit(explain_log(log, target, window, output is Output.JSON, _console()))
    assert target is not None
    raise typer.Exit(explain_target(target, url, kubeconfig, context, window, output is Output.JSON, _console()))


@app.command()
def forecast(
    series: Annotated[
        str,
        typer.Argument(
            help="CSV: timestamp_s,value[,input_tokens,output_tokens]; or NAMESPACE/NAME, with --prometheus-url."
        ),
    ],
    column: Annotated[str, typer.Option(help="A column, or several joined by +.")] = "value",
    bin_width: Annotated[
        str | None,
        typer.Option(
            "--bin",
            help="Width of a bin, such as 5m: never less than the distance of even rows; requests are counted into it.",
        ),
    ] = None,
    backtest: Annotated[bool, typer.Option("--backtest", help="Score rolling forecasts instead.")] = False,
    test_days: Annotated[float | None, typer.Option(help="Days at the series' end that are scored.")] = None,
    predictions: Annotated[Path | None, typer.Option(help="CSV with every scored forecast (with --backtest).")] = None,
    model: Annotated[str, typer.Option(help="Which model is scored (with --backtest).")] = "ridge",
    html: Annotated[Path | None, typer.Option(help="Write the picture to a page of its own.")] = None,
    prometheus_url: Annotated[
        str | None, typer.Option(envvar="TOKENSCALER_PROMETHEUS_URL", help="Where the load of NAMESPACE/NAME is.")
    ] = None,
    prometheus_config: PrometheusConfig = None,
    days: Annotated[int, typer.Option(min=1, max=22, help="Days of a pool's load that are read.")] = 14,
    target: Annotated[str | None, typer.Option(help="The pool's Deployment, where its name is another one.")] = None,
    engine: Annotated[str, typer.Option(help="The pool's engine.")] = "vllm",
    output: Annotated[Output, typer.Option(help="text or json.")] = Output.TEXT,
) -> None:
    """Show the forecast of a pool or a recorded series as a picture, or how good it would have been.

    Examples: tokenscaler forecast load.csv --column input_tokens+output_tokens --bin 5m --backtest
    tokenscaler forecast inference/llama-8b --prometheus-url http://localhost:9090 --html forecast.html
    """
    from autoscaler.forecast_command import BacktestRequest, backtest_series, forecast_series
    from autoscaler.forecast_source import PoolRequest, SeriesRequest

    request: SeriesRequest | PoolRequest = SeriesRequest(Path(series), column, bin_width)
    if prometheus_url is not None and not Path(series).exists():
        namespace, _, name = series.partition("/")
        if not (namespace and name) or "/" in name:
            refuse(f"forecast {series}: no such file, and no NAMESPACE/NAME")
        prometheus, queries = _prometheus_settings(prometheus_url, prometheus_config)
        request = PoolRequest(namespace, name, prometheus, queries, target, engine, days)
    if not backtest:
        if predictions is not None or test_days is not None:
            refuse("--predictions and --test-days go with --backtest")
        raise typer.Exit(forecast_series(request, output is Output.JSON, _console(), html))
    scoring = BacktestRequest(test_days, predictions, model)
    raise typer.Exit(backtest_series(request, scoring, output is Output.JSON, _console()))


def _moment(option: str, given: str | None) -> float | None:
    """Seconds, or the unix time of a date."""
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        pass
    from autoscaler.api.document import rfc3339_seconds

    moment_seconds = rfc3339_seconds(given)
    if moment_seconds is None:
        refuse(f"{option} {given}: seconds, or a date such as 2026-11-23T00:00Z, are wanted")
    return moment_seconds


@app.command()
def replay(
    policies: Annotated[
        list[Path] | None,
        typer.Argument(metavar="POLICY.yaml", help="InferenceScaler, HPA or ScaledObject manifests."),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(help="CSV: timestamp_s,value,input_tokens,output_tokens; or agents:sessions=10000,hours=4."),
    ] = None,
    prometheus: LoadPrometheus = None,
    prometheus_config: PrometheusConfig = None,
    log: Annotated[
        Path | None, typer.Option(help="Instead of a trace: a controller's decision log, against what happened.")
    ] = None,
    trace_scale: TraceScale = 1.0,
    fleet: FleetName = None,
    baseline: Baselines = None,
    tune_baselines: Annotated[
        bool, typer.Option("--tune-baselines", help="Give each baseline its own best parameters on this load.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another drawing of arrivals and starts.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="So many seeds, from --seed on; means are shown.")] = 1,
    start: LoadStart = None,
    end: LoadEnd = None,
    policy_only: Annotated[
        bool, typer.Option("--policy-only", help="Rates instead of requests: weeks in seconds, nothing of latencies.")
    ] = False,
    policy_step: Annotated[
        float | None, typer.Option(help="With --policy-only: seconds between decisions, 15 to 120; default by length.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", help="File for the report as JSON.")] = None,
    html: Annotated[Path | None, typer.Option(help="File for the report as one page, with pictures.")] = None,
    decisions: Annotated[Path | None, typer.Option(help="File for one JSON line a decision.")] = None,
) -> None:
    """Replay policies on a simulated fleet under a recorded load: what users would have got, and what it would cost.

    Example: tokenscaler replay policy.yaml --trace requests.csv --baseline static-peak --json report.json
    """
    from autoscaler.prometheus.settings import QuerySettings
    from autoscaler.replay_command import ReplayRequest, compare_log, replay_policies

    if log is not None:
        if policies or trace is not None or prometheus is not None:
            refuse("replay: --log goes alone: the decisions are in it, and so is what happened")
        raise typer.Exit(compare_log(log, _console()))
    if not policies or (trace is None) == (prometheus is None):
        refuse("replay: give POLICY.yaml and either --trace or --prometheus, or --log FILE alone")
    settings, queries = None, QuerySettings()
    if prometheus is not None:
        settings, queries = _prometheus_settings(prometheus, prometheus_config)
    request = ReplayRequest(
        policies=tuple(policies),
        trace=trace,
        trace_scale=trace_scale,
        fleet=fleet,
        baselines=tuple(baseline or ()),
        tunes_baselines=tune_baselines,
        seed=seed,
        seeds=seeds,
        start_seconds=_moment("--start", start),
        end_seconds=_moment("--end", end),
        prometheus=settings,
        queries=queries,
        json_path=json,
        html_path=html,
        decisions_path=decisions,
        is_policy_only=policy_only,
        policy_step_seconds=policy_step,
    )
    raise typer.Exit(replay_policies(request, _console()))


@app.command()
def tune(
    policy: Annotated[Path, typer.Argument(metavar="POLICY.yaml", help="A file with one InferenceScaler.")],
    trace: Annotated[
        list[str] | None,
        typer.Option(
            help="CSV: timestamp_s,value,input_tokens,output_tokens; or agents:sessions=10000,hours=4 (repeatable)."
        ),
    ] = None,
    prometheus: LoadPrometheus = None,
    prometheus_config: PrometheusConfig = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PARAM=RANGE",
            help="behavior.scaleDown.stabilizationWindowSeconds=60..900, forecast.mode=Off,Active (repeatable).",
        ),
    ] = None,
    objective: Annotated[
        str, typer.Option(help="attainment>=99.5: fewest hours there; or cost:miss=10,hour=1.")
    ] = "attainment>=99.5",
    budget: Annotated[int, typer.Option(min=1, max=10_000, help="So many policies are tried.")] = 64,
    hold_out: Annotated[
        float, typer.Option(min=5, max=80, help="The last percent of each trace, on which the choice is judged.")
    ] = 30.0,
    trace_scale: TraceScale = 1.0,
    fleet: FleetName = None,
    baseline: Baselines = None,
    tune_baselines: Annotated[
        bool, typer.Option("--tune-baselines", help="Search each baseline's own parameters as well, as long.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another search, and other arrivals.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="Every policy is run by so many seeds.")] = 2,
    start: LoadStart = None,
    end: LoadEnd = None,
    jobs: Annotated[int | None, typer.Option(min=1, max=256, help="Processes; default: one a core.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for the policy; default: POLICY.tuned.yaml.")] = None,
    html: Annotated[Path | None, typer.Option(help="File for the picture; default: beside --out.")] = None,
    study: Annotated[
        Path | None, typer.Option(help="File for the runs, to go on from after Ctrl-C; default: beside --out.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", help="File for everything as JSON.")] = None,
) -> None:
    """Search a policy's parameters on replays: fewest missed requests, fewest accelerator-hours, and what is between.

    The last part of each trace is held out, and the choice judged there; where it is no better, the policy is kept.

    Example: tokenscaler tune policy.yaml --trace requests.csv --search signals.tokenRate.perReplicaPerSecond=5k..20k
    """
    from autoscaler.prometheus.settings import QuerySettings
    from autoscaler.replay_command import ReplayRequest
    from autoscaler.tune_command import tune_policy
    from autoscaler.tuning.run_pool import cores
    from autoscaler.tuning.tuning_input import TuneRequest

    if bool(trace) == (prometheus is not None):
        refuse("tune: give either --trace or --prometheus")
    settings, queries = None, QuerySettings()
    if prometheus is not None:
        settings, queries = _prometheus_settings(prometheus, prometheus_config)
    loads = tuple(
        ReplayRequest(
            policies=(policy,),
            trace=each,
            trace_scale=trace_scale,
            fleet=fleet,
            start_seconds=_moment("--start", start),
            end_seconds=_moment("--end", end),
            prometheus=settings,
            queries=queries,
        )
        for each in trace or (None,)
    )
    chosen = out or policy.with_name(f"{policy.stem}.tuned.yaml")
    request = TuneRequest(
        policy=policy,
        loads=loads,
        out=chosen,
        html_path=html or chosen.with_suffix(".html"),
        study=study or chosen.with_suffix(".study"),
        search=tuple(search or ()),
        objective=objective,
        budget=budget,
        hold_out_percent=hold_out,
        baselines=tuple(baseline or ()),
        tunes_baselines=tune_baselines,
        seed=seed,
        seeds=seeds,
        jobs=jobs or cores(),
        json_path=json,
    )
    raise typer.Exit(tune_policy(request, _console()))


@app.command()
def hpa(
    target: Annotated[str, typer.Argument(help="NAMESPACE/NAME of an InferenceScaler in mode ExternalMetric.")],
    file: Annotated[Path | None, typer.Option(help="Read it from this YAML file instead of the cluster.")] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Else the usual kubeconfig.")] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    object_metric: Annotated[
        bool, typer.Option("--object-metric", help="Read the count from custom.metrics.k8s.io instead of external.")
    ] = False,
) -> None:
    """Print the HorizontalPodAutoscaler that follows an InferenceScaler, and adds no delay of its own.

    Example: tokenscaler hpa inference/llama-8b | kubectl apply -f -
    """
    from autoscaler.hpa_command import print_hpa

    raise typer.Exit(print_hpa(target, file, kubeconfig, context, object_metric))


@app.command()
def crd() -> None:
    """Print the custom resource definitions.

    Example: tokenscaler crd | kubectl apply -f -
    """
    from autoscaler.api.custom_resource_definition import render

    typer.echo(render(), nl=False)


@app.command("drain-watcher")
def drain_watcher(
    node: Annotated[str, typer.Option(envvar="TOKENSCALER_NODE", help="Name of the node that this runs on.")],
    drain_file: Annotated[Path, typer.Option(help="Is there while the node drains; readiness probes look for it.")],
    looked_file: Annotated[Path, typer.Option(help="Touched after every look that saw all there is to see.")] = Path(
        "/tmp/looked"
    ),
    metadata_url: Annotated[
        str | None, typer.Option(help="The cloud's instance metadata service, version 2. Default: it is not asked.")
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Else the pod's ServiceAccount.")] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Watch one node for a spot notice or a drain: fail the readiness of its pods, cordon it, let streams finish.

    Example: tokenscaler drain-watcher --node gpu-1 --drain-file /run/tokenscaler/draining
    """
    from autoscaler.drain_watcher.run import run_drain_watcher
    from autoscaler.process_log import configure_process_log

    configure_process_log(log_level)
    raise typer.Exit(run_drain_watcher(node, drain_file, looked_file, metadata_url, kubeconfig))


@doctor_app.command("metrics")
def doctor_metrics(
    page: Annotated[str, typer.Option(help="File or http(s) URL of a /metrics page; - is stdin.")],
    engine: Annotated[str | None, typer.Option(help="Take it for this engine instead of recognizing one.")] = None,
    output: Annotated[Output, typer.Option(help="text or json.")] = Output.TEXT,
) -> None:
    """Say which engine a /metrics page is of and which signals it supplies; exit 1 when too few to scale on.

    Example: tokenscaler doctor metrics --page http://localhost:8000/metrics
    """
    from autoscaler.doctor_command import doctor_metrics_page

    raise typer.Exit(doctor_metrics_page(page, engine, output is Output.JSON, _console()))


@doctor_app.command("external-metrics")
def doctor_external_metrics_groups(
    kubeconfig: Annotated[Path | None, typer.Option(help="Else the usual kubeconfig.")] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    service: Annotated[
        str, typer.Option(help="NAMESPACE/NAME of our own Service.")
    ] = "tokenscaler-system/tokenscaler-metrics",
    output: Annotated[Output, typer.Option(help="text or json.")] = Output.TEXT,
) -> None:
    """Say who serves the metrics API groups of this cluster; exit 1 when another provider or a dead one is in the way.

    Example: tokenscaler doctor external-metrics
    """
    from autoscaler.doctor_external_metrics import doctor_external_metrics

    raise typer.Exit(doctor_external_metrics(kubeconfig, context, service, output is Output.JSON, _console()))


@doctor_app.command("nodepools")
def doctor_nodepools(
    kubeconfig: Annotated[Path | None, typer.Option(help="Else the usual kubeconfig.")] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    service_account: Annotated[
        str, typer.Option(help="NAMESPACE/NAME of the controller's ServiceAccount, whose rights are checked.")
    ] = "tokenscaler-system/tokenscaler",
    quota_cpus: Annotated[
        int | None, typer.Option(min=1, help="vCPU that the cloud account may run of these instances.")
    ] = None,
    ceiling_dollars_per_hour: Annotated[
        str | None, typer.Option(help="What `run` is given as ceiling for all AcceleratorPools together.")
    ] = None,
    output: Annotated[Output, typer.Option(help="text or json.")] = Output.TEXT,
) -> None:
    """Check AcceleratorPools, their NodePools and the pods on them; exit 1 where something is not right.

    Exit 3 where there is nothing to check: no AcceleratorPool, or no Karpenter.

    Example: tokenscaler doctor nodepools --quota-cpus 6144
    """
    from autoscaler.doctor_node_pools import Asked, doctor_node_pools

    asked = Asked(service_account, quota_cpus, ceiling_dollars_per_hour)
    raise typer.Exit(doctor_node_pools(kubeconfig, context, asked, output is Output.JSON, _console()))
