"""`chaffinch explain`: why a model finds its spans, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from chaffinch import bundle
from chaffinch.cli import frame
from chaffinch.cli.frame.results import ExplainedDocument, ExplainedSpan, ExplainResult
from chaffinch.cli.train import inputs
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.loading import load
from chaffinch.models.tagger import Tagger
from chaffinch.text import Document
from chaffinch.text.explanation import Explanation
from chaffinch.text.formats import ReadOptions, read

Explained = tuple[Document, list[Explanation]]

SpanNumber = Annotated[
    int | None, typer.Option("--span", metavar="N", min=1, help="Explain this span alone, in full; 1 is the first.")
]
WithText = Annotated[
    bool, typer.Option("--with-text", help="Quote the document and the model's words; else offsets alone.")
]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplainOptions:
    """The options of `chaffinch explain`."""

    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file, or the name of a packaged model.")]
    source: Annotated[Path, typer.Argument(metavar="DOC", help="A file or folder of documents, in any format.")]
    span: SpanNumber = None
    with_text: WithText = False
    layer: Annotated[
        str | None, typer.Option("--layer", help="Explain the spans of this layer of DOC in place of those found.")
    ] = None
    from_: frame.From = None
    text_column: frame.TextColumns = field(default_factory=list)
    id_column: frame.IdColumn = None
    patient_column: frame.PatientColumn = None
    max_chars: frame.MaxChars = frame.DEFAULT_MAX_CHARS
    json: frame.Json = False
    quiet: frame.Quiet = False
    config: frame.Config = None


@frame.takes(ExplainOptions)
def explain_command(options: ExplainOptions) -> None:
    """chaffinch explain notes.cfm note.txt --span 1 --with-text

    Explain the spans that a tagger finds in documents: the features or states that speak for each, how far it is ahead,
    and what would be there instead. Without --span, one line per voice; with it, or with --json, everything. Documents
    and spans are numbered as they come. Identifiers have more voices: chaffinch deid explain.
    """
    kind = bundle.read_manifest(options.model).kind
    tagger = load(options.model)
    if not isinstance(tagger, Tagger):
        remedy = "use chaffinch deid explain" if kind == "deid" else "give a model of chaffinch train"
        raise ModelError(f"is a model of kind {kind!r}, which is no tagger; {remedy}", path=bundle.find(options.model))
    split = inputs.split_of_training(tagger) or "prose"
    how = ReadOptions(split=split, max_chars=options.max_chars, columns=frame.columns_of(options))
    corpus = read(options.source, format=options.from_, how=how)
    documents = frame.progress(corpus, "documents", quiet=options.quiet)
    told = [(doc, list(_explain_spans(tagger, doc, options.layer))) for doc in documents]
    print_explanations(options.model, told, span=options.span, with_text=options.with_text, as_json=options.json)


def _explain_spans(tagger: Tagger, doc: Document, layer: str | None) -> Iterator[Explanation]:
    """Yield the explanation of each span of `layer`, or of what the tagger finds; DataError if the layer is missing."""
    if layer is not None and layer not in doc.layers:
        raise DataError("a document has no layer of the name given with --layer; leave it out")
    spans = (
        next(iter(tagger.annotate([doc], confidence=True))).layer(tagger.layer) if layer is None else doc.layer(layer)
    )
    for span in spans:
        yield tagger.explain(doc, span)


def print_explanations(
    model: str, told: Sequence[Explained], *, span: int | None, with_text: bool, as_json: bool
) -> None:
    """Print explanations as JSON or words, brief, or in full for one span; ConfigError if there is no such span."""
    number = sum(len(found) for _, found in told)
    if span is not None and span > number:
        raise ConfigError(f"--span {span}: {_describe_choice(number)}")
    documents = list(_document_rows(told, span, with_text))
    result = ExplainResult(model=model, documents=documents, spans=number)
    frame.emit(result, as_json=as_json, tables=_terminal_lines(told, span, with_text))


def _describe_choice(number: int) -> str:
    """Return what to give in place of a span number that is too high."""
    if number < 2:
        return f"{'one' if number else 'no'} span was found; leave out --span"
    return f"{number} spans were found; choose one of them"


def _document_rows(told: Sequence[Explained], only: int | None, with_text: bool) -> Iterator[ExplainedDocument]:
    """Yield the result rows of documents with explanations, all or only that of span `only`; text if asked."""
    for number, (doc, found) in _number_spans(told, only):
        spans = [
            msgspec.convert(
                {
                    "number": place,
                    "text": doc.text[why.span.start : why.span.end] if with_text else None,
                    **why.to_dict(with_text=with_text),
                },
                ExplainedSpan,
            )
            for place, why in found
        ]
        yield ExplainedDocument(document=number, spans=spans)


def _number_spans(
    told: Sequence[Explained], only: int | None
) -> Iterator[tuple[int, tuple[Document, list[tuple[int, Explanation]]]]]:
    """Yield (document number, (document, [(span number, explanation)])), from 1; with `only`, that span's alone."""
    place = 0
    for number, (doc, found) in enumerate(told, start=1):
        chosen = [(place + k, why) for k, why in enumerate(found, start=1) if only in (None, place + k)]
        place += len(found)
        if chosen:
            yield number, (doc, chosen)


def _terminal_lines(told: Sequence[Explained], only: int | None, with_text: bool) -> Iterable[str]:
    """Yield the lines for a terminal: brief explanations of all spans, or the full one of span `only`."""
    if not any(found for _, found in told):
        yield "no span was found"
    for number, (doc, found) in _number_spans(told, only):
        yield f"document {number}"
        for place, why in found:
            quoted = f" {' '.join(doc.text[why.span.start : why.span.end].split())}" if with_text else ""
            yield f"span {place}{quoted}"
            words = why.in_words(with_text=with_text)
            brief = [line for line in words.splitlines() if not line.startswith("  ")]
            yield from (f"  {line}" for line in (words.splitlines() if only is not None else brief))
