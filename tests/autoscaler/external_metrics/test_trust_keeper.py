"""What changes in the cluster is taken up, and what cannot be read stays as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autoscaler.external_metrics.front_proxy import FrontProxyTrust, NoTrust, trust_of_config_map
from autoscaler.external_metrics.serving_certificate import new_material
from autoscaler.external_metrics.tls import RenewedContext, ServingPair
from autoscaler.external_metrics.trust_keeper import TrustKeeper
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, Forbidden, Unreachable
from tests.builders import NOW
from tests.fakes.client_certificates import ClientAuthority

NAMES = ("tokenscaler-metrics.tokenscaler-system.svc",)
AUTHORITY = ClientAuthority()
ANOTHER = ClientAuthority()


def a_config_map(authority: ClientAuthority = AUTHORITY, **data: Any) -> dict[str, Any]:
    """The ConfigMap as kube-apiserver writes it; a value of None leaves the key out."""
    texts = {
        "client-ca-file": "not looked at",
        "requestheader-client-ca-file": authority.pem,
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        **data,
    }
    return {"data": {key: text for key, text in texts.items() if text is not None}}


def test_the_config_map_says_whose_word_counts() -> None:
    assert trust_of_config_map(a_config_map()) == FrontProxyTrust(
        authority_pem=AUTHORITY.pem,
        allowed_names=("front-proxy-client",),
        username_headers=("X-Remote-User",),
        uid_headers=("X-Remote-Uid",),
        group_headers=("X-Remote-Group",),
        extra_header_prefixes=("X-Remote-Extra-",),
    )


@pytest.mark.parametrize(
    ("config_map", "problem"),
    [
        pytest.param({}, "names no requestheader-client-ca-file", id="an empty one"),
        pytest.param(
            a_config_map(**{"requestheader-client-ca-file": None}), "names no requestheader", id="no front proxy"
        ),
        pytest.param(a_config_map(**{"requestheader-allowed-names": "x"}), "kube-system/extension", id="no JSON"),
        pytest.param(a_config_map(**{"requestheader-allowed-names": '"x"'}), "no list of texts", id="no list"),
        pytest.param(
            a_config_map(**{"requestheader-allowed-names": "[1]"}), "no list of texts", id="a list of numbers"
        ),
    ],
)
def test_a_config_map_that_says_nothing_gives_no_trust(config_map: dict[str, Any], problem: str) -> None:
    found = trust_of_config_map(config_map)
    assert isinstance(found, NoTrust)
    assert problem in found.problem


def test_older_clusters_have_no_header_for_uids() -> None:
    trust = trust_of_config_map(a_config_map(**{"requestheader-uid-headers": None}))
    assert isinstance(trust, FrontProxyTrust)
    assert trust.uid_headers == ()


def test_a_caller_is_read_from_the_named_headers_alone() -> None:
    trust = trust_of_config_map(
        a_config_map(**{"requestheader-username-headers": json.dumps(["X-User", "X-Remote-User"])})
    )
    assert isinstance(trust, FrontProxyTrust)
    headers = [
        (b"x-remote-user", b"hpa"),
        (b"x-remote-uid", b"17"),
        (b"x-remote-group", b"a"),
        (b"x-remote-group", "Gäste".encode()),
        (b"x-remote-extra-scopes", b"one"),
        (b"x-remote-extra-scopes", b"two"),
        (b"x-remote-extra-a%2fb", b"three"),
        (b"x-other-group", b"c"),
    ]
    caller = trust.caller(headers)
    assert caller is not None
    assert (caller.name, caller.uid, caller.groups) == ("hpa", "17", ("a", "Gäste"))
    assert caller.extra == {"scopes": ("one", "two"), "a/b": ("three",)}
    assert trust.caller(headers[1:]) is None


class Kept:
    """A keeper on a fake cluster and a fake source of certificates."""

    def __init__(self) -> None:
        self.config_map: dict[str, Any] | ApiFailure = a_config_map()
        self.pair: ServingPair | str = new_material(NAMES, NOW).pair
        self.times_begun_anew = 0
        self.context = RenewedContext(new_material(NAMES, NOW).pair)
        self.keeper = TrustKeeper(self, self, self.context, self._begin_anew)  # type: ignore[arg-type]

    def get(self, path: str) -> dict[str, Any] | ApiFailure:
        assert path == "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        return self.config_map

    def newest(self) -> ServingPair | str:
        return self.pair

    def _begin_anew(self) -> None:
        self.times_begun_anew += 1


def trusted(keeper: TrustKeeper) -> str | None:
    return keeper.trust.authority_pem if isinstance(keeper.trust, FrontProxyTrust) else None


def test_nothing_is_ready_before_the_first_look() -> None:
    kept = Kept()
    assert "has not been read yet" in str(kept.keeper.not_ready_because())
    kept.keeper.look()
    assert kept.keeper.not_ready_because() is None
    assert trusted(kept.keeper) == AUTHORITY.pem


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param({"pair": "the leader makes it"}, "the leader makes it", id="no certificate"),
        pytest.param({"pair": ServingPair("x", "y")}, "cannot be served with", id="a bad certificate"),
        pytest.param({"config_map": Forbidden("get", "/cm", "no RBAC")}, "no RBAC", id="no right to the ConfigMap"),
        pytest.param({"config_map": {}}, "names no requestheader-client-ca-file", id="no front proxy"),
    ],
)
def test_what_is_missing_is_said(spoil: dict[str, Any], said: str) -> None:
    kept = Kept()
    vars(kept).update(spoil)
    kept.keeper.look()
    assert said in str(kept.keeper.not_ready_because())


def test_other_names_count_at_the_next_look_and_end_no_connection() -> None:
    kept = Kept()
    kept.keeper.look()
    kept.config_map = a_config_map(**{"requestheader-allowed-names": '["another-proxy"]'})
    kept.keeper.look()
    assert isinstance(kept.keeper.trust, FrontProxyTrust)
    assert kept.keeper.trust.allowed_names == ("another-proxy",)
    assert kept.times_begun_anew == 0


def test_another_authority_ends_the_connections_that_the_old_one_had_judged() -> None:
    kept = Kept()
    kept.keeper.look()
    assert kept.times_begun_anew == 0
    kept.config_map = a_config_map(ANOTHER)
    kept.keeper.look()
    kept.keeper.look()
    assert trusted(kept.keeper) == ANOTHER.pem
    assert kept.times_begun_anew == 1


@pytest.mark.parametrize(
    ("config_map", "trust"),
    [
        pytest.param(Unreachable("get", "/cm", "no route"), AUTHORITY.pem, id="the API server is away"),
        pytest.param(Forbidden("get", "/cm", "no RBAC"), AUTHORITY.pem, id="the right was taken away"),
        pytest.param(a_config_map(**{"requestheader-client-ca-file": "x"}), AUTHORITY.pem, id="a broken authority"),
        pytest.param({}, None, id="a front proxy that was given up is trusted no more"),
    ],
)
def test_what_cannot_be_read_stays_as_it_was(config_map: Any, trust: str | None) -> None:
    kept = Kept()
    kept.keeper.look()
    kept.config_map = config_map
    kept.keeper.look()
    assert trusted(kept.keeper) == trust


def test_a_certificate_that_cannot_be_read_any_more_is_served_on() -> None:
    kept = Kept()
    kept.keeper.look()
    kept.pair = "cannot read /certificate/tls.crt"
    kept.keeper.look()
    assert kept.keeper.not_ready_because() is None


def test_the_thread_looks_by_itself() -> None:
    kept = Kept()
    kept.keeper.start()
    kept.keeper.stop()
    assert kept.keeper.not_ready_because() is None
