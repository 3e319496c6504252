"""Our own serving certificate: made, renewed, kept in a Secret, and made known."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest
from cryptography import x509

from autoscaler.clock import ManualClock
from autoscaler.external_metrics.certificate_source import CertificateFiles, OwnCertificate
from autoscaler.external_metrics.serving_certificate import (
    Due,
    ServingMaterial,
    bundle_with,
    due,
    material_of_secret,
    new_material,
    secret_document,
    with_new_certificate,
)
from autoscaler.external_metrics.settings import MetricsApiSettings
from autoscaler.external_metrics.tls import ServingPair
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, Conflict, Forbidden, NotFound, Unreachable
from tests.builders import NOW

SETTINGS = MetricsApiSettings(host="127.0.0.1", port=0, service_namespace="tokenscaler-system")
DAY = 86_400.0
API_SERVICE = "v1beta1.external.metrics.k8s.io"
API_SERVICE_PATH = f"/apis/apiregistration.k8s.io/v1/apiservices/{API_SERVICE}"
SECRETS_PATH = "/api/v1/namespaces/tokenscaler-system/secrets"
SECRET_PATH = f"{SECRETS_PATH}/tokenscaler-metrics-certificate"


def certificate(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())


def test_the_certificate_is_for_the_service_and_signed_by_its_authority() -> None:
    material = new_material(SETTINGS.names, NOW)
    served = certificate(material.pair.certificate_pem)
    names = served.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "tokenscaler-metrics.tokenscaler-system.svc",
        "tokenscaler-metrics.tokenscaler-system.svc.cluster.local",
    ]
    served.verify_directly_issued_by(certificate(material.authority_pem))


@pytest.mark.parametrize(
    ("days_later", "names", "what"),
    [
        pytest.param(0, SETTINGS.names, Due.NOTHING, id="new"),
        pytest.param(59, SETTINGS.names, Due.NOTHING, id="with a month and more to go"),
        pytest.param(61, SETTINGS.names, Due.CERTIFICATE, id="with less than a month to go"),
        pytest.param(400, SETTINGS.names, Due.CERTIFICATE, id="that has ended"),
        pytest.param(3300, SETTINGS.names, Due.AUTHORITY, id="whose authority has less than a year to go"),
        pytest.param(-1, SETTINGS.names, Due.AUTHORITY, id="made by a clock that was a day ahead"),
        pytest.param(-1 / 48, SETTINGS.names, Due.NOTHING, id="made by a clock that was half an hour ahead"),
        pytest.param(0, ("other.ns.svc",), Due.CERTIFICATE, id="for another name"),
        pytest.param(0, SETTINGS.names[:1], Due.NOTHING, id="for more names than are needed"),
    ],
)
def test_when_it_is_due(days_later: float, names: tuple[str, ...], what: Due) -> None:
    assert due(new_material(SETTINGS.names, NOW), names, NOW + days_later * DAY) is what


def test_a_certificate_that_a_clock_ahead_has_renewed_is_due_again() -> None:
    renewed = with_new_certificate(new_material(SETTINGS.names, NOW), SETTINGS.names, NOW + DAY)
    assert due(renewed, SETTINGS.names, NOW) is Due.CERTIFICATE


def test_a_renewed_certificate_has_the_same_authority_and_another_key() -> None:
    material = new_material(SETTINGS.names, NOW)
    renewed = with_new_certificate(material, SETTINGS.names, NOW + 61 * DAY)
    assert renewed.authority_pem == material.authority_pem
    assert renewed.pair.key_pem != material.pair.key_pem
    certificate(renewed.pair.certificate_pem).verify_directly_issued_by(certificate(material.authority_pem))
    assert due(renewed, SETTINGS.names, NOW + 61 * DAY) is Due.NOTHING


def test_the_secret_gives_back_what_was_put_into_it() -> None:
    material = new_material(SETTINGS.names, NOW)
    document = secret_document("ns", "name", material)
    assert document["type"] == "kubernetes.io/tls"
    assert material_of_secret(document) == material


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda data: data.clear(), id="nothing"),
        pytest.param(lambda data: data.pop("ca.key"), id="no key of the authority"),
        pytest.param(lambda data: data.update({"tls.crt": "%%%"}), id="no base64"),
        pytest.param(lambda data: data.update({"ca.crt": base64.b64encode(b"x").decode()}), id="no PEM"),
        pytest.param(lambda data: data.update({"tls.crt": data["ca.crt"]}), id="a certificate without names"),
    ],
)
def test_a_secret_that_is_not_right_holds_nothing(spoil: Any) -> None:
    document = secret_document("ns", "name", new_material(SETTINGS.names, NOW))
    spoil(document["data"])
    assert material_of_secret(document) is None


def bundled(bundle: str) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(base64.b64decode(bundle))


def test_a_bundle_keeps_the_authorities_of_before_that_have_not_ended() -> None:
    oldest, older, newer, newest = (new_material(SETTINGS.names, NOW + at).authority_pem for at in range(4))
    ended = new_material(SETTINGS.names, NOW - 5000 * DAY).authority_pem
    bundle = ""
    for authority in (oldest, ended, older, newer):
        bundle = bundle_with(authority, bundle, NOW)
    assert bundled(bundle) == [certificate(each) for each in (newer, older, oldest)]
    assert bundled(bundle_with(newest, bundle, NOW)) == [certificate(each) for each in (newest, newer, older)]
    assert bundle_with(newer, bundle, NOW) == bundle


@pytest.mark.parametrize("present", ["", "%%%", base64.b64encode(b"nonsense").decode()])
def test_a_bundle_begins_anew_where_there_was_none(present: str) -> None:
    authority = new_material(SETTINGS.names, NOW).authority_pem
    assert bundled(bundle_with(authority, present, NOW)) == [certificate(authority)]


class FakeCluster:
    """The Secret and the APIService of a cluster; `refuses` maps a verb to the failure it meets."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any]] = {}
        self.refuses: dict[str, ApiFailure] = {}
        self.writes: list[str] = []

    def install_api_service(self, name: str = "tokenscaler-metrics", **spec: Any) -> None:
        service = {"namespace": "tokenscaler-system", "name": name}
        self.documents[API_SERVICE_PATH] = {"spec": {"service": service, **spec}}

    @property
    def bundle(self) -> list[x509.Certificate]:
        return bundled(self.documents[API_SERVICE_PATH]["spec"]["caBundle"])

    @property
    def material(self) -> ServingMaterial | None:
        return material_of_secret(self.documents[SECRET_PATH])

    def get(self, path: str) -> dict[str, Any] | ApiFailure:
        if "get" in self.refuses:
            return self.refuses["get"]
        found = self.documents.get(path)
        return NotFound("get", path, "not found") if found is None else copy.deepcopy(found)

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any] | ApiFailure:
        self.writes.append("create secret")
        if "create" in self.refuses:
            return self.refuses["create"]
        body["metadata"]["resourceVersion"] = "1"
        self.documents[f"{path}/{body['metadata']['name']}"] = copy.deepcopy(body)
        return body

    def update(self, path: str, body: dict[str, Any]) -> dict[str, Any] | ApiFailure:
        self.writes.append("update secret")
        if "update" in self.refuses:
            return self.refuses["update"]
        assert body["metadata"]["resourceVersion"] == self.documents[path]["metadata"]["resourceVersion"]
        self.documents[path] = copy.deepcopy(body)
        return body

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any] | ApiFailure:
        self.writes.append("patch bundle")
        if "patch" in self.refuses:
            return self.refuses["patch"]
        self.documents[path]["spec"] |= body["spec"]
        return self.documents[path]


class Keeper:
    """One replica that keeps the certificate."""

    def __init__(self, cluster: FakeCluster, leads: bool = True, clock: ManualClock | None = None) -> None:
        self.leads = leads
        self.clock = clock or ManualClock(NOW)
        self.source = OwnCertificate(cluster, SETTINGS, lambda: self.leads, self.clock, (API_SERVICE,))

    def newest(self) -> ServingPair | str:
        return self.source.newest()

    def settled(self) -> ServingPair:
        """The pair after as many looks as it takes to make a new authority known."""
        for _ in range(2):
            pair = self.source.newest()
        assert isinstance(pair, ServingPair), pair
        return pair


@pytest.fixture
def cluster() -> FakeCluster:
    fake = FakeCluster()
    fake.install_api_service()
    return fake


def test_the_leader_makes_the_authority_known_before_it_serves_by_it(cluster: FakeCluster) -> None:
    leader = Keeper(cluster)
    assert leader.newest() == "the authority of a new certificate is being made known"
    assert cluster.writes == ["patch bundle"]
    pair = leader.newest()
    assert cluster.writes == ["patch bundle", "create secret"]
    assert cluster.material is not None
    assert cluster.material.pair == pair
    assert cluster.bundle == [certificate(cluster.material.authority_pem)]


def test_a_follower_serves_what_the_leader_has_made_and_writes_nothing(cluster: FakeCluster) -> None:
    follower = Keeper(cluster, leads=False)
    assert "the leader makes it" in str(follower.newest())
    pair = Keeper(cluster).settled()
    cluster.writes.clear()
    assert follower.newest() == pair
    assert cluster.writes == []


def test_what_is_right_is_not_written_again(cluster: FakeCluster) -> None:
    leader = Keeper(cluster)
    pair = leader.settled()
    cluster.writes.clear()
    assert leader.newest() == pair
    assert Keeper(cluster).newest() == pair
    assert cluster.writes == []


def test_a_renewal_changes_the_secret_alone(cluster: FakeCluster) -> None:
    leader = Keeper(cluster)
    first = leader.settled()
    leader.clock.advance(61 * DAY)
    cluster.writes.clear()
    second = leader.newest()
    assert first != second
    assert cluster.writes == ["update secret"]
    assert cluster.material is not None
    assert cluster.material.pair == second


def test_a_lost_secret_is_made_anew_and_both_authorities_are_known(cluster: FakeCluster) -> None:
    leader = Keeper(cluster)
    leader.settled()
    before = cluster.bundle
    leader.clock.advance(1.0)
    del cluster.documents[SECRET_PATH]
    leader.settled()
    assert cluster.material is not None
    assert cluster.bundle == [certificate(cluster.material.authority_pem), *before]


def test_a_secret_of_somebody_else_is_left_alone_and_said(cluster: FakeCluster) -> None:
    theirs = {"metadata": {"resourceVersion": "7"}, "type": "kubernetes.io/tls", "data": {"tls.crt": "eA=="}}
    cluster.documents[SECRET_PATH] = copy.deepcopy(theirs)
    for leads in (True, False):
        said = Keeper(cluster, leads).newest()
        assert isinstance(said, str)
        assert "is somebody else's" in said
    assert cluster.documents[SECRET_PATH] == theirs
    assert cluster.writes == []


def test_a_bundle_that_somebody_has_emptied_is_written_again(cluster: FakeCluster) -> None:
    leader = Keeper(cluster)
    leader.settled()
    cluster.install_api_service()
    leader.settled()
    assert cluster.material is not None
    assert cluster.bundle == [certificate(cluster.material.authority_pem)]


@pytest.mark.parametrize(
    "install",
    [
        pytest.param(lambda cluster: cluster.install_api_service(name="keda-metrics-apiserver"), id="somebody else's"),
        pytest.param(
            lambda cluster: cluster.install_api_service(insecureSkipTLSVerify=True), id="one that is not verified"
        ),
        pytest.param(lambda cluster: cluster.documents.pop(API_SERVICE_PATH), id="none"),
    ],
)
def test_an_api_service_that_is_not_ours_to_write_is_left_alone(cluster: FakeCluster, install: Any) -> None:
    install(cluster)
    before = copy.deepcopy(cluster.documents)
    assert isinstance(Keeper(cluster).newest(), ServingPair)
    assert cluster.writes == ["create secret"]
    assert {path: document for path, document in cluster.documents.items() if path != SECRET_PATH} == before


@pytest.mark.parametrize(
    ("verb", "failure"),
    [
        pytest.param("get", Unreachable("get", SECRET_PATH, "no route"), id="the API server is away"),
        pytest.param("patch", Forbidden("patch", API_SERVICE_PATH, "no RBAC policy matched"), id="no right to patch"),
        pytest.param("create", Forbidden("create", SECRETS_PATH, "no RBAC policy matched"), id="no right to create"),
    ],
)
def test_what_cannot_be_done_is_said(cluster: FakeCluster, verb: str, failure: ApiFailure) -> None:
    cluster.refuses[verb] = failure
    leader = Keeper(cluster)
    leader.newest()
    assert leader.newest() == failure.message
    assert SECRET_PATH not in cluster.documents


def test_a_new_authority_is_not_served_before_it_has_been_known_for_a_look(cluster: FakeCluster) -> None:
    leader = Keeper(cluster)
    first = leader.settled()
    leader.clock.advance(3300 * DAY)
    cluster.writes.clear()
    assert leader.newest() == first
    assert (cluster.writes, len(cluster.bundle)) == (["patch bundle"], 2)
    second = leader.newest()
    assert second != first
    assert cluster.writes == ["patch bundle", "update secret"]
    assert len(cluster.bundle) == 2


def test_what_is_served_stays_known_however_often_the_leader_changes_while_it_is_renewed(cluster: FakeCluster) -> None:
    first = Keeper(cluster).settled()
    served = cluster.material
    assert served is not None
    for days in range(3300, 3310):
        assert Keeper(cluster, clock=ManualClock(NOW + days * DAY)).newest() == first
        assert certificate(served.authority_pem) in cluster.bundle


@pytest.mark.parametrize("verb", ["patch", "update"])
def test_a_renewal_that_fails_leaves_the_old_one_served(cluster: FakeCluster, verb: str) -> None:
    leader = Keeper(cluster)
    first = leader.settled()
    leader.clock.advance(3300 * DAY)
    cluster.refuses[verb] = Conflict(verb, SECRET_PATH, "it has changed")
    assert [leader.newest(), leader.newest()] == [first, first]
    assert cluster.material is not None
    assert cluster.material.pair == first


def test_files_are_served_as_they_are(tmp_path: Any) -> None:
    files = CertificateFiles(tmp_path)
    assert f"cannot read {tmp_path}/tls.crt: No such file or directory" == files.newest()
    pair = new_material(SETTINGS.names, NOW).pair
    (tmp_path / "tls.crt").write_text(pair.certificate_pem)
    (tmp_path / "tls.key").write_text(pair.key_pem)
    assert files.newest() == pair
    (tmp_path / "tls.key").write_bytes(b"\xff")
    assert "not PEM" in str(files.newest())
