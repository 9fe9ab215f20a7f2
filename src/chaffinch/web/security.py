"""The guard in front of every route: host, origin, admission, size and time of bodies, headers, and errors.

A request passes these checks in this order; the first that fails answers. Nothing of a request is logged.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chaffinch.web.metrics import Metrics
from chaffinch.web.problems import LOG, Problem, new_id, problem_of
from chaffinch.web.sections import Section, find_section
from chaffinch.web.settings import ServerSettings

HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
# Scripts and styles of pages come from files of this server alone; nothing is loaded from elsewhere.
PAGE_POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
_ONE_YEAR = "max-age=31536000"  # that browsers insist on TLS
REQUEST_ID = "x-request-id"


class _LateError(RuntimeError):
    """A failure after the first bytes of an answer; the connection is closed, so that it is not taken for complete."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Middleware that checks requests, limits their bodies, adds headers and words errors."""

    app: ASGIApp
    settings: ServerSettings
    sections: Sequence[Section]
    metrics: Metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check an HTTP request, run the app, answer errors as its section does, count it; refuse websockets."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        section = find_section(self.sections, scope["path"])
        answering = _Answering(send, new_id(), is_tls=self.settings.tls is not None)
        scope["app"] = self.app  # the router then raises its refusals, which are worded here
        scope.setdefault("state", {})["request_id"] = answering.request_id
        started = time.perf_counter()
        try:
            await self._check(scope, section)
            await self.app(scope, _LimitedBody(receive, scope, self.settings).receive, answering.send)
        except ClientDisconnect:
            return
        except Exception as error:
            problem = problem_of(error, answering.request_id)
            if answering.status is not None:
                LOG.error("request %s was broken off", answering.request_id)
                raise _LateError("an answer was broken off") from None
            response = section.error_response(problem, answering.request_id)
            await response(scope, receive, answering.send)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self.metrics.note_request(route, answering.status or 499, time.perf_counter() - started)

    async def _check(self, scope: Scope, section: Section) -> None:
        """Raise Problem unless host and origin are right and, outside open paths, the section admits the request."""
        connection = HTTPConnection(scope)
        check_host(connection.headers, self.settings.host_names)
        check_origin(connection.headers)
        if scope["path"] not in section.open_paths:
            admitted = section.admit(connection, self.settings)
            if inspect.isawaitable(admitted):
                await admitted


def check_host(headers: Mapping[str, str], allowed: frozenset[str]) -> None:
    """Raise Problem 421 unless the Host header names this server; it stops pages that point a name at this address."""
    name = _name_of(headers.get("host", ""))
    if name is None or name not in allowed:
        message = "the Host header names another server; call it by its address, or add the name with --allow-host"
        raise Problem(421, "wrong_host", message)


def check_origin(headers: Mapping[str, str]) -> None:
    """Raise Problem 403 if a page of another site sent the request, by Origin or else Sec-Fetch-Site."""
    origin = headers.get("origin")
    site = headers.get("sec-fetch-site", "none")
    if origin is not None:
        other = urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    else:
        other = site not in ("none", "same-origin")
    if other:
        raise Problem(403, "wrong_origin", "a page of another site sent this request; only pages of this server may")


def _name_of(host: str) -> str | None:
    """Return the name in a Host header, without its port and in lower case; None if it is malformed.

    >>> _name_of("LocalHost:80"), _name_of("[::1]:80"), _name_of("127.0.0.1@evil.example")
    ('localhost', '::1', None)
    """
    if not host or any(mark in host for mark in "@/\\?# \t"):
        return None
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises ValueError if it is no number
    except ValueError:
        return None
    return parts.hostname


class _LimitedBody:
    """A request's body as it arrives, refused when it is too large or too slow."""

    def __init__(self, receive: Receive, scope: Scope, settings: ServerSettings) -> None:
        """Keep the limits and the declared length; the clock starts at the first part."""
        self._receive, self._limits = receive, settings.limits
        self._bytes = 0
        self._until: float | None = None  # on the clock of the loop; None before the first call
        self._done = False
        self._declared = Headers(scope=scope).get("content-length", "")

    async def receive(self) -> Message:
        """Return the next message of the body; raise Problem 413 if it is too large, 408 if too slow."""
        if self._done:
            return await self._receive()
        if self._until is None:
            self._until = asyncio.get_running_loop().time() + self._limits.body_seconds
            self._check_size(int(self._declared) if self._declared.isdecimal() else 0)
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            text = f"the body did not arrive within {self._limits.body_seconds:g} s"
            raise Problem(408, "too_slow", text, {"connection": "close"}) from None
        if message["type"] == "http.request":
            self._bytes += len(message.get("body", b""))
            self._check_size(self._bytes)
            self._done = not message.get("more_body", False)
        return message

    def _check_size(self, size: int) -> None:
        """Raise Problem 413 if a body of this many bytes is over the limit."""
        if size > self._limits.body_bytes:
            text = f"the body has more than {self._limits.body_bytes:,} bytes; send fewer documents at a time"
            raise Problem(413, "too_large", text, {"connection": "close"})


class _Answering:
    """An answer on its way: its status so far, and the headers that all answers have."""

    def __init__(self, send: Send, request_id: str, *, is_tls: bool) -> None:
        """Keep where to send and the request's id; no status was sent yet."""
        self._send, self.request_id, self._is_tls = send, request_id, is_tls
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        """Send a message; add security headers and the request's id to the first one, and note its status."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            is_page = headers.get("content-type", "").startswith("text/html")
            added = {**HEADERS, "content-security-policy": PAGE_POLICY if is_page else DATA_POLICY}
            added |= {"strict-transport-security": _ONE_YEAR} if self._is_tls else {}
            for name, value in added.items():
                headers.setdefault(name, value)
            headers[REQUEST_ID] = self.request_id
        await self._send(message)
