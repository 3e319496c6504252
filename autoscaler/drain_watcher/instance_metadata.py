"""Has the cloud given notice that it takes this instance back? Asked by version 2 of AWS' instance metadata service.

A token is put for first and sent with every question; `404` is "no notice". A recommendation to rebalance is none:
most instances outlive it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

TOKEN_PATH = "/latest/api/token"
ACTION_PATH = "/latest/meta-data/spot/instance-action"
TTL_HEADER = "X-aws-ec2-metadata-token-ttl-seconds"
TOKEN_HEADER = "X-aws-ec2-metadata-token"
# The longest that is allowed; a token that ends earlier is refused with 401 and put for again.
TOKEN_SECONDS = 21_600
# The service is on the same machine: longer means that packets do not get there (a hop limit of 1, say).
TIMEOUT_SECONDS = 1.0
UNAUTHORIZED, NOT_FOUND = 401, 404


@dataclass(frozen=True, slots=True)
class Notice:
    """What happens to the instance, and when, in the cloud's words."""

    action: str
    at: str


@dataclass(frozen=True, slots=True)
class NoNotice:
    """Asked and answered: nothing is planned."""


@dataclass(frozen=True, slots=True)
class MetadataUnavailable:
    """Nobody knows: that is not the same as no notice."""

    message: str


class InstanceMetadata:
    """The metadata service at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._token: str | None = None

    def notice(self) -> Notice | NoNotice | MetadataUnavailable:
        """The notice as it stands now. What cannot be read as one is one too: the path is there for nothing else."""
        try:
            text = self._ask(ACTION_PATH)
        except HTTPError as error:
            if error.code == NOT_FOUND:
                return NoNotice()
            return MetadataUnavailable(f"{self._url}{ACTION_PATH}: {error.code} {error.reason}")
        except (URLError, HTTPException, OSError) as error:
            return MetadataUnavailable(f"{self._url} cannot be reached ({error}): hostNetwork, or a hop limit of 2?")
        return _read(text)

    def _ask(self, path: str) -> str:
        fresh = self._token is None
        token = self._token = self._token or self._put_token()
        try:
            return self._send("GET", path, {TOKEN_HEADER: token})
        except HTTPError as error:
            if error.code != UNAUTHORIZED or fresh:
                raise
        self._token = self._put_token()
        return self._send("GET", path, {TOKEN_HEADER: self._token})

    def _put_token(self) -> str:
        return self._send("PUT", TOKEN_PATH, {TTL_HEADER: str(TOKEN_SECONDS)})

    def _send(self, method: str, path: str, headers: Mapping[str, str]) -> str:
        request = Request(f"{self._url}{path}", method=method, headers=dict(headers))
        with urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return str(answer.read().decode(errors="replace"))


def _read(text: str) -> Notice:
    try:
        document = json.loads(text)
        return Notice(str(document["action"]), str(document["time"]))
    except (json.JSONDecodeError, KeyError, TypeError):
        return Notice("not readable", "not known")
