"""Bodies of Presidio's requests: plain JSON, read field by field, refused in Presidio's words and with its statuses."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from chaffinch.web.api.endpoints import read_body
from chaffinch.web.problems import Problem

T = TypeVar("T")
_DECODER = msgspec.json.Decoder(Any)
_JSON_TYPES = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


async def read_object(request: Request) -> dict[str, Any]:
    """Return the body of a request; raise Problem if it is no JSON object."""
    body = await read_body(request, _DECODER)
    if not isinstance(body, dict):
        raise Problem(400, "invalid", "Invalid request json")
    return body


def field_of(body: dict[str, Any], name: str, kind: type[T], default: T) -> T:
    """Return a field; raise Problem if it has another type; null and a missing one are the default."""
    value = body.get(name)
    if value is None:
        return default
    fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not fits or (isinstance(value, bool) and kind is not bool):
        raise Problem(400, "invalid", f"Failed to parse request. {name} must be a {_JSON_TYPES.get(kind, 'value')}")
    return value  # type: ignore[no-any-return]  # checked above


def strings_of(body: dict[str, Any], name: str) -> list[str]:
    """Return a field that is a list of strings, [] if null or missing; Problem 400 if it is something else."""
    values: list[Any] = field_of(body, name, list, [])
    if not all(isinstance(value, str) for value in values):
        raise Problem(400, "invalid", f"Failed to parse request. {name} must be an array of strings")
    return values


def refuse(message: str, status: int = 422) -> Problem:
    """Return (not raise) a Problem with a message in Presidio's words; its status is 422 unless given."""
    return Problem(status, "invalid", message)
