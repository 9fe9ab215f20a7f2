"""A client that calls an app without a network, and the app's answers as values."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx

TOKEN = "a-token-for-tests-of-more-than-32-characters"
BEARER = {"authorization": f"Bearer {TOKEN}"}


def call(
    app: Any,
    method: str,
    path: str,
    *,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    json: Any = None,
    base_url: str = "http://127.0.0.1",
) -> httpx.Response:
    """Return the answer of an app to one request; the app is started before and ended after it."""

    async def run() -> httpx.Response:
        async with started(app), client_of(app, base_url=base_url) as client:
            return await client.request(method, path, headers=dict(headers or {}), content=content, json=json)

    return asyncio.run(run())


def client_of(app: Any, *, base_url: str = "http://127.0.0.1") -> httpx.AsyncClient:
    """Return a client of an app; an error that the app raises is the test's error."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=base_url, timeout=60)


class started:  # noqa: N801  (it reads as a verb in `async with`)
    """Start an app and end it, as a server does."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._to_app: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._from_app: asyncio.Queue[Any] = asyncio.Queue()

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._app({"type": "lifespan"}, self._to_app.get, self._from_app.put))
        await self._exchange("startup")

    async def __aexit__(self, *_: object) -> None:
        await self._exchange("shutdown")
        await self._task

    async def _exchange(self, step: str) -> None:
        await self._to_app.put({"type": f"lifespan.{step}"})
        message = await self._from_app.get()
        assert message["type"] == f"lifespan.{step}.complete", message
