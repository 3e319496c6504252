"""What may the controller be told on its command line?"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from autoscaler.command_line.shared_options import PrometheusConfig
from autoscaler.command_line.terminal import refuse


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
