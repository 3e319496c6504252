"""An API server that only reviews: whose token it is, and who may read what."""

from __future__ import annotations

from typing import Any

from autoscaler.kubernetes_gateway.api_failure import ApiFailure


class FakeReviewsApi:
    """`tokens` maps a token to its user's name; `readers` are the users who may read every metric."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}
        self.readers: set[str] = set()
        self.failure: ApiFailure | None = None
        self.asked: list[dict[str, Any]] = []

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any] | ApiFailure:
        self.asked.append(body)
        if self.failure is not None:
            return self.failure
        if path.endswith("/tokenreviews"):
            name = self.tokens.get(body["spec"]["token"])
            if name is None:
                return {"status": {"authenticated": False, "error": "unknown token"}}
            user = {
                "username": name,
                "uid": f"uid-of-{name}",
                "groups": ["system:authenticated"],
                "extra": {"a": ["b"]},
            }
            return {"status": {"authenticated": True, "user": user}}
        assert path.endswith("/subjectaccessreviews")
        is_allowed = body["spec"]["user"] in self.readers
        return {"status": {"allowed": is_allowed, "reason": "" if is_allowed else "no RBAC policy matched"}}
