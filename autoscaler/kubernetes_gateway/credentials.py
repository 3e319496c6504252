"""Where the API server is and who we are: from a kubeconfig, or from the pod's own ServiceAccount."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import load_incluster_config
from kubernetes.config.kube_config import load_kube_config


class CredentialsError(Exception):
    """No usable credentials: what was looked for, where, and what came of it."""


def load_configuration(kubeconfig: str | None, context: str | None) -> Any:
    """The client library's Configuration.

    With `kubeconfig` that file (several, separated by colons, are merged); else the pod's ServiceAccount where there
    is one; else $KUBECONFIG or ~/.kube/config. `context` is only used with a file. Raises CredentialsError.
    """
    configuration = Configuration()
    if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        try:
            load_incluster_config(client_configuration=configuration)
        except (ConfigException, OSError) as error:
            raise CredentialsError(f"reading the pod's ServiceAccount failed: {error}") from error
        return configuration
    file_name = kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    try:
        # The user's file is never written to, even where a refreshed token could be stored.
        load_kube_config(
            config_file=file_name, context=context, client_configuration=configuration, persist_config=False
        )
    # The library lets malformed files through as whatever its parsing code happens to raise.
    except (ConfigException, OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        wanted = f" (context {context})" if context else ""
        raise CredentialsError(
            f"reading kubeconfig {file_name}{wanted} failed: {error}; "
            "name an existing file and context, or run inside a pod with a ServiceAccount"
        ) from error
    return configuration
