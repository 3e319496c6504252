"""Every operator of a label selector, and what is refused."""

from __future__ import annotations

import pytest

from autoscaler.external_metrics.selector import BadSelector, Selector, parse_selector

LABELS = {"scaler": "llama", "engine": "vllm", "tier": "", "zone": "7", "example.com/team": "search"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        pytest.param("", True, id="nothing selects everything"),
        pytest.param("  ", True, id="blanks are nothing"),
        pytest.param("scaler=llama", True, id="equal"),
        pytest.param("scaler==llama", True, id="equal, written twice"),
        pytest.param(" scaler = llama , engine = vllm ", True, id="blanks around everything"),
        pytest.param("scaler=other", False, id="another value"),
        pytest.param("tier=", True, id="an empty value"),
        pytest.param("absent=", False, id="an absent label has no empty value"),
        pytest.param("scaler!=other", True, id="not equal"),
        pytest.param("scaler!=llama", False, id="not equal to what it is"),
        pytest.param("absent!=x", True, id="an absent label is not equal to anything"),
        pytest.param("scaler in (a,llama)", True, id="in"),
        pytest.param("scaler in(a, b)", False, id="in, without the value"),
        pytest.param("tier in (a,)", True, id="a list may hold the empty value"),
        pytest.param("scaler notin (a,b)", True, id="notin"),
        pytest.param("scaler notin (llama)", False, id="notin, with the value"),
        pytest.param("absent notin (a)", True, id="an absent label is in no list"),
        pytest.param("scaler", True, id="exists"),
        pytest.param("absent", False, id="exists, of an absent label"),
        pytest.param("!absent", True, id="does not exist"),
        pytest.param("!scaler", False, id="does not exist, of a label that does"),
        pytest.param("zone>6", True, id="above"),
        pytest.param("zone>7", False, id="above is strict"),
        pytest.param("zone<8", True, id="below"),
        pytest.param("scaler>1", False, id="a label that is no number is above nothing"),
        pytest.param("absent<1", False, id="an absent label is below nothing"),
        pytest.param("example.com/team=search", True, id="a label with a domain"),
        pytest.param("scaler=llama,engine=sglang", False, id="all conditions must hold"),
        pytest.param("in in (in)", False, id="a label may be called in"),
    ],
)
def test_selects(text: str, matches: bool) -> None:
    selector = parse_selector(text)
    assert isinstance(selector, Selector), selector
    assert selector.matches(LABELS) is matches


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("scaler=llama,", id="nothing after a comma"),
        pytest.param(",", id="only a comma"),
        pytest.param("=llama", id="no label"),
        pytest.param("scaler in", id="in without a list"),
        pytest.param("scaler in (a", id="an open list"),
        pytest.param("scaler=a=b", id="two values"),
        pytest.param("scaler = a b", id="two words"),
        pytest.param("scaler>much", id="above what is no number"),
        pytest.param("-scaler=a", id="a label that begins with a dash"),
        pytest.param("scaler=-a", id="a value that begins with a dash"),
        pytest.param("scaler=" + "a" * 64, id="a value that is too long"),
        pytest.param("Example.com/x=a", id="a domain with capitals"),
        pytest.param("a/b/c=d", id="two slashes"),
        pytest.param("scaler=ä", id="a letter beyond ASCII"),
        pytest.param("a" * 4097, id="far too long"),
        pytest.param("!", id="only an exclamation mark"),
        pytest.param("!scaler=a", id="absent and equal"),
    ],
)
def test_refuses(text: str) -> None:
    refused = parse_selector(text)
    assert isinstance(refused, BadSelector)
    assert refused.problem


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        pytest.param("scaler=llama", True, id="that of an HPA, which sends it every 15 seconds"),
        pytest.param("scaler in (" + "a," * 500 + "a)", False, id="a long one, of which many would fill the memory"),
    ],
)
def test_what_has_been_read_is_kept(text: str, is_kept: bool) -> None:
    assert parse_selector(text) == parse_selector(text)
    assert (parse_selector(text) is parse_selector(text)) is is_kept
