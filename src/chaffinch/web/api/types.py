"""The JSON of the REST interface: what requests and answers hold. Offsets are code points, the end is exclusive."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from chaffinch.deid.dates.order import DateOrder

_Offset: TypeAlias = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]
_Label: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]


class _In(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of what clients send; a field that we do not know has no effect, so it is refused."""


class _Out(msgspec.Struct, frozen=True):
    """The base of what clients get."""


class InputDocument(_In, frozen=True, kw_only=True):
    """A document: its text; an id that its answer repeats; the patient, whose documents are read together."""

    text: str
    id: _Name | None = None
    patient: _Name | None = None


class InputSpan(_In, frozen=True, kw_only=True):
    """A labelled stretch of text."""

    start: _Offset
    end: _Offset
    label: _Label


class FoundSpan(_Out, frozen=True, kw_only=True):
    """A labelled stretch of text that was found; `score` is the chance that it is right, calibrated for detectors."""

    start: int
    end: int
    label: str
    score: float
    source: str = ""


class DetectRequest(_In, frozen=True, kw_only=True):
    """Find identifiers. `model`: a detector of the server. `recall`: the share of identifiers to aim for."""

    documents: Annotated[list[InputDocument], Meta(min_length=1)]
    model: _Name | None = None
    recall: Annotated[float, Meta(ge=0, le=1)] | None = None


class TagRequest(_In, frozen=True, kw_only=True):
    """Find the spans of a tagger, with their confidence. `model`: a tagger of the server."""

    documents: Annotated[list[InputDocument], Meta(min_length=1)]
    model: _Name


class SpanDocument(_Out, frozen=True, kw_only=True):
    """A document's id and the spans that were found in it."""

    id: str | None
    spans: list[FoundSpan]


class SpanAnswer(_Out, frozen=True, kw_only=True):
    """The spans of all documents, in their order, and the model that found them."""

    model: str
    documents: list[SpanDocument]


class DeidentifyRequest(_In, frozen=True, kw_only=True):
    """Release documents without their identifiers.

    `policy` and `secret` are names that the server knows. A policy that draws surrogates or shifts dates needs a
    secret, and the patient of each document, or `each_document_a_patient`, and then ids. `date_order` reads 03/04/1998.
    """

    documents: Annotated[list[InputDocument], Meta(min_length=1)]
    model: _Name | None = None
    recall: Annotated[float, Meta(ge=0, le=1)] | None = None
    policy: _Name | None = None
    secret: _Name | None = None
    date_order: DateOrder = "auto"
    each_document_a_patient: bool = False


class Replacement(_Out, frozen=True, kw_only=True):
    """What was replaced, in the original and in the released text."""

    start: int
    end: int
    label: str
    operator: str
    out_start: int
    out_end: int


class ReleasedDocument(_Out, frozen=True, kw_only=True):
    """A document that is released, with its new text, or withheld, with the reason and no text.

    `pseudonym` and `patient_pseudonym` are keyed by the secret; null without one.
    """

    id: str | None
    status: Literal["released", "withheld"]
    text: str | None
    reason: str | None
    replacements: list[Replacement]
    pseudonym: str | None = None
    patient_pseudonym: str | None = None


class DeidentifyAnswer(_Out, frozen=True, kw_only=True):
    """All documents, in their order, and how many are released and withheld."""

    model: str
    policy: str
    secret: str | None
    released: int
    withheld: int
    documents: list[ReleasedDocument]


class VotedDocument(_In, frozen=True, kw_only=True):
    """A document with the spans of each source; a source that is named and has no span found nothing."""

    text: str
    votes: dict[_Name, list[InputSpan]]
    id: _Name | None = None


class AggregateRequest(_In, frozen=True, kw_only=True):
    """Join the votes of sources: by a fitted aggregator of the server, or by a rule that needs none."""

    documents: Annotated[list[VotedDocument], Meta(min_length=1)]
    model: _Name | None = None
    rule: Literal["union", "token-vote", "span-vote", "longest-span"] | None = None


# A model or a rule, and not both: of two fields, one is a string and the other null or missing.
_MODEL_OR_RULE = {
    "oneOf": [
        {"required": [given], "properties": {given: {"type": "string"}, other: {"type": "null"}}}
        for given, other in (("model", "rule"), ("rule", "model"))
    ]
}
AggregateBody: TypeAlias = Annotated[AggregateRequest, Meta(extra_json_schema=_MODEL_OR_RULE)]


class EntityDocument(_In, frozen=True, kw_only=True):
    """A document and its entities, between which relations are looked for."""

    text: str
    spans: list[InputSpan] = []
    id: _Name | None = None


class RelateRequest(_In, frozen=True, kw_only=True):
    """Extract relations. `model`: an extractor of the server."""

    documents: Annotated[list[EntityDocument], Meta(min_length=1)]
    model: _Name


class FoundArgument(_Out, frozen=True, kw_only=True):
    """A role of a relation and the mentions that fill it."""

    role: str
    spans: list[FoundSpan]


class FoundRelation(_Out, frozen=True, kw_only=True):
    """A relation between mentions, with its confidence."""

    label: str
    score: float
    arguments: list[FoundArgument]


class RelatedDocument(_Out, frozen=True, kw_only=True):
    """A document's id and its relations."""

    id: str | None
    relations: list[FoundRelation]


class RelateAnswer(_Out, frozen=True, kw_only=True):
    """The relations of all documents, in their order, and the model that found them."""

    model: str
    documents: list[RelatedDocument]


class ExplainRequest(_In, frozen=True, kw_only=True):
    """Explain spans of one document: of a detector, all that it finds; of a tagger, all it finds or the one given.

    `top`: features of each voice. `with_text`: features quote the document, and the model's training text.
    """

    document: InputDocument
    model: _Name | None = None
    span: InputSpan | None = None
    top: Annotated[int, Meta(ge=0, le=100)] = 12
    with_text: bool = False


class ExplainedFeature(_Out, frozen=True, kw_only=True):
    """A feature, the token that it is about, and its weight in favour of the span."""

    name: str
    weight: float
    start: int
    end: int
    quote: str | None


class ExplainedState(_Out, frozen=True, kw_only=True):
    """A token on the path of a tagger, and the state that reads it."""

    state: str
    start: int
    end: int
    quote: str | None


class ExplainedVoice(_Out, frozen=True, kw_only=True):
    """What one voice says of a span: a pattern, a list, a tagger, the contextual reader, a repeated word."""

    kind: str
    name: str
    spans: list[FoundSpan]
    chance: float | None
    margin: float | None
    features: list[ExplainedFeature]
    path: list[ExplainedState]
    remarks: list[str] | None


class SpanExplanation(_Out, frozen=True, kw_only=True):
    """Why a span is one: the voices that spoke, its chance and threshold, and what would be there instead."""

    span: FoundSpan
    chance: float | None
    threshold: float | None
    runner_up: list[FoundSpan]
    voices: list[ExplainedVoice]


class ExplainAnswer(_Out, frozen=True, kw_only=True):
    """The explanations of the spans, in the order of the document."""

    model: str
    id: str | None
    explanations: list[SpanExplanation]


class LoadedModel(_Out, frozen=True, kw_only=True):
    """A model of the server: what it is good for, its labels and the checksum of its file; null where it has none."""

    name: str
    use: list[Literal["detect", "deidentify", "tag", "aggregate", "relate", "explain"]]
    kind: str
    labels: list[str]
    checksum: str | None


class ModelsAnswer(_Out, frozen=True, kw_only=True):
    """What requests can name, and what they get if they name nothing."""

    models: list[LoadedModel]
    policies: list[str]
    secrets: list[str]
    default_model: str
    default_policy: str
