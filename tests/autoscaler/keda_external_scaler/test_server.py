"""A real gRPC client, as KEDA has one, on the real server over loopback TLS."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest
from google.protobuf import descriptor_pb2

from autoscaler.clock import ManualClock
from autoscaler.external_metrics.values import MAXIMUM_AGE_SECONDS, NotKnownYet, PoolMetrics
from autoscaler.keda_external_scaler import external_scaler_pb2 as wire
from autoscaler.keda_external_scaler.server import CertificateFiles, ExternalScalerServer
from autoscaler.keda_external_scaler.service import look_up_in
from tests.builders import NOW
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.keda_client import KedaClient
from tests.fakes.metric_pools import FakePools, a_pool

PROTO = Path(wire.__file__).with_name("external_scaler.proto")
POOL = a_pool(
    metrics={"waiting-requests": "12500m", "running-requests": "0", "kv-cache-usage": None}, decided_seconds_ago=0.0
)


@dataclass(frozen=True)
class Certificates:
    """Files of the server, and the authority of both sides."""

    authority: CertificateAuthority
    folder: Path

    @property
    def files(self) -> CertificateFiles:
        return CertificateFiles(self.folder)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    authority = CertificateAuthority()
    authority.issue("tokenscaler", tmp_path / "tls")
    authority.issue("keda-operator", tmp_path / "client")
    (tmp_path / "ca.crt").write_text(authority.certificate_text)
    return Certificates(authority, tmp_path)


@dataclass
class Running:
    """The server, and what it knows."""

    server: ExternalScalerServer
    source: FakePools
    clock: ManualClock
    certificates: Certificates

    @contextmanager
    def scaler(self, client: str | None = "client") -> Iterator[KedaClient]:
        folder = self.certificates.folder
        files = (folder / f"{client}.key", folder / f"{client}.crt")
        pair = (files[0].read_bytes(), files[1].read_bytes()) if client is not None else None
        scaler = KedaClient(self.server.port, self.certificates.authority.certificate_text, pair)
        with scaler.channel:
            yield scaler


@pytest.fixture
def running(certificates: Certificates) -> Iterator[Running]:
    source, clock = FakePools(POOL), ManualClock(NOW)
    server = ExternalScalerServer(look_up_in(source, clock), "127.0.0.1", 0, certificates.files, look_seconds=0.01)
    server.start()
    yield Running(server, source, clock, certificates)
    server.stop()


def test_the_count_is_served_as_a_metric_of_one_a_replica(running: Running) -> None:
    with running.scaler() as keda:
        assert keda.specs() == [("tokenscaler-desired-replicas", 1, 1.0)]
        assert keda.values("tokenscaler-desired-replicas") == [("tokenscaler-desired-replicas", 7, 7.0)]
        assert keda.is_active()


def test_a_signal_is_served_with_the_share_that_the_trigger_gives(running: Running) -> None:
    with running.scaler() as keda:
        waiting = {"metric": "waiting-requests", "threshold": "2.5", "activationThreshold": "12.5"}

        assert keda.specs(**waiting) == [("waiting-requests", 3, 2.5)]
        assert keda.values("waiting-requests", **waiting) == [("waiting-requests", 13, 12.5)]
        assert not keda.is_active(**waiting)  # above is strict
        assert keda.is_active(**waiting | {"activationThreshold": "12.4"})


def test_a_true_zero_is_zero(running: Running) -> None:
    with running.scaler() as keda:
        running_requests = {"metric": "running-requests", "threshold": "8"}

        assert keda.values(**running_requests) == [("running-requests", 0, 0.0)]
        assert not keda.is_active(**running_requests)


@pytest.mark.parametrize(
    ("metadata", "code", "message"),
    [
        pytest.param(
            {"metric": "kv-cache-usage", "threshold": "0.5"}, "UNAVAILABLE", "it is too dark", id="an unknown value"
        ),
        pytest.param({"name": "mistral"}, "NOT_FOUND", "no InferenceScaler", id="a pool that is not there"),
        pytest.param({"namespace": "other"}, "NOT_FOUND", "namespace other", id="a pool of another namespace"),
        pytest.param({"metric": "load", "threshold": "1"}, "NOT_FOUND", "there is no metric load", id="no such metric"),
        pytest.param({"threshold": "2"}, "INVALID_ARGUMENT", "can only be 1", id="a trigger that means nothing"),
    ],
)
def test_what_is_not_known_is_an_error_and_never_zero(
    running: Running, metadata: dict[str, str], code: str, message: str
) -> None:
    with running.scaler() as keda:
        for call in (keda.values, keda.is_active):
            with pytest.raises(grpc.RpcError) as refusal:
                call(**metadata)

            assert refusal.value.code().name == code
            assert message in refusal.value.details()


def test_an_old_decision_is_an_error(running: Running) -> None:
    running.clock.advance(MAXIMUM_AGE_SECONDS + 2)

    with running.scaler() as keda, pytest.raises(grpc.RpcError) as refusal:
        keda.values()

    assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE


def test_the_spec_does_not_hang_on_a_value(running: Running) -> None:
    running.source.not_known_yet = NotKnownYet("the InferenceScalers have not been read yet")

    with running.scaler() as keda:
        assert keda.specs() == [("tokenscaler-desired-replicas", 1, 1.0)]


def test_another_metric_than_the_triggers_is_refused(running: Running) -> None:
    with running.scaler() as keda, pytest.raises(grpc.RpcError) as refusal:
        keda.values("waiting-requests")

    assert refusal.value.code() is grpc.StatusCode.NOT_FOUND


def test_activity_is_pushed_when_it_changes_and_held_while_unknown(running: Running) -> None:
    with running.scaler() as keda:
        stream = keda.stream()

        assert next(stream).result is True
        running.source.not_known_yet = NotKnownYet("the watch has been lost")
        running.source.pools = [with_count("3")]
        running.source.not_known_yet = None
        running.source.pools = [with_count(None)]
        running.source.pools = [with_count("0")]
        assert next(stream).result is False
        running.source.pools = [with_count("2")]
        assert next(stream).result is True
        running.source.pools = []
        with pytest.raises(grpc.RpcError) as gone:
            next(stream)
        assert gone.value.code() is grpc.StatusCode.NOT_FOUND


def with_count(count: str | None) -> PoolMetrics:
    return a_pool(metrics={"tokenscaler-desired-replicas": count})


def test_what_newer_versions_of_keda_try_is_not_implemented(running: Running) -> None:
    with running.scaler() as keda, pytest.raises(grpc.RpcError) as refusal:
        keda.call("StreamMetricSpec", wire.ScaledObjectRef(), wire.GetMetricSpecResponse)

    assert refusal.value.code() is grpc.StatusCode.UNIMPLEMENTED  # upon which KEDA goes on without it


def test_a_stop_ends_the_streams_without_an_error(running: Running) -> None:
    with running.scaler() as keda:
        stream = keda.stream()
        assert next(stream).result is True

        running.server.stop()

        assert list(stream) == []
        assert stream.code() is grpc.StatusCode.OK


@pytest.mark.parametrize(
    "client", [pytest.param(None, id="no certificate"), pytest.param("stranger", id="a foreign one")]
)
def test_who_has_no_certificate_of_the_authority_does_not_get_through(running: Running, client: str | None) -> None:
    CertificateAuthority().issue("stranger", running.certificates.folder / "stranger")

    with running.scaler(client) as keda, pytest.raises(grpc.RpcError) as refusal:
        keda.is_active()

    assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE


def test_a_renewed_certificate_is_taken_up_and_running_streams_stay(running: Running) -> None:
    folder = running.certificates.folder
    with running.scaler() as keda:
        stream = keda.stream()
        assert next(stream).result is True
        renewed = CertificateAuthority()
        renewed.issue("tokenscaler", folder / "tls")
        renewed.issue("keda-operator", folder / "client")
        (folder / "ca.crt").write_text(renewed.certificate_text)

        with replace(running, certificates=Certificates(renewed, folder)).scaler() as later:
            assert later.is_active()
        running.source.pools = [with_count("0")]
        assert next(stream).result is False


def test_a_certificate_that_cannot_be_read_leaves_the_old_one(running: Running) -> None:
    (running.certificates.folder / "tls.key").unlink()

    with running.scaler() as keda:
        assert keda.is_active()


def test_a_taken_port_and_a_missing_file_are_said_at_the_start(running: Running, tmp_path: Path) -> None:
    look_up = look_up_in(running.source, running.clock)
    taken = ExternalScalerServer(look_up, "127.0.0.1", running.server.port, running.certificates.files)
    missing = CertificateFiles(tmp_path / "none")

    with pytest.raises(OSError, match="is the port taken"):
        taken.start()
    with pytest.raises(FileNotFoundError):
        ExternalScalerServer(look_up, "127.0.0.1", 0, missing).start()


def test_the_generated_module_is_that_of_the_contract(tmp_path: Path) -> None:
    shutil.copy(PROTO, tmp_path)
    compiler = [sys.executable, "-m", "grpc_tools.protoc", "-I.", "--descriptor_set_out=set", PROTO.name]
    subprocess.run(compiler, cwd=tmp_path, check=True)
    compiled = descriptor_pb2.FileDescriptorSet.FromString((tmp_path / "set").read_bytes()).file[0]
    generated = descriptor_pb2.FileDescriptorProto.FromString(wire.DESCRIPTOR.serialized_pb)
    for message in compiled.message_type:
        for field in [*message.field, *(each for nested in message.nested_type for each in nested.field)]:
            field.ClearField("json_name")

    assert generated == compiled
