"""An endpoint: its path, the types of its body and its answer, and the function that answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from chaffinch.errors import ConfigError, DataError, LimitError
from chaffinch.web.problems import JSON, Problem, answer, conflict

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path with its method, types and function.

    `answer` gets the decoded body (None for GET) and returns a value of the type `result`, or a Response if `result` is
    str. `is_open`: no token is asked. `docs` is a paragraph for the OpenAPI document, and
    `example` a body.
    """

    path: str
    method: Literal["GET", "POST"]
    answer: Callable[[Any], Awaitable[Any]]
    result: Any
    body: Any = None
    is_open: bool = False
    media_type: str = JSON
    docs: str = ""
    example: Any = None

    @property
    def route(self) -> Route:
        """Return the route that decodes a body, calls the endpoint and encodes its answer; our errors become 409."""
        decoder = None if self.body is None else msgspec.json.Decoder(self.body, strict=True)

        async def respond(request: Request) -> Response:
            """Decode the body, call the endpoint, answer with JSON; ConfigError and DataError become Problem 409."""
            body = None if decoder is None else await read_body(request, decoder)
            try:
                result = await self.answer(body)
            except LimitError:
                raise
            except (ConfigError, DataError) as error:  # the body fits its description, or it would not have come so far
                raise conflict(error) from None
            return result if isinstance(result, Response) else answer(result)

        return Route(PREFIX + self.path, respond, methods=[self.method])


async def read_body(request: Request, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Return the decoded body of a request; raise Problem, without a word of it, if it is not what is expected."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Problem(415, "not_json", f"send {JSON}")
    return decode(await request.body(), decoder)


def decode(content: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Return JSON decoded into a type; raise Problem that says where it does not fit, and never what is there."""
    try:
        return _decode_strictly(content, decoder)
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid", describe_misfit(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Problem(400, "not_json", "the body is no JSON in UTF-8") from None
    except RecursionError:
        raise Problem(400, "not_json", "the body is nested too deeply") from None


def _decode_strictly(content: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Return JSON decoded into a type; a number like 5.0 is a whole number, as JSON Schema has it."""
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as error:
        if "got `float`" not in str(error):
            raise
    return msgspec.convert(_whole_numbers(msgspec.json.decode(content)), decoder.type)


def _whole_numbers(value: Any) -> Any:
    """Return a JSON value with every float that is a whole number as an int."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole_numbers(each) for each in value]
    if isinstance(value, dict):
        return {key: _whole_numbers(each) for key, each in value.items()}
    return value


def describe_misfit(message: str) -> str:
    """Return the JSON decoder's error message with its place, without names and values that the client sent.

    >>> describe_misfit("Object contains unknown field `Penn` - at `$.documents[0]`")
    'Object contains unknown field - at `$.documents[0]`'
    >>> describe_misfit("Invalid enum value 'Penn' - at `$.aggregator`")
    'Invalid enum value - at `$.aggregator`'
    """
    what, mark, where = message.rpartition(" - at ")
    if not mark:
        what, where = message, ""
    for start in ("Object contains unknown field", "Invalid enum value", "Invalid value"):
        if what.startswith(start):
            what = start
    return what + mark + where
