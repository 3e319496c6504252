"""`pytest tests/stories --golden-update` writes the stories anew."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden-update", action="store_true", help="write the golden files of tests/stories anew")
