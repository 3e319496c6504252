"""What is answered to those who discover the API? From memory, so that nobody's discovery ever waits for us."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from fastapi import FastAPI, Request, Response

from autoscaler.external_metrics import wire
from autoscaler.external_metrics.wire import ApiGroup

Groups = tuple[ApiGroup, ...]


@dataclass(frozen=True, slots=True)
class _Documents:
    """All documents of some groups, encoded; `by_path` are those below /apis."""

    plain: bytes
    aggregated: Mapping[str, bytes]
    by_path: Mapping[str, bytes]


class Discovery:
    """The documents of the groups that are served now. They are made anew only where the groups have changed."""

    def __init__(self, groups: Callable[[], Groups]) -> None:
        """Names of groups and versions never change; their resources may, and then `groups` gives another tuple."""
        self._groups = groups
        self._made: tuple[Groups, _Documents] | None = None

    def add_to(self, app: FastAPI) -> None:
        """Adds the routes."""
        app.get("/apis")(self._apis)
        for path in self._documents().by_path:
            app.get(path)(self._below(path))

    def _documents(self) -> _Documents:
        groups = self._groups()
        if self._made is None or self._made[0] is not groups:
            self._made = (groups, _documents_of(groups))
        return self._made[1]

    async def _apis(self, request: Request) -> Response:
        documents = self._documents()
        version = wire.wanted_aggregated_version(request.headers.get("accept", ""))
        if version is None:
            return Response(documents.plain, media_type=wire.JSON, headers={"Vary": "Accept"})
        content = documents.aggregated[version]
        headers = {"ETag": wire.entity_tag(content), "Vary": "Accept"}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=wire.aggregated_media_type(version), headers=headers)

    def _below(self, path: str) -> Callable[[], Awaitable[Response]]:
        async def document() -> Response:
            return Response(self._documents().by_path[path], media_type=wire.JSON)

        return document


def _documents_of(groups: Groups) -> _Documents:
    by_path: dict[str, bytes] = {}
    for group in groups:
        by_path[f"/apis/{group.name}"] = wire.encode(wire.api_group(group))
        for version in group.versions:
            by_path[f"/apis/{group.name}/{version}"] = wire.encode(wire.api_resource_list(group, version))
    return _Documents(
        plain=wire.encode(wire.api_group_list(groups)),
        aggregated={
            version: wire.encode(wire.aggregated_discovery(groups, version)) for version in wire.AGGREGATED_VERSIONS
        },
        by_path=by_path,
    )
