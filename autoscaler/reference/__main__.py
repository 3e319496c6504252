"""Writes the generated pages where they belong; run it at the top of the source tree."""

from __future__ import annotations

from autoscaler.reference.pages import PAGES


def main() -> None:
    """Writes every page over what stands there."""
    for path, render in PAGES.items():
        path.write_text(render(), encoding="utf-8")


main()
