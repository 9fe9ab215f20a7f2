"""The sections of the review station: its door, its pages, its messages, its static files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from chaffinch.errors import DataError
from chaffinch.web.pages import judge, reader, steward
from chaffinch.web.pages.access import CSRF_HEADER, Door, check_csrf
from chaffinch.web.pages.handlers import form_endpoint, page_endpoint, read_form
from chaffinch.web.pages.render import page, static_file
from chaffinch.web.problems import Problem
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.store import users
from chaffinch.web.review.store.users import Session, User
from chaffinch.web.sections import Section
from chaffinch.web.settings import ServerSettings


def review_sections(door: Door, settings: ServerSettings) -> list[Section]:
    """Return the three sections of a review station (pages, messages of scripts, static files) with their routes."""
    desk = door.desk
    entrance = _Entrance(door, is_tls=settings.tls is not None)
    reader_pages, reader_messages = reader.routes(desk)
    judge_pages, judge_messages = judge.routes(desk)
    pages = [
        Route("/", page_endpoint(_home(desk))),
        Route("/login", entrance.login_page, methods=["GET"]),
        Route("/login", entrance.login, methods=["POST"]),
        Route("/start", entrance.start),
        Route("/locked", entrance.unlock_page, methods=["GET"]),
        Route("/unlock", entrance.unlock, methods=["POST"]),
        Route("/logout", form_endpoint(entrance.logout), methods=["POST"]),
        *reader_pages,
        *judge_pages,
        *steward.routes(desk),
    ]

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        """Close the project when the app ends."""
        yield
        desk.project.close()

    opened = frozenset({"/login", "/start", "/locked", "/unlock"})
    return [
        Section("pages", ("/",), pages, opened, door.admit, _error_page, lifespan),
        Section("messages", ("/review",), [*reader_messages, *judge_messages], admit=door.admit),
        Section("static", ("/static",), [Route("/static/{hash}/{name:path}", static_file)], admit=_admit_everybody),
    ]


def _admit_everybody(_connection: object, _settings: ServerSettings) -> None:
    """Admit every request for static files by doing nothing: they hold nothing of a project."""


def _home(desk: Desk) -> Callable[[Request, User], Response]:
    """Return a handler that makes the first page of a user's role: queue, cases, progress, or redirect to the audit."""

    def home(request: Request, user: User) -> Response:
        """Return the first page for the user's role: queue, cases, audit trail or progress."""
        if user.role == "reader":
            return reader.queue_page(desk, request, user)
        if user.role == "adjudicator":
            return judge.cases_page(desk, request, user)
        if user.role == "auditor":
            return RedirectResponse("/audit", 303)
        return steward.progress_page(desk, request, user)

    return home


def _error_page(problem: Problem, request_id: str) -> Response:
    """Return the page of a failed request, or a redirect: to /login without a session, to /locked if idle."""
    if problem.code == "no_session":
        return RedirectResponse("/login", 303)
    if problem.code == "idle":
        return RedirectResponse("/locked", 303)
    response = page("error", http_status=problem.status, message=problem.message, code=problem.code, id=request_id)
    response.headers.update(problem.headers)
    return response


class _Entrance:
    """The pages that need no session."""

    def __init__(self, door: Door, *, is_tls: bool) -> None:
        """Keep the door; `is_tls` decides whether cookies are secure."""
        self.door, self.is_tls = door, is_tls

    async def start(self, request: Request) -> Response:
        """Begin a session for the token of a one-time link, which it uses up; Problem 403 if that is not valid."""
        user = self.door.links.take(request.query_params.get("token", ""))
        if user is None:
            raise Problem(403, "used_link", "this link was used already, or is not of this run; log in, or start again")
        return await run_in_threadpool(self.door.enter, user, "link", is_tls=self.is_tls)

    async def login_page(self, request: Request) -> Response:
        """Return the login page."""
        return page("login", project=self.door.desk.project.config.name, message="")

    async def login(self, request: Request) -> Response:
        """Read the login form, and begin a session if name and password are right; Problem 403 with a proxy."""
        if self.door.proxy is not None:
            raise Problem(403, "proxy", "users are let in by the proxy; passwords are not used")
        form = await read_form(request)
        return await run_in_threadpool(self._login, form.get("name", ""), form.get("password", ""))

    def _login(self, name: str, password: str) -> Response:
        """Begin a session if name and password are right; else return the login page with status 403 or 429."""
        project = self.door.desk.project
        try:
            user = users.log_in(project.database, name, password)
        except DataError as error:
            return page("login", http_status=429, project=project.config.name, message=error.message)
        if user is None:
            return page("login", http_status=403, project=project.config.name, message="name or password is wrong")
        return self.door.enter(user, "password", is_tls=self.is_tls)

    async def unlock_page(self, request: Request) -> Response:
        """Return the page that asks for an idle session's password; a redirect to the login without a session."""
        session = await run_in_threadpool(self._session, request)
        if session is None:
            return RedirectResponse("/login", 303)
        config = self.door.desk.project.config
        return page("locked", project=config.name, name=session.user.name, csrf=session.csrf, message="")

    async def unlock(self, request: Request) -> Response:
        """Continue an idle session if the password in a form or message is right; without a session, lead to login."""
        session = await run_in_threadpool(self._session, request)
        if session is None:
            return RedirectResponse("/login", 303)
        form = await read_form(request)
        by_script = CSRF_HEADER in request.headers
        check_csrf(session, request.headers[CSRF_HEADER] if by_script else form.get("csrf", ""))
        return await run_in_threadpool(self._unlock, session, form.get("password", ""), by_script=by_script)

    def _unlock(self, session: Session, password: str, *, by_script: bool) -> Response:
        """Continue an idle session if the password is right; else the locked page, or Problem 403 (script) or 429."""
        project = self.door.desk.project
        try:
            right = users.unlock_session(project.database, session, password)
        except DataError as error:
            raise Problem(429, "too_many", error.message) from None
        if right:
            return Response(status_code=204) if by_script else RedirectResponse("/", 303)
        if by_script:
            raise Problem(403, "wrong_password", "the password is wrong")
        config = project.config
        message = "the password is wrong"
        return page(
            "locked", http_status=403, project=config.name, name=session.user.name, csrf=session.csrf, message=message
        )

    def _session(self, request: Request) -> Session | None:
        """Return the request's session without marking it as used; None if there is none."""
        return self.door.session(request.headers, request.cookies, touch=False)

    def logout(self, request: Request, user: User, form: dict[str, str]) -> Response:
        """End the session, and redirect to the login page."""
        users.end_session(self.door.desk.project.database, request.state.session)
        response = RedirectResponse("/login", 303)
        response.delete_cookie("chaffinch", path="/")
        return response
