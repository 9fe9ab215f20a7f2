"""The app: the sections of the service under one guard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from starlette.routing import Router
from starlette.types import ASGIApp

from chaffinch.web.api.engine import Engine, EngineSettings
from chaffinch.web.api.operations import Operations
from chaffinch.web.api.section import api_section, service_endpoints
from chaffinch.web.api.work import WorkQueue
from chaffinch.web.metrics import Metrics
from chaffinch.web.presidio.section import presidio_section
from chaffinch.web.problems import LOG
from chaffinch.web.sections import Section
from chaffinch.web.security import Guard
from chaffinch.web.settings import ServerSettings


def build_app(settings: ServerSettings, sections: Sequence[Section], metrics: Metrics | None = None) -> ASGIApp:
    """Return the guarded ASGI app of these sections; it has no other routes."""
    routes = [route for section in sections for route in section.routes]

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        """Enter the lifespans of all sections while the app runs; unhandled errors are logged by type only."""
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


def create_app(settings: ServerSettings, engine_settings: EngineSettings | None = None) -> ASGIApp:
    """Return the app of `chaffinch serve --api-only`: models loaded, our REST interface to them and Presidio's."""
    metrics = Metrics()
    engine = Engine.load(engine_settings or EngineSettings())
    engine.warm_up()
    queue = WorkQueue(settings.limits, metrics)
    do = Operations(engine, queue, settings.limits)
    work = Section("work", (), (), lifespan=partial(_run_queue, queue))
    return build_app(settings, [work, api_section(metrics, service_endpoints(do)), presidio_section(do)], metrics)


@asynccontextmanager
async def _run_queue(queue: WorkQueue) -> AsyncIterator[None]:
    """Start the work queue for the block; at its end finish the waiting works, and stop it."""
    queue.start()
    try:
        yield
    finally:
        await asyncio.to_thread(queue.stop)
