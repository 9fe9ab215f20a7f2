"""A review station that is about to be served: its project, its app, and the links that open it."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from starlette.types import ASGIApp

from chaffinch.deid.keys import Secret
from chaffinch.web.app import build_app
from chaffinch.web.pages.access import Door, Proxy
from chaffinch.web.pages.section import review_sections
from chaffinch.web.review.demo import PEOPLE, make_demo, steward_of
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.project import open_project
from chaffinch.web.review.store.users import User, list_users
from chaffinch.web.settings import ServerSettings


@dataclass(frozen=True, slots=True)
class Station:
    """A station: its door, the users who get a link, and for invented notes the password of all of them."""

    door: Door
    guests: tuple[User, ...]
    password: str = field(default="", repr=False)

    def app(self, settings: ServerSettings) -> ASGIApp:
        """Return the app of the station."""
        return build_app(settings, review_sections(self.door, settings))

    def greeting(self, base: str) -> Iterator[str]:
        """Yield the lines to print at the start: a one-time login link per guest and the password, or the proxy."""
        if self.door.proxy is not None:
            yield f"serving {base} behind a proxy that names the user"
            return
        yield f"serving {base}; each of these links opens it once:"
        for user in self.guests:
            yield f"  {user.name} ({user.role}): {base}/start?token={self.door.links.make(user)}"
        if self.password:
            yield f"password of all of them: {self.password}"


@contextmanager
def open_station(
    folder: Path | None, key: Secret | None = None, *, proxy: tuple[str, str] | None = None
) -> Iterator[Station]:
    """Yield the station of a project's folder; for None, of a demonstration that is removed at the end."""
    chosen = None if proxy is None else Proxy(*proxy)
    with ExitStack() as stack:
        if folder is None:
            password = secrets.token_urlsafe(12)
            project = make_demo(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaffinch-"))), password)
        else:
            password = ""
            project = open_project(folder, key)
        stack.callback(project.close)
        with project.database.read() as connection:
            people = list_users(connection)
        guests = people[: len(PEOPLE)] if folder is None else [steward_of(project)]
        yield Station(Door(Desk(project), proxy=chosen), tuple(guests), password)
