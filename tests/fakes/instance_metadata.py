"""AWS' instance metadata service, version 2, on loopback: a token for a PUT, then answers for the token."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN_TTL = "X-aws-ec2-metadata-token-ttl-seconds"
TOKEN = "X-aws-ec2-metadata-token"
ACTION = "/latest/meta-data/spot/instance-action"


class FakeInstanceMetadata:
    """A context manager. `pages` holds what is there by path; all else is 404."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.tokens = 0  # how many were given; only the last one is good
        self.refuses_tokens = False
        self.requests: list[tuple[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def expire_token(self) -> None:
        """The token that was given is good no more."""
        self.tokens += 1

    def __enter__(self) -> FakeInstanceMetadata:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(fake) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                fake.requests.append(("PUT", self.path))
                seconds = self.headers.get(TOKEN_TTL, "")
                if self.path != "/latest/api/token" or not seconds.isdigit() or not 1 <= int(seconds) <= 21_600:
                    self._answer(400, "")
                    return
                if fake.refuses_tokens:
                    self._answer(403, "")
                    return
                fake.tokens += 1
                self._answer(200, f"token-{fake.tokens}")

            def do_GET(self) -> None:
                fake.requests.append(("GET", self.path))
                if self.headers.get(TOKEN) != f"token-{fake.tokens}":
                    self._answer(401, "")
                    return
                page = fake.pages.get(self.path)
                self._answer(404 if page is None else 200, page or "")

            def log_message(self, *_: object) -> None:
                pass

            def _answer(self, status: int, text: str) -> None:
                content = text.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        return Handler
