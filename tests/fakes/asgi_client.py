"""Requests to an app without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx2


def get(app: Any, path: str, headers: Mapping[str, str] | None = None) -> httpx2.Response:
    """The app's answer to a GET."""

    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="https://metrics") as client:
            return await client.get(path, headers=dict(headers or {}))

    return asyncio.run(ask())
