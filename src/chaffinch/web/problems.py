"""Errors of the service: a status, a code and a sentence for the client, and an id that leads to a line of the log.

A client gets words only where they are ours and hold no text; every other failure is answered by its id alone.
"""

from __future__ import annotations

import logging
import secrets
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from chaffinch.errors import ChaffinchError, ConfigError, DataError, LimitError, MissingExtraError, outcome

LOG = logging.getLogger("chaffinch.web")
JSON = "application/json"

# What a client is answered for statuses of the router; its own words could repeat the path.
_ROUTER = {404: ("not_found", "no such path"), 405: ("method_not_allowed", "this path does not take this method")}
_BUSY = 429
_CONFLICT = 409


class Problem(Exception):  # noqa: N818  (the words of RFC 9457)
    """A request that is refused: the status, a code for programs, a sentence for people, without document text."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        """Keep HTTP status, error code, message and headers of the answer."""
        super().__init__(status, code, message, headers)
        self.status, self.code, self.message, self.headers = status, code, message, dict(headers or {})


def busy(seconds: int) -> Problem:
    """Return a Problem (429) with advice to try again after these seconds."""
    message = f"the server is busy; try again in {seconds} s"
    return Problem(_BUSY, "busy", message, {"retry-after": str(seconds)})


def conflict(error: ConfigError | DataError) -> Problem:
    """Return a Problem (409) for a request that fits its description and contradicts itself or what the server has."""
    worded = problem_of(error, "")
    return Problem(_CONFLICT, worded.code, worded.message)


def new_id() -> str:
    """Return a random id for a request, 16 hex digits."""
    return secrets.token_hex(8)


def problem_of(error: BaseException, request_id: str) -> Problem:
    """Return the Problem to answer an error with; log an error that is not ours, by type and place alone."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        code, message = _ROUTER.get(error.status_code, ("refused", "the request is refused"))
        return Problem(error.status_code, code, message, dict(error.headers or {}))
    status = outcome(error).http_status
    if isinstance(error, ChaffinchError):
        message = error.message if isinstance(error, DataError) else str(error)  # without the path of a file
        return Problem(status, _code_of(error), message)
    LOG.error("request %s failed with %s at %s", request_id, type(error).__name__, _place_of(error))
    return Problem(status, "internal", "internal error; the log of the server has a line with this id")


def _code_of(error: ChaffinchError) -> str:
    """Return the code of one of our errors: too_large, not_installed, bad_data, or else bad_request."""
    if isinstance(error, LimitError):
        return "too_large"
    if isinstance(error, MissingExtraError):
        return "not_installed"
    return "bad_data" if isinstance(error, DataError) else "bad_request"


def _place_of(error: BaseException) -> str:
    """Return the last four files and lines at which an error was raised, innermost first; never its words."""
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-4:])) or "unknown"


class ErrorBody(msgspec.Struct, frozen=True):
    """The answer to a request that failed: a sentence, a code for programs, and the id of the request."""

    error: str
    code: str
    id: str


def error_body(problem: Problem, request_id: str) -> dict[str, Any]:
    """Return the usual body of an error as a dict: message, code and request id."""
    return msgspec.to_builtins(ErrorBody(problem.message, problem.code, request_id))  # type: ignore[no-any-return]


def answer(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with a value as JSON."""
    return Response(msgspec.json.encode(content), status, headers, JSON)
