"""How does a test read and change objects on the API server, without the code under test?"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2

from tests.cluster.harness.certificates import KeyPair
from tests.servers.process import PATIENCE

Document = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"


class ApiError(Exception):
    """The API server refused a request."""

    def __init__(self, method: str, path: str, status: int, message: str):
        super().__init__(f"{method} {path}: {status}: {message}")
        self.status = status
        self.message = message


class KubernetesApi:
    """Plain REST on one API server, as one user. Every method raises ApiError for an answer of 400 and above."""

    def __init__(self, server: str, authority: Path, user: KeyPair | str):
        context = ssl.create_default_context(cafile=str(authority))
        headers = {}
        if isinstance(user, str):
            headers["Authorization"] = f"Bearer {user}"
        else:
            context.load_cert_chain(user.certificate, user.key)
        self._client = httpx2.Client(base_url=server, verify=context, headers=headers, timeout=PATIENCE * 30)

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        **parameters: str | int,
    ) -> Any:
        """The decoded answer; text when it is not JSON."""
        answer = self._client.request(
            method,
            path,
            content=None if body is None else json.dumps(body),
            headers={"Content-Type": content_type},
            params=parameters,
        )
        is_json = "json" in answer.headers.get("content-type", "")
        if answer.status_code >= 400:
            raise ApiError(method, path, answer.status_code, answer.json()["message"] if is_json else answer.text)
        return answer.json() if is_json else answer.text

    def get(self, path: str, **parameters: str | int) -> Any:
        """One object or list."""
        return self.call("GET", path, **parameters)

    def items(self, path: str, **parameters: str | int) -> list[Document]:
        """The items of a list."""
        found: list[Document] = self.get(path, **parameters)["items"]
        return found

    def watch(self, path: str, revision: str, seconds: int) -> Iterator[Document]:
        """The changes of a list after this revision, as they come, for so many seconds."""
        parameters: dict[str, str | int] = {"watch": "true", "resourceVersion": revision, "timeoutSeconds": seconds}
        with self._client.stream("GET", path, params=parameters) as answer:
            if answer.status_code >= 400:
                raise ApiError("GET", path, answer.status_code, answer.read().decode())
            for line in answer.iter_lines():
                yield json.loads(line)

    def find(self, path: str) -> Document | None:
        """One object, None when there is none."""
        try:
            found: Document = self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return found

    def create(self, path: str, body: Mapping[str, Any], **parameters: str | int) -> Document:
        """Creates an object in a collection; returns it as stored."""
        created: Document = self.call("POST", path, body, **parameters)
        return created

    def merge(self, path: str, body: Mapping[str, Any], **parameters: str | int) -> Document:
        """Merge-patches an object; returns it as stored."""
        patched: Document = self.call("PATCH", path, body, MERGE_PATCH, **parameters)
        return patched

    def replace(self, path: str, body: Mapping[str, Any], **parameters: str | int) -> Document:
        """Puts an object; returns it as stored."""
        replaced: Document = self.call("PUT", path, body, **parameters)
        return replaced

    def delete(self, path: str, **parameters: str | int) -> None:
        """Deletes an object; nothing when there is none."""
        try:
            self.call("DELETE", path, **parameters)
        except ApiError as error:
            if error.status != 404:
                raise
