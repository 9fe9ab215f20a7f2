"""The OpenAPI document of the REST interface, made from the types of its endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, TypeAlias

import msgspec

from chaffinch.web.api.endpoints import PREFIX, Endpoint
from chaffinch.web.problems import JSON, ErrorBody
from chaffinch.web.security import REQUEST_ID

_REFERENCE = "#/components/schemas/{name}"
# Why requests are refused; those without a body cannot be refused for one.
_REFUSALS = {
    400: "The body is no JSON in UTF-8.",
    401: "No token, or another one than the server's.",
    403: "A page of another site sent the request.",
    404: "The server has no model, policy or secret of this name.",
    405: "The path does not take this method.",
    408: "The body arrived too slowly.",
    409: "The body fits its description, and contradicts itself, its texts, or what the server has loaded.",
    413: "The body or a document is too large.",
    415: "The body is no application/json.",
    421: "The Host header names another server.",
    422: "The body does not fit its description.",
    429: "The server is busy; try again after the seconds in the header Retry-After.",
    500: "A failure; the server's log has a line with this id.",
    501: "A package that this needs is not installed on the server.",
    503: "The answer took longer than the server allows.",
}
_NO_TOKEN = 401
_WITHOUT_BODY = (_NO_TOKEN, 403, 405, 421, 500)
_Headers: TypeAlias = dict[str, tuple[str, dict[str, Any]]]  # descriptions and schemas by name
_HEADERS: dict[int, _Headers] = {  # that answers of a status have, beside the request's id
    401: {"WWW-Authenticate": ("The scheme that is asked for.", {"type": "string"})},
    405: {"Allow": ("The methods that the path takes.", {"type": "string"})},
    429: {"Retry-After": ("Seconds to wait.", {"type": "integer", "minimum": 1})},
    503: {"Retry-After": ("Seconds to wait.", {"type": "integer", "minimum": 1})},
}
_EVERY_ANSWER: _Headers = {
    REQUEST_ID: ("The id of the request, which the server's log has for failures.", {"type": "string"})
}


def openapi(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the endpoints, with the schemas of their bodies, results and errors."""
    types = [kind for each in endpoints for kind in (each.body, each.result) if kind not in (None, str)]
    shapes, components = msgspec.json.schema_components([*types, ErrorBody], ref_template=_REFERENCE)
    schemas = dict(zip(map(str, [*types, ErrorBody]), shapes, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        paths.setdefault(PREFIX + each.path, {})[each.method.lower()] = _operation(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Chaffinch",
            "version": version("chaffinch"),
            "description": "De-identification and sequence labelling of clinical text, on your own computers.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI entry of one endpoint: words of its docstring, body, result, refusals and whether open."""
    summary, _, rest = endpoint.docs.partition("\n\n")
    shape = {"type": "string"} if endpoint.result is str else schemas[str(endpoint.result)]
    responses = {"200": _response(200, "Done.", endpoint.media_type, shape)}
    for status in _refusals_of(endpoint):
        responses[str(status)] = _response(status, _REFUSALS[status], JSON, schemas[str(ErrorBody)])
    operation: dict[str, Any] = {
        "operationId": endpoint.path.strip("/").replace("/", "_").replace(".", "_"),
        "summary": summary,
        "description": rest or summary,
        "responses": responses,
        "security": [] if endpoint.is_open else [{"token": []}],
    }
    if endpoint.body is not None:
        content = {"schema": schemas[str(endpoint.body)], "example": endpoint.example}
        operation["requestBody"] = {"required": True, "content": {JSON: content}}
    return operation


def _refusals_of(endpoint: Endpoint) -> list[int]:
    """Return the statuses with which an endpoint refuses requests."""
    statuses = _WITHOUT_BODY if endpoint.body is None else _REFUSALS
    return [status for status in statuses if not (status == _NO_TOKEN and endpoint.is_open)]


def _response(status: int, words: str, media_type: str, shape: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI entry of an answer: its words, its body's schema, and its headers."""
    headers = {
        name: {"description": description, "required": True, "schema": schema}
        for name, (description, schema) in {**_EVERY_ANSWER, **_HEADERS.get(status, {})}.items()
    }
    return {"description": words, "headers": headers, "content": {media_type: {"schema": shape}}}
