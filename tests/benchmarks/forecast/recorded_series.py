"""Which recorded series are measured, in which bins, over which days, and how many of the last ones are the test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forecasting.series_text import read_series
from forecasting.time_series import TimeSeries

TOKENS = "input_tokens+output_tokens"


@dataclass(frozen=True, slots=True)
class RecordedSeries:
    """A file, its column, the bin's width, the days used from its start, and the days of the test window."""

    name: str
    file: str
    column: str
    bin_seconds: int
    days: int
    test_days: int

    def read(self, traces: Path) -> TimeSeries | None:
        """The series, None if the folder does not hold its file."""
        path = traces / f"{self.file}.csv"
        if not path.exists():
            return None
        series = read_series(path.read_text(), self.column, self.bin_seconds)
        if not isinstance(series, TimeSeries):
            raise ValueError(f"{path}: {series.message}")  # noqa: TRY004
        return TimeSeries(series.start_seconds, series.step_seconds, series.values[: self.days * self.day_bins])

    @property
    def day_bins(self) -> int:
        return 86_400 // self.bin_seconds


SERIES = (
    RecordedSeries("twitter", "web_twitter_stream_1min", "value", 300, 22, 10),
    RecordedSeries("nasa", "web_nasa_http_1min", "value", 300, 27, 13),
    RecordedSeries("kpi", "web_kpi_5min", "value", 300, 42, 14),
    RecordedSeries("amzn", "web_twitter_amzn_5min", "value", 300, 42, 14),
    RecordedSeries("sg_small", "llm_servegen_small_10min", TOKENS, 600, 14, 7),
    RecordedSeries("sg_large", "llm_servegen_large_10min", TOKENS, 600, 14, 7),
    RecordedSeries("sg_s31", "llm_servegen_client_s31_10min", TOKENS, 600, 14, 7),
    RecordedSeries("sg_m30", "llm_servegen_client_m30_10min", TOKENS, 600, 14, 7),
)
