"""spaCy components: `nlp.add_pipe("chaffinch_deid")` finds identifiers, `"chaffinch_tagger"` the spans of any model.

spaCy finds them by name once Chaffinch is installed (entry points of the group `spacy_factories`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from chaffinch.errors import ConfigError, MissingExtraError

try:
    from spacy.language import Language
except ImportError:
    raise MissingExtraError("spacy", "spacy") from None

from chaffinch.deid.detect.detector import HybridDetector, detector
from chaffinch.loading import load
from chaffinch.models.tagger import Tagger
from chaffinch.text import Document, Span
from chaffinch.weak import WeakTagger

DEID, TAGGER = "chaffinch_deid", "chaffinch_tagger"


@dataclass(frozen=True, slots=True, eq=False)
class SpanComponent:
    """A component that writes a model's spans to `doc.spans[spans_key]`, with scores, and to `doc.ents`.

    Offsets are exact; a span that ends inside a token of spaCy is widened to the whole token, so that nothing of an
    identifier is left out. Earlier entities that touch one of ours give way to it.
    """

    model: Any = field(repr=False)
    layer: str
    spans_key: str
    set_ents: bool = True

    def __call__(self, doc: Any) -> Any:
        """Add the model's spans to a spaCy document in place, and return it."""
        return self._add([doc])[0]

    def pipe(self, stream: Iterable[Any], *, batch_size: int = 128) -> Iterator[Any]:
        """Add spans to spaCy documents in place, a batch at a time (much quicker than one by one), and yield them."""
        docs = iter(stream)
        while batch := list(islice(docs, batch_size)):
            yield from self._add(batch)

    def _add(self, docs: Sequence[Any]) -> list[Any]:
        """Add the model's spans to spaCy documents in place, and return these."""
        notes = [Document.make(doc.text, id=str(number)) for number, doc in enumerate(docs)]
        for doc, note in zip(docs, self._annotate(notes), strict=True):
            self._write(doc, note.layer(self.layer))
        return list(docs)

    def _annotate(self, notes: Sequence[Document]) -> Iterable[Document]:
        """Return copies of the documents with the model's layer; a Tagger adds calibrated confidence."""
        if isinstance(self.model, Tagger):
            return self.model.annotate(notes, confidence=True)
        annotated: Iterable[Document] = self.model.annotate(notes)
        return annotated

    def _write(self, doc: Any, spans: Sequence[Span]) -> None:
        """Put spans and scores into `doc.spans`; with `set_ents`, also into `doc.ents`, over those they overlap."""
        found = [doc.char_span(each.start, each.end, each.label, alignment_mode="expand") for each in spans]
        kept = [(span, each.score) for span, each in zip(found, spans, strict=True) if span is not None]
        doc.spans[self.spans_key] = [span for span, _ in kept]
        doc.spans[self.spans_key].attrs["scores"] = [float(score) for _, score in kept]
        if self.set_ents:
            ours = _without_overlaps([span for span, _ in kept])
            taken = {token for span in ours for token in range(span.start, span.end)}
            others = [ent for ent in doc.ents if taken.isdisjoint(range(ent.start, ent.end))]
            doc.set_ents([*ours, *others], default="unmodified")


def _without_overlaps(spans: Sequence[Any]) -> list[Any]:
    """Return spans that share no token, sorted; of overlapping ones the earlier, else the longer stays."""
    kept: list[Any] = []
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


@Language.factory(  # type: ignore[untyped-decorator]  # spaCy has no types here
    DEID,
    assigns=["doc.spans", "doc.ents"],
    default_config={"model": "deid-en", "recall": None, "fast": False, "spans_key": DEID, "set_ents": True},
)
def make_deid(
    nlp: Any,  # noqa: ARG001  (spaCy gives it by name)
    name: str,  # noqa: ARG001  (as above)
    model: str | None,
    recall: float | None,
    fast: bool,
    spans_key: str,
    set_ents: bool,
) -> SpanComponent:
    """Return the component that finds identifiers by a model's name or file, None: rules; ConfigError, ModelError."""
    find = detector(model, recall=recall, fast=fast)
    return SpanComponent(find, find.layer, spans_key, set_ents)


@Language.factory(  # type: ignore[untyped-decorator]  # as above
    TAGGER, assigns=["doc.spans", "doc.ents"], default_config={"spans_key": TAGGER, "set_ents": True}
)
def make_tagger(
    nlp: Any,  # noqa: ARG001  (as above)
    name: str,  # noqa: ARG001  (as above)
    model: str,
    spans_key: str,
    set_ents: bool,
) -> SpanComponent:
    """Return the component of a model file or packaged model that tags; ConfigError for other kinds; ModelError."""
    tagger = load(model)
    if not isinstance(tagger, Tagger | WeakTagger | HybridDetector):
        raise ConfigError("the model of this component tags nothing; give a file that `chaffinch train` wrote")
    return SpanComponent(tagger, tagger.layer, spans_key, set_ents)
