"""The app: the sections of the service under one guard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from starlette.routing import Router
from starlette.types import ASGIApp

from chaffinch.web.api.section import api_section
from chaffinch.web.metrics import Metrics
from chaffinch.web.problems import LOG
from chaffinch.web.sections import Section
from chaffinch.web.security import Guard
from chaffinch.web.settings import ServerSettings


def build_app(settings: ServerSettings, sections: Sequence[Section], metrics: Metrics | None = None) -> ASGIApp:
    """Return an app of some sections. It has no route that is not in one of them."""
    routes = [route for section in sections for route in section.routes]

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_exception_handler(_log_type_alone)
        async with AsyncExitStack() as stack:
            for section in sections:
                if section.lifespan is not None:
                    await stack.enter_async_context(section.lifespan())
            yield

    router = Router(routes, redirect_slashes=False, lifespan=lifespan)
    return Guard(router, settings, tuple(sections), metrics or Metrics())


def _log_type_alone(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log a failure outside a request by its type: its words, and a repr of what failed, could hold text."""
    LOG.error("a task failed with %s", type(context.get("exception")).__name__)


def create_app(settings: ServerSettings) -> ASGIApp:
    """Return the app of `chaffinch serve --api-only`: the REST interface."""
    metrics = Metrics()
    return build_app(settings, [api_section(metrics)], metrics)
