"""An HTTP session whose answers are bounded: in bytes, and in time as a whole rather than between two bytes."""

from __future__ import annotations

import threading
from typing import Any

import orjson
import requests
from requests.structures import CaseInsensitiveDict
from urllib3.exceptions import HTTPError, ReadTimeoutError

from autoscaler.clock import Clock

_PIECE_BYTES = 256 * 1024


class AnswerTooLargeError(Exception):
    """The answer has more bytes than allowed; the rest was not read."""


class DeadlineExceededError(Exception):
    """The answer was still coming when the time was up."""


class ReadAnswer(requests.Response):
    """An answer whose body has been read already."""

    def __init__(self, status_code: int, body: bytes, headers: CaseInsensitiveDict[str]) -> None:
        super().__init__()
        self.status_code = status_code
        self.headers = headers
        self._content = body

    def json(self, **kwargs: Any) -> Any:
        """What PrometheusConnect wants of it: no rows. It would drop what else there is, so `document` is read."""
        return {"data": {"result": []}}

    def document(self) -> Any:
        """The decoded body. Raises orjson.JSONDecodeError, a ValueError."""
        return orjson.loads(self.content)


class _OfThisThread(threading.local):
    deadline_seconds: float | None = None
    answer: ReadAnswer | None = None


class BoundedSession(requests.Session):
    """The session that PrometheusConnect is given.

    It differs from a plain one in this: the parameters of a POST go into the body (a query for many namespaces is
    longer than servers let an address be); redirects are not followed (a login page is no answer, and a POST would
    lose its body); the environment's proxies and netrc are not used; size and time are bounded. Threads may share it.
    """

    def __init__(self, clock: Clock, maximum_answer_bytes: int) -> None:
        super().__init__()
        self.trust_env = False
        self._clock = clock
        self._maximum_answer_bytes = maximum_answer_bytes
        self._mine = _OfThisThread()

    def begin(self, deadline_seconds: float) -> None:
        """From now on this thread's answers must be complete at `deadline_seconds` (monotonic)."""
        self._mine.deadline_seconds = deadline_seconds
        self._mine.answer = None

    def take_answer(self) -> ReadAnswer | None:
        """This thread's answer since `begin`; given once, as nobody needs a large one until the next."""
        answer, self._mine.answer = self._mine.answer, None
        return answer

    def request(self, method: str, url: str | bytes, *args: Any, **kwargs: Any) -> requests.Response:
        """Reads to the end. Raises AnswerTooLargeError, DeadlineExceededError, and what requests and urllib3 raise."""
        if method == "POST":
            kwargs["data"] = kwargs.pop("params", None)
        kwargs |= {"stream": True, "allow_redirects": False}
        response = super().request(method, url, *args, **kwargs)
        try:
            body = self._read(response)
        finally:
            response.close()
        answer = self._mine.answer = ReadAnswer(response.status_code, body, response.headers)
        return answer

    def _read(self, response: requests.Response) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while True:
            # read1 returns after one read from the socket: a server that drips bytes cannot hold us past the deadline.
            piece = response.raw.read1(_PIECE_BYTES, decode_content=True)
            if not piece:
                return b"".join(pieces)
            size += len(piece)
            if size > self._maximum_answer_bytes:
                raise AnswerTooLargeError(f"more than {self._maximum_answer_bytes} bytes")
            deadline = self._mine.deadline_seconds
            if deadline is not None and self._clock.monotonic_seconds() > deadline:
                raise DeadlineExceededError(f"{size} bytes had come")
            pieces.append(piece)


def broken_off(error: HTTPError) -> bool:
    """Whether reading the body failed for another reason than a pause that was too long."""
    return not isinstance(error, ReadTimeoutError)
