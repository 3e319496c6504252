"""What the API server calls a kind in its URLs, and whether it can be scaled."""

from __future__ import annotations

from dataclasses import dataclass

from autoscaler.kubernetes_gateway.api_failure import ApiFailure, NotFound
from autoscaler.kubernetes_gateway.connection import ApiConnection


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind as the server serves it."""

    api_version: str
    kind: str
    plural: str
    is_namespaced: bool
    has_scale: bool

    @property
    def root(self) -> str:
        """URL path of the API group version."""
        return root_of(self.api_version)

    def collection_path(self, namespace: str | None) -> str:
        """URL path of all objects, or of those of one namespace."""
        if namespace is None or not self.is_namespaced:
            return f"{self.root}/{self.plural}"
        return f"{self.root}/namespaces/{namespace}/{self.plural}"

    def scale_path(self, namespace: str, name: str) -> str:
        """URL path of one object's scale subresource."""
        return f"{self.root}/namespaces/{namespace}/{self.plural}/{name}/scale"


def root_of(api_version: str) -> str:
    """URL path of an API group version: "v1" is the core group."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def discover(connection: ApiConnection, api_version: str, kind: str) -> ServedKind | ApiFailure:
    """The kind as served; NotFound where the group version or the kind in it does not exist."""
    path = root_of(api_version)
    answer = connection.get(path)
    if isinstance(answer, ApiFailure):
        return answer
    resources = [entry for entry in answer.get("resources") or () if isinstance(entry, dict)]
    for entry in resources:
        plural = str(entry.get("name", ""))
        if entry.get("kind") == kind and "/" not in plural:
            has_scale = any(other.get("name") == f"{plural}/scale" for other in resources)
            return ServedKind(api_version, kind, plural, bool(entry.get("namespaced")), has_scale)
    return NotFound("get", path, f"the server serves {api_version}, but no kind {kind} in it")
