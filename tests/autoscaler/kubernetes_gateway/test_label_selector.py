from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kubernetes_gateway.label_selector import selector_from_object, selector_from_text

LABELS = {"app": "llama", "tier": "gpu"}


@pytest.mark.parametrize(
    ("text", "is_match"),
    [
        pytest.param("app=llama", True, id="an equal label"),
        pytest.param("app==llama,tier=gpu", True, id="two equal labels"),
        pytest.param("app=llama,tier=cpu", False, id="one label differs"),
        pytest.param("app!=llama", False, id="a value ruled out"),
        pytest.param("zone!=a", True, id="an absent label is not that value"),
        pytest.param("app in (llama, mistral),tier notin (cpu)", True, id="sets"),
        pytest.param("app", True, id="the label is there"),
        pytest.param("!zone", True, id="the label is not there"),
        pytest.param("!app", False, id="the label should not be there"),
    ],
)
def test_a_selector_as_text(text: str, is_match: bool) -> None:
    selector = selector_from_text(text)
    assert selector is not None
    assert selector.matches(LABELS) is is_match


@pytest.mark.parametrize("text", ["", "a b", "a in b", ",", "a=b=c"])
def test_text_that_is_no_selector(text: str) -> None:
    assert selector_from_text(text) is None


@pytest.mark.parametrize(
    ("document", "is_match"),
    [
        pytest.param({"matchLabels": {"app": "llama"}}, True, id="equal labels"),
        pytest.param({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gpu"]}]}, True, id="a set"),
        pytest.param(
            {"matchLabels": {"app": "llama"}, "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
            False,
            id="both must hold",
        ),
    ],
)
def test_a_selector_as_object(document: Any, is_match: bool) -> None:
    selector = selector_from_object(document)
    assert selector is not None
    assert selector.matches(LABELS) is is_match


@pytest.mark.parametrize("document", [None, {}, {"matchLabels": {}}, {"matchExpressions": [{"operator": "Near"}]}])
def test_an_object_that_selects_nothing_in_particular(document: Any) -> None:
    assert selector_from_object(document) is None


def test_the_labels_an_index_can_be_asked_for() -> None:
    selector = selector_from_text("app=llama,tier in (gpu,tpu),zone in (a)")
    assert selector is not None
    assert selector.equalities == (("app", "llama"), ("zone", "a"))
