"""A running server: one socket, one or several processes with an app each, and an orderly end."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from chaffinch.errors import ConfigError, MissingExtraError
from chaffinch.web.settings import ServerSettings

AppFactory: TypeAlias = Callable[[], Any]  # it can be pickled: each process calls it
_GRACE = 30  # seconds that requests under way get to end when the server is stopped
_BACKLOG = 512  # connections that the system keeps waiting
_IDLE = 30  # seconds that an idle connection is kept
_HUNG = 300  # seconds without a sign of life after which a process is replaced; a long note may take one for a minute


def listen(settings: ServerSettings) -> socket.socket:
    """Return a listening socket at the settings' address; raise ConfigError if the address cannot be used."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"{settings.host} port {settings.port} cannot be used ({error.strerror}); choose another with --port"
        ) from None
    listener.listen(_BACKLOG)  # who calls before the first process is ready waits, and is not refused
    listener.set_inheritable(True)
    return listener


def serve(factory: AppFactory, settings: ServerSettings, listener: socket.socket, *, workers: int = 1) -> None:
    """Serve the app in `workers` processes until SIGINT or SIGTERM, then finish requests; MissingExtraError."""
    try:
        import uvicorn
        from uvicorn.supervisors import Multiprocess

        from chaffinch.web.protocol import TimedProtocol
    except ImportError:
        raise MissingExtraError("uvicorn", "web") from None
    config = uvicorn.Config(
        factory,
        factory=True,
        workers=workers,
        access_log=False,  # paths and queries are a client's words
        log_config=None,
        log_level=logging.WARNING,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="none",
        http=partial(TimedProtocol, head_seconds=settings.limits.head_seconds),  # type: ignore[arg-type]  # it is called
        lifespan="on",
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_GRACE,
        timeout_worker_healthcheck=_HUNG,
        backlog=_BACKLOG,
        ssl_certfile=None if settings.tls is None else str(settings.tls.certificate),
        ssl_keyfile=None if settings.tls is None else str(settings.tls.key),
    )
    signal.signal(signal.SIGTERM, _end_quietly)  # uvicorn raises the signal again after the orderly end
    with suppress(KeyboardInterrupt):
        if workers > 1:
            Multiprocess(config, sockets=[listener]).run()
        else:
            uvicorn.Server(config).run(sockets=[listener])


def _end_quietly(*_: object) -> None:
    """Ignore a signal: the server has obeyed it already."""
