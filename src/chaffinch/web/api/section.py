"""The section /api/v1 of the service."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

import msgspec
from starlette.responses import Response

from chaffinch.web.api import examples, types
from chaffinch.web.api.deidentify import Deidentify
from chaffinch.web.api.endpoints import PREFIX, Endpoint
from chaffinch.web.api.explain import explain_document
from chaffinch.web.api.openapi import openapi
from chaffinch.web.api.operations import Operations
from chaffinch.web.api.reference import ICON, STYLE, reference, static_file
from chaffinch.web.metrics import MEDIA_TYPE, Metrics
from chaffinch.web.problems import JSON
from chaffinch.web.sections import Section

_DETECT = """Find identifiers.

Spans do not overlap; their scores are calibrated. Documents of one patient are read together: a name found in one is
found in all."""
_DEIDENTIFY = """Release documents without their identifiers.

The result equals that of `chaffinch deid` on the same documents. A document that fails is withheld, with the reason;
the others are released."""
_TAG = """Find the spans of a tagger, with their confidence."""
_AGGREGATE = """Join the votes of sources: by a fitted aggregator, or by a rule."""
_RELATE = """Extract relations between entities."""
_EXPLAIN = """Explain why spans were found.

Offsets alone, unless `with_text` asks for the words."""
_MODELS = """List the models, policies and secrets by name."""


class Health(msgspec.Struct, frozen=True):
    """That the service answers, and its version."""

    status: str
    version: str


def service_endpoints(do: Operations) -> tuple[Endpoint, ...]:
    """Return the endpoints that detect, de-identify, tag, aggregate, relate and explain."""
    release = Deidentify(do.engine, do.queue, do.limits)
    explain = partial(explain_document, do)
    bodies = (
        ("/detect", do.detect, types.SpanAnswer, types.DetectRequest, _DETECT, examples.DETECT),
        ("/deidentify", release, types.DeidentifyAnswer, types.DeidentifyRequest, _DEIDENTIFY, examples.DEIDENTIFY),
        ("/tag", do.tag, types.SpanAnswer, types.TagRequest, _TAG, examples.TAG),
        ("/aggregate", do.aggregate, types.SpanAnswer, types.AggregateBody, _AGGREGATE, examples.AGGREGATE),
        ("/relate", do.relate, types.RelateAnswer, types.RelateRequest, _RELATE, examples.RELATE),
        ("/explain", explain, types.ExplainAnswer, types.ExplainRequest, _EXPLAIN, examples.EXPLAIN),
    )
    posts = [
        Endpoint(path, "POST", answer, result, body, docs=docs, example=example)
        for path, answer, result, body, docs, example in bodies
    ]
    return (*posts, Endpoint("/models", "GET", do.models, types.ModelsAnswer, docs=_MODELS))


def api_section(metrics: Metrics, endpoints: Sequence[Endpoint] = ()) -> Section:
    """Return the section of the REST interface: health, metrics, its description, and the endpoints given."""

    async def health(_: None) -> Health:
        """Answer that the server is up, with its version."""
        return Health("ok", version("chaffinch"))

    async def counts(_: None) -> Response:
        """Answer with the metrics in Prometheus' text format."""
        return Response(metrics.text(), media_type=MEDIA_TYPE)

    async def describe(_: None) -> dict[str, Any]:
        """Answer with the OpenAPI document."""
        return document

    async def show(_: None) -> Response:
        """Answer with the reference page."""
        return Response(page, media_type="text/html")

    async def show_style(_: None) -> Response:
        """Answer with the style sheet of the reference page."""
        return Response(static_file(STYLE), media_type="text/css")

    async def show_icon(_: None) -> Response:
        """Answer with the icon of the reference page."""
        return Response(static_file(ICON), media_type="image/svg+xml")

    opened = (
        ("/health", health, Health, JSON, "Tell that the service answers."),
        ("/openapi.json", describe, dict[str, Any], JSON, "Return the description of this interface."),
        ("/docs", show, str, "text/html", "Show this interface as a page."),
        (STYLE, show_style, str, "text/css", "Return the style sheet of the page."),
        (ICON, show_icon, str, "image/svg+xml", "Return the icon of the page."),
    )
    every = [
        Endpoint(path, "GET", answer, result, is_open=True, media_type=media_type, docs=docs)
        for path, answer, result, media_type, docs in opened
    ]
    every.append(
        Endpoint(
            "/metrics", "GET", counts, str, media_type="text/plain", docs="Return counts and times, for Prometheus."
        )
    )
    every += endpoints
    document = openapi(every)
    page = reference(document, PREFIX)
    open_paths = frozenset(PREFIX + each.path for each in every if each.is_open)
    return Section("api", (PREFIX,), [each.route for each in every], open_paths)
