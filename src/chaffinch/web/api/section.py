"""The section /api/v1 of the service."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

import msgspec
from starlette.responses import Response

from chaffinch.web.api import types
from chaffinch.web.api.deidentify import Deidentify
from chaffinch.web.api.endpoints import PREFIX, Endpoint
from chaffinch.web.api.explain import explain_document
from chaffinch.web.api.openapi import openapi
from chaffinch.web.api.operations import Operations
from chaffinch.web.metrics import MEDIA_TYPE, Metrics
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


class Health(msgspec.Struct, frozen=True):
    """That the service answers, and its version."""

    status: str
    version: str


def service_endpoints(do: Operations) -> tuple[Endpoint, ...]:
    """Return the endpoints that detect, de-identify, tag, aggregate, relate and explain."""
    release = Deidentify(do.engine, do.queue, do.limits)
    return (
        Endpoint("/detect", "POST", do.detect, types.SpanAnswer, types.DetectRequest, docs=_DETECT),
        Endpoint("/deidentify", "POST", release, types.DeidentifyAnswer, types.DeidentifyRequest, docs=_DEIDENTIFY),
        Endpoint("/tag", "POST", do.tag, types.SpanAnswer, types.TagRequest, docs=_TAG),
        Endpoint("/aggregate", "POST", do.aggregate, types.SpanAnswer, types.AggregateRequest, docs=_AGGREGATE),
        Endpoint("/relate", "POST", do.relate, types.RelateAnswer, types.RelateRequest, docs=_RELATE),
        Endpoint(
            "/explain", "POST", partial(explain_document, do), types.ExplainAnswer, types.ExplainRequest, docs=_EXPLAIN
        ),
        Endpoint(
            "/models", "GET", do.models, types.ModelsAnswer, docs="List the models, policies and secrets by name."
        ),
    )


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
