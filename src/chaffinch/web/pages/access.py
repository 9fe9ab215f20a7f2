"""Who is let in: one-time links, logins, session cookies, CSRF tokens, the idle lock, and a proxy's header if asked.

A link is good for one use. The cookie is HttpOnly and SameSite=Strict, and new at every login. Every change needs the
session's CSRF token, in a field of a form or in a header. An idle session shows nothing until the password is given.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response

from chaffinch.errors import ConfigError
from chaffinch.web.problems import Problem
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.store import users
from chaffinch.web.review.store.users import Session, User
from chaffinch.web.settings import ServerSettings

COOKIE = "chaffinch"
CSRF_HEADER = "x-chaffinch-csrf"
PROXY_SECRET = "x-chaffinch-proxy"  # noqa: S105  (the name of a header)
_LEAST_SECRET = 32  # characters of what a proxy shows


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that logs users in: the header with their name, and the secret that it sends to show who it is."""

    header: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        """Raise ConfigError if the secret is too short, or the header is no header name."""
        if len(self.secret) < _LEAST_SECRET:
            raise ConfigError(f"the secret of the proxy has under {_LEAST_SECRET} characters; make a longer one")
        if not self.header.replace("-", "").isalnum():
            raise ConfigError("the header of the proxy must be a name such as X-Remote-User")


class Links:
    """One-time links that are not used yet, in memory only."""

    def __init__(self) -> None:
        """Begin with no links."""
        self._users: dict[str, User] = {}
        self._lock = Lock()

    def make(self, user: User) -> str:
        """Make a one-time login link for a user, and return its token."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._users[_hash(token)] = user
        return token

    def take(self, token: str) -> User | None:
        """Return the user of a one-time link's token, and invalidate it; None if it is unknown."""
        with self._lock:
            return self._users.pop(_hash(token), None)


def _hash(token: str) -> str:
    """Return the SHA-256 of a token, in hex."""
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Door:
    """The door of the station: the desk, one-time links, and the proxy if there is one."""

    desk: Desk
    links: Links = field(default_factory=Links)
    proxy: Proxy | None = None

    async def admit(self, connection: HTTPConnection, _settings: ServerSettings) -> None:
        """Attach the request's session to its state, noting its use; Problem 401 if there is none or it is idle."""
        session = await run_in_threadpool(self.session, connection.headers, connection.cookies)
        if session is None:
            raise Problem(401, "no_session", "log in first")
        if session.idle:
            raise Problem(401, "idle", "the session is locked; give your password")
        connection.state.session = session

    def session(self, headers: Mapping[str, str], cookies: Mapping[str, str], *, touch: bool = True) -> Session | None:
        """Return the request's session by proxy header or else cookie, or None; `touch` notes the time of use."""
        if self.proxy is not None:
            return self._proxy_session(self.proxy, headers)
        cookie = cookies.get(COOKIE)
        if not cookie:
            return None
        idle = self.desk.project.config.idle_minutes * 60
        return users.find_session(self.desk.project.database, cookie, idle_seconds=idle, touch=touch)

    def _proxy_session(self, proxy: Proxy, headers: Mapping[str, str]) -> Session | None:
        """Return a session for the user whom the proxy names; None if its secret is wrong or the user unknown."""
        if not users.same_token(headers.get(PROXY_SECRET, ""), proxy.secret):
            return None
        name = headers.get(proxy.header, "")
        with self.desk.project.database.read() as connection:
            user = users.find_user(connection, name)
        if user is None:
            return None
        return Session(user, self.desk.project.database.digest("proxy", user.name), "")

    def enter(self, user: User, how: str, *, is_tls: bool) -> Response:
        """Begin a session, audited with `how`; return a redirect to the first page, with the session's cookie."""
        cookie = users.begin_session(self.desk.project.database, user, how)
        response = RedirectResponse("/", 303)
        response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=is_tls, path="/")
        return response


def session_of(request: Request) -> Session:
    """Return the session that `Door.admit` attached to the request."""
    session: Session = request.state.session
    return session


def check_csrf(session: Session, given: str) -> None:
    """Raise Problem unless `given` is the session's CSRF token."""
    if not users.same_token(given, session.csrf):
        raise Problem(403, "no_csrf", "the page is out of date; load it again")
