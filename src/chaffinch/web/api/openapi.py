"""The OpenAPI document of the REST interface, made from the types of its endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import msgspec

from chaffinch.web.api.endpoints import PREFIX, Endpoint
from chaffinch.web.problems import JSON, ErrorBody

_REFERENCE = "#/components/schemas/{name}"
# Why requests are refused, whatever the endpoint.
_REFUSALS = {
    400: "The request is wrong: no JSON, or a setting that cannot be.",
    401: "No token, or another one than the server's.",
    403: "A page of another site sent the request.",
    404: "The server has no model, policy or secret of this name.",
    405: "The path does not take this method.",
    408: "The body arrived too slowly.",
    409: "This model cannot do what is asked.",
    413: "The body or a document is too large.",
    415: "The body is no application/json.",
    421: "The Host header names another server.",
    422: "The body does not fit its description, or its documents cannot be processed.",
    429: "The server is busy; try again after the seconds in the header Retry-After.",
    500: "A failure; the server's log has a line with this id.",
    501: "A package that this needs is not installed on the server.",
    503: "The answer took longer than the server allows.",
}


def openapi(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the endpoints, with the schemas of their bodies, results and errors."""
    types = [kind for each in endpoints for kind in (each.body, each.result) if kind not in (None, str)]
    unique = list(dict.fromkeys([*types, ErrorBody]))
    shapes, components = msgspec.json.schema_components(unique, ref_template=_REFERENCE)
    schemas = dict(zip(unique, shapes, strict=True))
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


def _operation(endpoint: Endpoint, schemas: dict[Any, Any]) -> dict[str, Any]:
    """Return the OpenAPI entry of one endpoint: words of its docstring, body, result, refusals and whether open."""
    summary, _, rest = endpoint.docs.partition("\n\n")
    shape = {"type": "string"} if endpoint.result is str else schemas[endpoint.result]
    responses: dict[str, Any] = {"200": {"description": "Done.", "content": {endpoint.media_type: {"schema": shape}}}}
    refused = {"content": {JSON: {"schema": schemas[ErrorBody]}}}
    for status, words in _REFUSALS.items():
        responses[str(status)] = {"description": words, **refused}
    operation: dict[str, Any] = {
        "operationId": endpoint.path.strip("/").replace("/", "_").replace(".", "_"),
        "summary": summary,
        "description": rest or summary,
        "responses": responses,
        "security": [] if endpoint.is_open else [{"token": []}],
    }
    if endpoint.body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": schemas[endpoint.body]}}}
    return operation
