"""Gets a /metrics page from a file or from an address, bounded in time and size."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_SECONDS = 10.0
MAXIMUM_BYTES = 32 * 1024 * 1024
# What Prometheus itself prefers less than OpenMetrics; engines then keep the colons in their names.
ACCEPT = "text/plain;version=0.0.4;q=0.9,*/*;q=0.1"


@dataclass(frozen=True, slots=True)
class PageUnavailable:
    """Why there is no page: what was tried, what came back."""

    message: str


def read_page(place: str) -> str | PageUnavailable:
    """The text at `place`, which is an http(s):// address or the path of a file."""
    if place.startswith(("http://", "https://")):
        return _fetch(place)
    if not place or "://" in place:
        return PageUnavailable(f"cannot read {place!r}: a file, an http:// or https:// address, or - is wanted")
    return _read(Path(place))


def _read(path: Path) -> str | PageUnavailable:
    try:
        with path.open("rb") as file:
            return _text(file.read(MAXIMUM_BYTES + 1), str(path))
    except OSError as error:
        return PageUnavailable(f"cannot read {path}: {error.strerror or error}")


def _fetch(address: str) -> str | PageUnavailable:
    try:
        request = urllib.request.Request(address, headers={"Accept": ACCEPT})
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            return _text(response.read(MAXIMUM_BYTES + 1), address)
    except urllib.error.HTTPError as error:
        error.close()
        return PageUnavailable(f"{address} answered {error.code} {error.reason}; engines serve it at /metrics")
    except urllib.error.URLError as error:
        return PageUnavailable(f"cannot reach {address}: {error.reason}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        return PageUnavailable(f"cannot read {address}: {type(error).__name__}: {error}")


def _text(body: bytes, place: str) -> str | PageUnavailable:
    if len(body) > MAXIMUM_BYTES:
        return PageUnavailable(f"{place} has more than {MAXIMUM_BYTES} bytes; Prometheus would refuse it as well")
    return body.decode("utf-8", "replace")
