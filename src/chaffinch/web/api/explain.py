"""Explanations of the REST interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from chaffinch.deid.detect.detector import HybridDetector
from chaffinch.deid.detect.explain import explain
from chaffinch.models.tagger import Tagger
from chaffinch.text import Document, Span
from chaffinch.text.explanation import Explanation
from chaffinch.web.api import types
from chaffinch.web.api.documents import check_sizes
from chaffinch.web.api.operations import Operations
from chaffinch.web.api.work import Work
from chaffinch.web.problems import Problem


async def explain_document(do: Operations, request: types.ExplainRequest) -> types.ExplainAnswer:
    """Explain the spans a model finds, or a tagger's given span, in the queue; Problem if it cannot."""
    name = request.model or do.engine.default_detector
    model = do.engine.tagger(name)
    if not isinstance(model, HybridDetector | Tagger):
        raise Problem(409, "wrong_model", "this model explains nothing; choose a detector or a tagger")
    if isinstance(model, HybridDetector) and request.span is not None:
        raise Problem(409, "wrong_model", "a detector explains all that it finds; leave out span")
    characters = check_sizes([request.document], do.limits)

    def run(_: Sequence[Any]) -> list[list[Explanation]]:
        """Explain in the worker: what a detector finds, or a tagger's given span or finds, `top` features each."""
        doc = Document.make(request.document.text, id="document")
        if isinstance(model, HybridDetector):
            return [explain(doc, model, top=request.top)]
        given = request.span
        spans = model(doc).layer(model.layer) if given is None else [Span(given.start, given.end, given.label)]
        doc.with_layer("asked", spans)  # DataError if one is outside the text
        return [[_cut(model.explain(doc, span), request.top) for span in spans]]

    found = await do.queue.submit(Work(run, None, 1, characters))
    explained = [msgspec.convert(each.to_dict(with_text=request.with_text), types.SpanExplanation) for each in found]
    return types.ExplainAnswer(model=name, id=request.document.id, explanations=explained)


def _cut(explanation: Explanation, top: int) -> Explanation:
    """Return the explanation with only the `top` largest features of each voice."""
    voices = tuple(replace(voice, features=voice.features[:top]) for voice in explanation.voices)
    return replace(explanation, voices=voices)
