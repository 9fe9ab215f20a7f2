"""What the REST interface does besides releases: detect, tag, aggregate, relate, and list what the server holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from chaffinch import weak
from chaffinch.deid.detect.detector import HybridDetector
from chaffinch.models.tagger import Tagger
from chaffinch.text import Document, Span
from chaffinch.weak.aggregate import aggregate, check_votes
from chaffinch.web.api import types
from chaffinch.web.api.documents import check_sizes, found_spans, make_documents, make_spans
from chaffinch.web.api.engine import Engine
from chaffinch.web.api.work import Work, WorkQueue
from chaffinch.web.problems import Problem
from chaffinch.web.settings import Limits

LAYER = "aggregate"
_RULES = {
    "union": weak.Union, "token-vote": weak.TokenVote, "span-vote": weak.SpanVote, "longest-span": weak.LongestSpan,
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Operations:
    """The functions of endpoints: each decodes its request, gives work to the queue and words the answer."""

    engine: Engine
    queue: WorkQueue
    limits: Limits

    async def detect(self, request: types.DetectRequest) -> types.SpanAnswer:
        """Answer with the identifiers that a detector finds in the request's documents."""
        spans = await self.find_spans(request.documents, request.model, request.recall)
        return _span_answer(request.model or self.engine.default_detector, request.documents, spans)

    async def find_spans(
        self, documents: Sequence[types.InputDocument], model: str | None, recall: float | None
    ) -> list[list[types.FoundSpan]]:
        """Return the identifiers of documents, found by a detector at a recall; None is the usual one."""
        name = model or self.engine.default_detector
        find = with_recall(self.engine.detector(name), recall)
        return await self._spans(documents, partial(_detect, find), ("detect", name, recall))

    async def tag(self, request: types.TagRequest) -> types.SpanAnswer:
        """Answer with the spans that a tagger finds in the request's documents."""
        tagger = self.engine.tagger(request.model)
        spans = await self._spans(request.documents, partial(_tag, tagger), ("tag", request.model))
        return _span_answer(request.model, request.documents, spans)

    async def aggregate(self, request: types.AggregateRequest) -> types.SpanAnswer:
        """Answer with spans aggregated from documents' votes by a model or a rule; Problem unless just one is given."""
        if (request.model is None) == (request.rule is None):
            raise Problem(422, "invalid", "give a model or a rule, and not both")
        fitted = None if request.model is None else self.engine.aggregator(request.model)
        characters = check_sizes(request.documents, self.limits)

        def run(_: Sequence[Any]) -> list[Any]:
            """Aggregate the votes by the rule or the fitted model; return a list with the spans of each document."""
            docs = [_document_with_votes(each, number) for number, each in enumerate(request.documents)]
            if fitted is None:
                found = aggregate(docs, _RULES[request.rule or ""](), layer=LAYER)
            else:
                check_votes(fitted, docs)
                found = fitted(docs, LAYER)
            return [[found_spans(doc.layer(LAYER)) for doc in found]]

        spans = await self.queue.submit(Work(run, None, len(request.documents), characters))
        return _span_answer(request.model or request.rule or "", request.documents, spans)

    async def relate(self, request: types.RelateRequest) -> types.RelateAnswer:
        """Answer with the relations between the entities of the request's documents."""
        extractor = self.engine.extractor(request.model)
        characters = check_sizes(request.documents, self.limits)

        def run(_: Sequence[Any]) -> list[Any]:
            """Extract relations between the given spans; return a list with those of each document."""
            docs = [
                Document.make(each.text, id=str(n), layers={"gold": make_spans(each.spans)})
                for n, each in enumerate(request.documents)
            ]
            return [[_found_relations(doc) for doc in extractor.annotate(docs)]]

        found = await self.queue.submit(Work(run, None, len(request.documents), characters))
        rows = zip(request.documents, found, strict=True)
        documents = [types.RelatedDocument(id=each.id, relations=relations) for each, relations in rows]
        return types.RelateAnswer(model=request.model, documents=documents)

    async def models(self, _: None) -> types.ModelsAnswer:
        """Answer with the names of the loaded models, policies and secrets that requests can use."""
        engine = self.engine
        return types.ModelsAnswer(
            models=[describe(name, model) for name, model in engine.models.items()],
            policies=sorted(engine.policies),
            secrets=sorted(engine.secrets),
            default_model=engine.default_detector,
            default_policy=engine.default_policy,
        )

    async def _spans(
        self, documents: Sequence[types.InputDocument], find: Callable[[Sequence[Document]], list[Any]], key: Any
    ) -> list[list[types.FoundSpan]]:
        """Return the spans that `find` gives for documents, in the queue; requests with one key run together."""
        characters = check_sizes(documents, self.limits)

        def run(payloads: Sequence[list[Document]]) -> list[Any]:
            """Run the model on the documents of several requests at once; return the spans of each request."""
            found = iter(find([doc for docs in payloads for doc in docs]))
            return [[found_spans(next(found)) for _ in docs] for docs in payloads]

        work = Work(run, make_documents(documents), len(documents), characters, key)
        return await self.queue.submit(work)  # type: ignore[no-any-return]  # what `run` returns for one payload


def with_recall(find: HybridDetector, recall: float | None) -> HybridDetector:
    """Return the detector at this recall, unchanged for None; Problem for rules alone, ConfigError without a dial."""
    if recall is None or recall == find.recall:
        return find
    if not find.model.taggers:
        raise Problem(409, "wrong_model", "recall sets the dial of a model, and rules have none; leave it out")
    find.model.dial.at(recall)
    return replace(find, recall=recall)


def _document_with_votes(document: types.VotedDocument, number: int) -> Document:
    """Return a request's document with a layer `source:NAME` of votes for each source; its id is the number."""
    layers = {f"source:{name}": make_spans(votes) for name, votes in document.votes.items()}
    return Document.make(document.text, id=str(number), layers=layers)


def _detect(find: HybridDetector, docs: Sequence[Document]) -> list[Sequence[Span]]:
    """Return the spans of identifiers in each document."""
    return [doc.layer(find.layer) for doc in find(docs)]


def _tag(tagger: Any, docs: Sequence[Document]) -> list[Sequence[Span]]:
    """Return a tagger's spans in each document, with confidence as their scores if it has one."""
    tagged = tagger.annotate(docs, confidence=True) if isinstance(tagger, Tagger) else tagger.annotate(docs)
    return [doc.layer(tagger.layer) for doc in tagged]


def _span_answer(
    model: str,
    documents: Sequence[types.InputDocument | types.VotedDocument],
    spans: Sequence[list[types.FoundSpan]],
) -> types.SpanAnswer:
    """Return the answer of a model: each document's id with its row of spans."""
    found = [types.SpanDocument(id=each.id, spans=row) for each, row in zip(documents, spans, strict=True)]
    return types.SpanAnswer(model=model, documents=found)


def _found_relations(doc: Document) -> list[types.FoundRelation]:
    """Return the relations of a document as answer types: label, score, arguments with spans."""
    return [
        types.FoundRelation(
            label=relation.label,
            score=float(relation.score),
            arguments=[
                types.FoundArgument(role=argument.role, spans=found_spans(argument.spans))
                for argument in relation.arguments
            ],
        )
        for relation in doc.relations
    ]


def describe(name: str, model: Any) -> types.LoadedModel:
    """Return what clients need of a loaded model: name, operations it is for, labels, checksum."""
    manifest = getattr(model, "manifest", None)
    if isinstance(model, HybridDetector):
        use, labels, checksum = (
            ["detect", "deidentify", "tag", "explain"],
            model.model.labels,
            model.model.digest or None,
        )
    elif isinstance(model, Tagger):
        use, labels, checksum = ["tag", "explain"], model.labels, None
    elif isinstance(model, weak.WeakTagger):
        use, labels, checksum = ["tag", "aggregate"], model.labels, None
    elif hasattr(model, "schema"):
        use, labels, checksum = ["relate"], (model.schema.name,), None
    else:
        use, labels, checksum = ["aggregate"], model.names, None
    kind = type(model).__name__ if manifest is None else manifest.kind
    return types.LoadedModel(name=name, use=use, kind=kind, labels=list(labels), checksum=checksum)  # type: ignore[arg-type]
