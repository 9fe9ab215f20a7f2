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
