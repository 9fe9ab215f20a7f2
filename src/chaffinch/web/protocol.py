"""HTTP connections whose requests must begin in time: a client that sends headers slowly keeps no place for long."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

_LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class TimedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # uvicorn chooses the class when it is imported
    """A connection that is answered 408 and closed unless the headers of each request arrive in `head_seconds`.

    The clock starts when the connection opens, and again at the first byte of each further request; later bytes do not
    set it back. An idle connection between two requests is closed by uvicorn.
    """

    def __init__(self, *args: Any, head_seconds: float, **options: Any) -> None:
        """Keep the limit; no clock runs before the connection opens."""
        super().__init__(*args, **options)
        self._head_seconds = head_seconds
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the clock of the first request."""
        super().connection_made(transport)
        self._start_clock()

    def data_received(self, data: bytes) -> None:
        """Pass bytes on; stop the clock once the headers of a request are complete, start it if they are not."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_clock()
        elif self._clock is None:
            self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def _start_clock(self) -> None:
        """Close the connection after the time for headers, unless the clock is stopped before."""
        self._clock = asyncio.get_running_loop().call_later(self._head_seconds, self._close_late)

    def _stop_clock(self) -> None:
        """Stop the clock if it runs."""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _close_late(self) -> None:
        """Answer that the headers came too late, and close the connection."""
        if not self.transport.is_closing():
            self.transport.write(_LATE)
            self.transport.close()
