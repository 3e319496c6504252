"""How is the other provider of external metrics asked: with which identity, for how long, and what comes back?

Two identities. With a bearer token we ask as ourselves: the other provider has to let our ServiceAccount read external
metrics, and that the caller may was checked before the request came here. With a client certificate that the other
provider trusts as a front proxy, we say in headers who the caller is, as the API server does. The caller's own
credentials are never passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from urllib3 import HTTPHeaderDict, HTTPSConnectionPool, Timeout
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from autoscaler.clock import Clock
from autoscaler.external_metrics.caller import FORWARDED_HEADER, Caller
from autoscaler.external_metrics.settings import ForwardSettings

CONNECT_SECONDS = 1.0
PAUSE_SECONDS = 2.0
DEADLINE_SECONDS = 4.0
MAXIMUM_ANSWER_BYTES = 4 * 1024 * 1024
MAXIMUM_CONNECTIONS = 16
_PIECE_BYTES = 64 * 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the other provider said, whatever it was."""

    status: int
    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why nothing came back, or not in time."""

    problem: str


class OtherProvider:
    """Asks the other provider; blocking, for threads of its own. Nothing is repeated."""

    def __init__(self, settings: ForwardSettings, clock: Clock) -> None:
        """Reads and opens nothing yet."""
        parts = urlsplit(settings.url)
        self.url = settings.url
        self._prefix = parts.path.rstrip("/")
        self._host, self._port = str(parts.hostname), parts.port or 443
        self._settings = settings
        self._clock = clock
        self._files: tuple[bytes, ...] = ()
        self._pool: HTTPSConnectionPool | None = None

    def read(self, path: str, query: str, caller: Caller | None) -> Answer | NoAnswer:
        """The answer to a GET of a path, which is quoted already. `caller` is whom we ask for; None: ourselves."""
        deadline = self._clock.monotonic_seconds() + DEADLINE_SECONDS
        try:
            response = self._connections().urlopen(
                "GET",
                f"{self._prefix}{path}{f'?{query}' if query else ''}",
                headers=self._headers(caller),
                redirect=False,
                retries=False,
                timeout=Timeout(connect=CONNECT_SECONDS, read=PAUSE_SECONDS),
                preload_content=False,
            )
            return self._read(response, deadline)
        except (HTTPError, OSError) as error:
            text = " ".join(str(error).split())
            return NoAnswer(f"{type(error).__name__}: {text}")

    def close(self) -> None:
        """Closes idle connections."""
        if self._pool is not None:
            self._pool.close()

    def _read(self, response: BaseHTTPResponse, deadline: float) -> Answer | NoAnswer:
        pieces: list[bytes] = []
        size = 0
        # read1 returns after one read from the socket: who drips bytes cannot hold us past the deadline.
        while piece := response.read1(_PIECE_BYTES, decode_content=True):
            size += len(piece)
            if size > MAXIMUM_ANSWER_BYTES or self._clock.monotonic_seconds() > deadline:
                response.close()  # what is left of the answer must not come in front of the next one
                return NoAnswer(f"the answer did not end within {DEADLINE_SECONDS:g} s, {size} bytes had come")
            pieces.append(piece)
        response.release_conn()
        return Answer(response.status, b"".join(pieces), response.headers.get("content-type", ""))

    def _headers(self, caller: Caller | None) -> HTTPHeaderDict:
        headers = HTTPHeaderDict({"Accept": "application/json", "User-Agent": "tokenscaler", FORWARDED_HEADER: "true"})
        if self._settings.front_proxy_directory is None:
            headers["Authorization"] = f"Bearer {self._settings.token.read_text(encoding='ascii').strip()}"
        elif caller is not None:
            for name, value in remote_headers(caller):
                # On the wire go the bytes of UTF-8, for which http.client wants other letters.
                headers.add(name, value.encode(errors="replace").decode("latin-1"))
        return headers

    def _connections(self) -> HTTPSConnectionPool:
        """The open connections; new ones where a file has been renewed on disk. Raises OSError."""
        authority, folder = self._settings.authority, self._settings.front_proxy_directory
        certificate, key = (folder / "tls.crt", folder / "tls.key") if folder else (None, None)
        files = tuple(path.read_bytes() for path in (authority, certificate, key) if path is not None)
        if self._pool is None or files != self._files:
            self.close()
            self._files = files
            self._pool = HTTPSConnectionPool(
                self._host,
                self._port,
                maxsize=MAXIMUM_CONNECTIONS,
                cert_reqs="CERT_REQUIRED",
                ca_certs=None if authority is None else str(authority),
                cert_file=None if certificate is None else str(certificate),
                key_file=None if key is None else str(key),
            )
        return self._pool


def can_be_named(caller: Caller) -> bool:
    """Whether headers can say who it is: a line's end in a name would end the header, and begin another."""
    return not any(_CONTROL.search(value) for _, value in remote_headers(caller))


def remote_headers(caller: Caller) -> Iterable[tuple[str, str]]:
    """The headers in which a front proxy says who the caller is."""
    yield "X-Remote-User", caller.name
    if caller.uid:
        yield "X-Remote-Uid", caller.uid
    for group in caller.groups:
        yield "X-Remote-Group", group
    for key, values in caller.extra.items():
        for value in values:
            yield f"X-Remote-Extra-{quote(key, safe='')}", value
