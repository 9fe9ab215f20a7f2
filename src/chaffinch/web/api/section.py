"""The section /api/v1 of the service."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import msgspec
from starlette.responses import Response

from chaffinch.web.api.endpoints import PREFIX, Endpoint
from chaffinch.web.api.openapi import openapi
from chaffinch.web.metrics import MEDIA_TYPE, Metrics
from chaffinch.web.sections import Section


class Health(msgspec.Struct, frozen=True):
    """That the service answers, and its version."""

    status: str
    version: str


def api_section(metrics: Metrics, endpoints: Sequence[Endpoint] = ()) -> Section:
    """Return the section of the REST interface: health, metrics, its description, and the endpoints given."""

    async def health(_: None) -> Health:
        return Health("ok", version("chaffinch"))

    async def counts(_: None) -> Response:
        return Response(metrics.text(), media_type=MEDIA_TYPE)

    async def describe(_: None) -> dict[str, Any]:
        return document

    every = (
        Endpoint("/health", "GET", health, Health, is_open=True, docs="Tell that the service answers."),
        Endpoint(
            "/metrics", "GET", counts, str, media_type="text/plain", docs="Return counts and times, for Prometheus."
        ),
        Endpoint(
            "/openapi.json",
            "GET",
            describe,
            dict[str, Any],
            is_open=True,
            docs="Return the description of this interface.",
        ),
        *endpoints,
    )
    document = openapi(every)
    open_paths = frozenset(PREFIX + each.path for each in every if each.is_open)
    return Section("api", (PREFIX,), [each.route for each in every], open_paths)
