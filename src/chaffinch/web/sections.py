"""A part of the service: its routes, the paths it answers, who is let in, and how it words its errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TypeAlias

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import BaseRoute

from chaffinch.web.problems import Problem, answer, error_body
from chaffinch.web.settings import ServerSettings
from chaffinch.web.tokens import is_shown

Admit: TypeAlias = Callable[[HTTPConnection, ServerSettings], Awaitable[None] | None]
ErrorResponse: TypeAlias = Callable[[Problem, str], Response]


def ask_token(connection: HTTPConnection, settings: ServerSettings) -> None:
    """Raise Problem 401 unless the request shows the server's token, or the server has none."""
    shown = connection.headers.get("authorization", "")
    if settings.token is None or is_shown(shown, settings.token):
        return
    message = "send the token of the server: Authorization: Bearer TOKEN; `chaffinch serve` says which file holds it"
    raise Problem(401, "no_token", message, {"www-authenticate": 'Bearer realm="chaffinch"'})


def json_error(problem: Problem, request_id: str) -> Response:
    """Return the usual JSON answer to a failed request: message, code and request id, with the Problem's status."""
    return answer(error_body(problem, request_id), problem.status, problem.headers)


@dataclass(frozen=True, slots=True)
class Section:
    """Routes under some paths (the longest path that fits a request decides), with their own door and errors.

    `open_paths` need no admission. `lifespan` is entered when the server starts and left when it ends.
    """

    name: str
    paths: tuple[str, ...]
    routes: Sequence[BaseRoute]
    open_paths: frozenset[str] = frozenset()
    admit: Admit = ask_token
    error_response: ErrorResponse = json_error
    lifespan: Callable[[], AbstractAsyncContextManager[None]] | None = None

    def fit(self, path: str) -> int:
        """Return the length of the section's longest prefix of this path; -1 if none fits."""
        return max((len(each) for each in self.paths if _leads(each, path)), default=-1)


def _leads(prefix: str, path: str) -> bool:
    """Tell whether a path is a prefix or below it."""
    return path == prefix or path.startswith(prefix.rstrip("/") + "/")


REST = Section("none", ("/",), ())  # of paths that no section has


def find_section(sections: Sequence[Section], path: str) -> Section:
    """Return the section with the longest prefix of a path; `REST` if none has one."""
    return max((*sections, REST), key=lambda section: section.fit(path))
