"""What does a kubeconfig for one user of the test's API server look like?"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.harness.certificates import KeyPair


def write_kubeconfig(path: Path, server: str, authority: Path, user: KeyPair | str) -> Path:
    """Writes a self-contained kubeconfig; the user is a client certificate or a bearer token. Returns the path."""

    def encoded(file: Path) -> str:
        return base64.b64encode(file.read_bytes()).decode()

    credentials: dict[str, Any]
    if isinstance(user, str):
        credentials = {"token": user}
    else:
        credentials = {
            "client-certificate-data": encoded(user.certificate),
            "client-key-data": encoded(user.key),
        }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority-data": encoded(authority)}}],
        "users": [{"name": "user", "user": credentials}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
        "current-context": "test",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path
