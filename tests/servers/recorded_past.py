"""How does a test's Prometheus get weeks of samples before it starts? promtool writes them as blocks."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

Series = tuple[Mapping[str, str], Iterable[tuple[float, float]]]
"""Labels, and (unix seconds, value) in order of time."""


def write_past(directory: Path, families: Mapping[str, Iterable[Series]]) -> None:
    """Writes the series of each metric (a counter's name ends in _total) into a data folder of Prometheus."""
    text = directory / "past.txt"
    directory.mkdir(parents=True, exist_ok=True)
    with text.open("w", encoding="utf-8") as file:
        for name, series in families.items():
            is_counter = name.endswith("_total")
            file.write(f"# TYPE {name.removesuffix('_total')} {'counter' if is_counter else 'gauge'}\n")
            for labels, samples in series:
                shown = ",".join(f'{label}="{value}"' for label, value in labels.items())
                file.writelines(f"{name}{{{shown}}} {value!r} {at:.3f}\n" for at, value in samples)
        file.write("# EOF\n")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(directory / "data")]
    subprocess.run([*command, "--max-block-duration=24h"], check=True, capture_output=True, timeout=240)
    text.unlink()
