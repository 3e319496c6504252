"""How one request to the API server is made: a URL path in, a document or a failure out.

Built on the configuration, authentication and transport of the `kubernetes` package, without its object models: they
take a hundred times the memory of the fields that are used here. Every call has a timeout and none is repeated
behind the caller's back.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from kubernetes.client.exceptions import ApiException
from kubernetes.client.rest import RESTClientObject
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import ConnectTimeoutError, HTTPError, MaxRetryError, ReadTimeoutError
from urllib3.exceptions import TimeoutError as TransportTimeoutError

from autoscaler.kubernetes_gateway.api_failure import (
    ApiFailure,
    ServerError,
    Timeout,
    Unauthorized,
    Unreachable,
    failure_of_response,
)
from autoscaler.kubernetes_gateway.credentials import CredentialsError, load_configuration
from autoscaler.kubernetes_gateway.watch_stream import WatchStream

FIELD_MANAGER = "tokenscaler"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"

CONNECT_TIMEOUT_SECONDS = 1.0
READ_TIMEOUT_SECONDS = 10.0
LIST_TIMEOUT_SECONDS = 30.0
# A write must have arrived or be dead before a lease that we could no longer renew can be taken by another
# (lease_elector.py has the arithmetic): 1 s to connect, 2 s for the answer, and bytes that the peer's kernel has not
# acknowledged are thrown away after 2.5 s, even when our side of the connection has been closed meanwhile.
WRITE_TIMEOUT_SECONDS = 2.0
UNACKNOWLEDGED_TIMEOUT_MILLISECONDS = 2500
KEEP_ALIVE_IDLE_SECONDS = 15
KEEP_ALIVE_INTERVAL_SECONDS = 5
KEEP_ALIVE_PROBES = 3
MAXIMUM_IDLE_CONNECTIONS = 64

Document = dict[str, Any]
Query = Mapping[str, str]
Body = Document | list[Document]
"""What is sent: an object, or the operations of a JSON patch."""


def connect(kubeconfig: str | None = None, context: str | None = None) -> ApiConnection:
    """A connection by kubeconfig or the pod's ServiceAccount; nothing is sent yet. Raises CredentialsError."""
    return ApiConnection(kubeconfig, context)


class ApiConnection:
    """Requests to one API server; used by many threads at once."""

    def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
        self._source = (kubeconfig, context)
        self._lock = threading.Lock()
        self._configuration = _with_transport_settings(load_configuration(kubeconfig, context))
        self._client = RESTClientObject(self._configuration)

    @property
    def server(self) -> str:
        """The server's base URL, for messages."""
        return str(self._configuration.host)

    def get(self, path: str, query: Query | None = None) -> Document | ApiFailure:
        """The document at `path`."""
        return self._request("get", "GET", path, query, read_seconds=READ_TIMEOUT_SECONDS)

    def list_page(self, path: str, query: Query) -> Document | ApiFailure:
        """One page of a list; `query` holds `limit` and `continue`."""
        return self._request("list", "GET", path, query, read_seconds=LIST_TIMEOUT_SECONDS)

    def watch(self, path: str, query: Query, read_seconds: float) -> WatchStream | ApiFailure:
        """An open watch; `read_seconds` is the longest silence before the connection is taken for dead."""
        response = self._send("watch", "GET", path, query, None, None, read_seconds)
        if isinstance(response, ApiFailure):
            return response
        if response.status >= 300:
            return self._failure("watch", path, response)
        return WatchStream(response, path)

    def patch(
        self, path: str, body: Document, content_type: str = MERGE_PATCH, query: Query | None = None
    ) -> Document | ApiFailure:
        """The patched document. A merge patch, unless `content_type` says otherwise."""
        return self._write("patch", "PATCH", path, body, content_type, query)

    def patch_by_operations(self, path: str, operations: list[Document]) -> Document | ApiFailure:
        """The document after a JSON patch; Rejected where one of its `test` operations does not hold."""
        return self._write("patch", "PATCH", path, operations, JSON_PATCH, None)

    def create(self, path: str, body: Document) -> Document | ApiFailure:
        """The created document; Conflict when it exists."""
        return self._write("create", "POST", path, body, "application/json", None)

    def update(self, path: str, body: Document) -> Document | ApiFailure:
        """The replaced document; Conflict when `metadata.resourceVersion` is not the newest."""
        return self._write("update", "PUT", path, body, "application/json", None)

    def delete(self, path: str) -> Document | ApiFailure:
        """The deleted document, or a status; NotFound when it is not there."""
        return self._request("delete", "DELETE", path, None, read_seconds=WRITE_TIMEOUT_SECONDS)

    def close(self) -> None:
        """Closes idle connections."""
        self._client.close()

    def _write(
        self, verb: str, method: str, path: str, body: Body, content_type: str, query: Query | None
    ) -> Document | ApiFailure:
        # The server gives up by itself after `timeout`, so that a write does not linger in its queues either.
        full_query = {"fieldManager": FIELD_MANAGER, "timeout": f"{WRITE_TIMEOUT_SECONDS:g}s", **(query or {})}
        return self._request(verb, method, path, full_query, body, content_type, WRITE_TIMEOUT_SECONDS)

    def _request(
        self,
        verb: str,
        method: str,
        path: str,
        query: Query | None,
        body: Body | None = None,
        content_type: str | None = None,
        read_seconds: float = READ_TIMEOUT_SECONDS,
    ) -> Document | ApiFailure:
        response = self._send(verb, method, path, query, body, content_type, read_seconds)
        if isinstance(response, ApiFailure):
            return response
        if response.status >= 300:
            return self._failure(verb, path, response)
        content = _read(verb, path, response)
        if isinstance(content, ApiFailure):
            return content
        try:
            document = orjson.loads(content)
        except orjson.JSONDecodeError:
            document = None
        if not isinstance(document, dict):
            beginning = content[:200].decode(errors="replace")
            return ServerError(verb, path, f"{response.status}, but no JSON object: {beginning!r}; is a proxy between?")
        return document

    def _send(
        self,
        verb: str,
        method: str,
        path: str,
        query: Query | None,
        body: Body | None,
        content_type: str | None,
        read_seconds: float,
    ) -> Any:
        """urllib3's response with its body unread, or a failure."""
        headers = {"Accept": "application/json", "User-Agent": FIELD_MANAGER}
        if content_type is not None:
            headers["Content-Type"] = content_type
        url = f"{self.server}{quote(path)}"
        if query:
            url = f"{url}?{urlencode(query)}"
        try:
            for setting in self._configuration.auth_settings().values():
                headers[setting["key"]] = setting["value"]
        except (ConfigException, OSError) as error:
            return Unauthorized(verb, path, f"the credentials could not be read: {error}")
        try:
            answer = self._client.request(
                method, url, headers=headers, body=body, _request_timeout=(CONNECT_TIMEOUT_SECONDS, read_seconds)
            )
        except (HTTPError, ApiException, OSError) as error:
            return _failure_of_transport(verb, path, self.server, error)
        return answer.response

    def _failure(self, verb: str, path: str, response: Any) -> ApiFailure:
        content = _read(verb, path, response)
        if isinstance(content, ApiFailure):
            return content
        failure = failure_of_response(verb, path, response.status, content, response.headers.get("Retry-After"))
        if isinstance(failure, Unauthorized):
            self._reload_credentials()
        return failure

    def _reload_credentials(self) -> None:
        """Takes up a token or certificate that has been renewed on disk, for the next request."""
        with self._lock:
            try:
                configuration = _with_transport_settings(load_configuration(*self._source))
            except CredentialsError:
                return  # the old ones stay; their refusal has been reported already
            if _credentials(configuration) != _credentials(self._configuration):
                self._client = RESTClientObject(configuration)
                self._configuration = configuration


def _with_transport_settings(configuration: Any) -> Any:
    configuration.retries = False
    configuration.connection_pool_maxsize = MAXIMUM_IDLE_CONNECTIONS
    configuration.keep_alive = True
    configuration.socket_options = [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    ]
    # Linux only. With these a peer that has vanished is noticed about 20 s after it last answered, on any connection.
    for option, value in (
        ("TCP_KEEPIDLE", KEEP_ALIVE_IDLE_SECONDS),
        ("TCP_KEEPINTVL", KEEP_ALIVE_INTERVAL_SECONDS),
        ("TCP_KEEPCNT", KEEP_ALIVE_PROBES),
        ("TCP_USER_TIMEOUT", UNACKNOWLEDGED_TIMEOUT_MILLISECONDS),
    ):
        if hasattr(socket, option):
            configuration.socket_options.append((socket.IPPROTO_TCP, getattr(socket, option), value))
    return configuration


def _credentials(configuration: Any) -> tuple[object, ...]:
    return (configuration.host, dict(configuration.api_key), configuration.cert_file, configuration.key_file)


def _read(verb: str, path: str, response: Any) -> bytes | ApiFailure:
    try:
        return bytes(response.data)
    except ReadTimeoutError:
        return Timeout(verb, path, "the answer began but did not end in time")
    except (HTTPError, OSError) as error:
        return Unreachable(verb, path, f"the connection broke inside the answer: {error}")


def _failure_of_transport(verb: str, path: str, server: str, error: Exception) -> ApiFailure:
    cause = error.reason if isinstance(error, MaxRetryError) and error.reason is not None else error
    # Not to connect in time is not to reach: nothing can have been done by the server.
    if isinstance(cause, TransportTimeoutError | TimeoutError) and not isinstance(cause, ConnectTimeoutError):
        return Timeout(verb, path, f"{server} did not answer in time")
    text = " ".join(str(cause).split())  # the library's texts have several lines
    return Unreachable(verb, path, f"{server}: {type(cause).__name__}: {text}")
