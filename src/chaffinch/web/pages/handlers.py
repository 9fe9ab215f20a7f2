"""Handlers of requests: plain functions in threads, with the session checked and errors in the station's words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from chaffinch.errors import ConfigError, DataError
from chaffinch.web.pages.access import CSRF_HEADER, check_csrf, session_of
from chaffinch.web.problems import Problem, answer
from chaffinch.web.review.desk import Forbidden
from chaffinch.web.review.store.users import User

Form: TypeAlias = dict[str, str]
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def page_endpoint(make: Callable[[Request, User], Response]) -> Endpoint:
    """Return an endpoint that calls `make` with the request and the logged-in user, and answers with its page."""

    async def endpoint(request: Request) -> Response:
        """Call `make` in a thread, and return its page."""
        return await run_in_threadpool(_call_as_problem, make, request, session_of(request).user)

    return endpoint


def message_endpoint(do: Callable[[Request, User, bytes], Any]) -> Endpoint:
    """Return an endpoint for a script's message: check the CSRF header, call `do` with the body, answer with JSON."""

    async def endpoint(request: Request) -> Response:
        """Check the CSRF header, call `do` with the body in a thread, and answer with its result as JSON."""
        session = session_of(request)
        check_csrf(session, request.headers.get(CSRF_HEADER, ""))
        body = await request.body()
        return answer(await run_in_threadpool(_call_as_problem, do, request, session.user, body))

    return endpoint


def data_endpoint(make: Callable[[Request, User], Any]) -> Endpoint:
    """Return an endpoint that answers a script with the JSON of what `make` returns."""

    async def endpoint(request: Request) -> Response:
        """Call `make` in a thread, and answer with JSON."""
        return answer(await run_in_threadpool(_call_as_problem, make, request, session_of(request).user))

    return endpoint


def form_endpoint(do: Callable[[Request, User, Form], Response]) -> Endpoint:
    """Return an endpoint for a form: check its CSRF field, call `do` with its fields, answer with its page."""

    async def endpoint(request: Request) -> Response:
        """Check the form's CSRF field, call `do` with the form in a thread, and return its response."""
        session = session_of(request)
        form = await read_form(request)
        check_csrf(session, form.get("csrf", ""))
        return await run_in_threadpool(_call_as_problem, do, request, session.user, form)

    return endpoint


async def read_form(request: Request) -> Form:
    """Return the fields of a URL-encoded form; raise Problem if it has another type or cannot be read."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise Problem(415, "wrong_type", "send the form of the page")
    try:
        return dict(parse_qsl((await request.body()).decode("utf-8"), keep_blank_values=True, max_num_fields=50))
    except (ValueError, UnicodeDecodeError):
        raise Problem(400, "bad_form", "the form cannot be read; load the page again") from None


def number_of(request: Request) -> int:
    """Return the number in the request's path."""
    return int(request.path_params["number"])


def _call_as_problem(do: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns; turn Forbidden, DataError and ConfigError into Problem 403, 409 and 400."""
    try:
        return do(*arguments)
    except Forbidden as error:
        raise Problem(403, "forbidden", str(error)) from None
    except DataError as error:
        raise Problem(409, "refused", error.message) from None
    except ConfigError as error:
        raise Problem(400, "refused", str(error)) from None
