"""What is in the secret files right now: token and password are read again when their file changes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from requests.auth import AuthBase
from requests.models import PreparedRequest

from autoscaler.prometheus.settings import PrometheusSettings

Fingerprint: TypeAlias = tuple[tuple[int, int, int] | None, ...]


class CredentialsUnreadableError(Exception):
    """A secret file is missing, unreadable or empty."""


def fingerprint(paths: Sequence[Path | None]) -> Fingerprint:
    """Changes when one of the files does. A mounted Secret changes by a symbolic link, so links are followed."""
    marks: list[tuple[int, int, int] | None] = []
    for path in paths:
        try:
            state = path.stat() if path is not None else None
        except OSError:
            state = None
        marks.append((state.st_ino, state.st_mtime_ns, state.st_size) if state is not None else None)
    return tuple(marks)


class SecretFile:
    """The text of one file without surrounding white space, as of its last change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at: Fingerprint | None = None
        self._text = ""

    def text(self) -> str:
        """The secret. Raises CredentialsUnreadableError; its message names the file, never the content."""
        now = fingerprint((self._path,))
        if now == self._read_at and now != (None,):
            return self._text
        try:
            text = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CredentialsUnreadableError(f"cannot read {self._path}: {type(error).__name__}") from error
        if not text or "\n" in text:
            raise CredentialsUnreadableError(f"{self._path} should hold exactly one line")
        self._text, self._read_at = text, now
        return text


class BearerToken(AuthBase):
    """Sends the token of a file."""

    def __init__(self, file: SecretFile) -> None:
        self._file = file

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Adds the header. Raises CredentialsUnreadableError."""
        request.headers["Authorization"] = f"Bearer {self._file.text()}"
        return request


class BasicAuthentication(AuthBase):
    """Sends a name and the password of a file."""

    def __init__(self, username: str, file: SecretFile) -> None:
        self._username = username
        self._file = file

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Adds the header. Raises CredentialsUnreadableError."""
        pair = f"{self._username}:{self._file.text()}".encode()
        request.headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        return request


def authentication(settings: PrometheusSettings) -> AuthBase | None:
    """How to log in, or None. The files are not read yet, so one that comes later is no error now."""
    if settings.bearer_token_file is not None:
        return BearerToken(SecretFile(settings.bearer_token_file))
    if settings.basic_auth_username is not None and settings.basic_auth_password_file is not None:
        return BasicAuthentication(settings.basic_auth_username, SecretFile(settings.basic_auth_password_file))
    return None
