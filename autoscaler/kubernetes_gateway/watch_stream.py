"""One open watch: its events as they come, and why it ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from urllib3.exceptions import HTTPError, ReadTimeoutError
from urllib3.response import HTTPResponse

from autoscaler.kubernetes_gateway.api_failure import (
    ApiFailure,
    ServerError,
    Timeout,
    Unreachable,
    failure_of_status,
)

# An object is at most 1.5 MiB in etcd and may grow in JSON; a longer line is not an event.
MAXIMUM_LINE_BYTES = 16 * 1024 * 1024
READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED or BOOKMARK, with the object as sent."""

    type: str
    object: dict[str, Any]


class WatchStream:
    """Events of one watch request. Read by one thread; `close` may be called by any."""

    def __init__(self, response: HTTPResponse, path: str) -> None:
        self._response = response
        self._path = path
        self._is_closed = False

    def __iter__(self) -> Iterator[WatchEvent | ApiFailure]:
        """Yields events until the server ends the watch; a failure, if there is one, is the last item.

        An ERROR event, silence beyond the read timeout, a connection that breaks inside a message and anything that
        is no event come out as failures. A server that closes in time, or our own `close`, is a plain end.
        """
        buffer = b""
        try:
            for chunk in self._response.stream(READ_BYTES, decode_content=True):
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    if not line.strip():
                        continue
                    item = self._parse(line)
                    yield item
                    if isinstance(item, ApiFailure):
                        return
                if len(buffer) > MAXIMUM_LINE_BYTES:
                    yield ServerError("watch", self._path, f"an event of more than {MAXIMUM_LINE_BYTES} bytes")
                    return
            if buffer.strip() and not self._is_closed:
                yield self._parse(buffer)
        except ReadTimeoutError:
            yield Timeout("watch", self._path, "silent beyond the time at which the server should have ended it")
        # A socket that is shut down by `close` while being read surfaces as one of these too.
        except (HTTPError, OSError, ValueError, AttributeError) as error:
            if not self._is_closed:
                yield Unreachable("watch", self._path, f"the connection broke: {error}")
        finally:
            self._response.close()

    def close(self) -> None:
        """Ends the watch at once, also while another thread waits for its next event."""
        self._is_closed = True
        try:
            self._response.shutdown()
        except (ValueError, RuntimeError, OSError):
            return  # already closed or never fully opened: the reader sees the end by itself

    def _parse(self, line: bytes) -> WatchEvent | ApiFailure:
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            return ServerError("watch", self._path, f"no JSON: {line[:200].decode(errors='replace')}")
        kind = event.get("type") if isinstance(event, dict) else None
        content = event.get("object") if isinstance(event, dict) else None
        if kind == "ERROR" and isinstance(content, dict):
            return failure_of_status("watch", self._path, content)
        if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK") or not isinstance(content, dict):
            return ServerError("watch", self._path, f"no watch event: {line[:200].decode(errors='replace')}")
        return WatchEvent(kind, content)
