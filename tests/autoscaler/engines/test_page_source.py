from __future__ import annotations

from pathlib import Path

import pytest

from autoscaler.engines.page_source import PageUnavailable, read_page
from tests.servers.page_exporter import Page, PageExporter


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        pytest.param("up 1\n", "up 1\n", id="a page"),
        pytest.param("", "", id="an empty page is a page"),
        pytest.param("error", PageUnavailable("{address} answered 500 Internal Server Error"), id="an error"),
        pytest.param("dead", PageUnavailable("cannot read {address}: RemoteDisconnected"), id="a broken connection"),
    ],
)
def test_a_page_from_an_address(page: Page, expected: str | PageUnavailable) -> None:
    with PageExporter() as exporter:
        exporter.pages["metrics"] = page
        address = f"http://{exporter.address}/metrics"
        found = read_page(address)
    if isinstance(expected, PageUnavailable):
        assert isinstance(found, PageUnavailable)
        assert found.message.startswith(expected.message.format(address=address))
    else:
        assert found == expected


def test_an_address_where_nobody_listens() -> None:
    found = read_page("http://127.0.0.1:9/metrics")
    assert isinstance(found, PageUnavailable)
    assert found.message.startswith("cannot reach http://127.0.0.1:9/metrics: ")


def test_a_page_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "page.txt"
    path.write_bytes(b"up 1\n\xff")
    assert read_page(str(path)) == "up 1\n\ufffd"
    assert read_page(str(tmp_path)) == PageUnavailable(f"cannot read {tmp_path}: Is a directory")
    missing = tmp_path / "missing"
    assert read_page(str(missing)) == PageUnavailable(f"cannot read {missing}: No such file or directory")
