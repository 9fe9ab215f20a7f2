"""The source protocol: a name and a call from a document to spans.

A source votes for a label where it finds a span, votes "not an entity" with a span labelled O, and abstains anywhere
else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from chaffinch.checks import check_name, to_texts
from chaffinch.errors import ConfigError
from chaffinch.features.lexicon import Lexicon, read_phrases
from chaffinch.text import Document, Span
from chaffinch.weak.votes import SOURCE

Found: TypeAlias = Span | tuple[int, int] | tuple[int, int, str]  # a pair takes the label of its source
Phrases: TypeAlias = str | Path | Sequence[str]  # a file of one phrase per line, or the phrases

_WIDE = re.compile(r"\s{2,}")
UNFIT, SHAPELESS = "span outside the text", "not a span"


class Source(Protocol):
    """Any callable with a name. By default it builds on no other source, and its silence means nothing.

    Optional attributes: `label` (of bare offsets), `negative_reliable` (its silence means "not an
    entity"), `on` (names of the sources or layers it builds on), `layer` (where its spans go).
    """

    @property
    def name(self) -> str:
        """Return the name, which its layer of votes has too."""

    def __call__(self, doc: Document, /) -> Iterable[Found]:
        """Return what the source finds in the document: spans, or pairs of offsets."""


class SourceKind:
    """Base class of the built-in kinds of sources; class variables describe the kind.

    A module of this package that defines a subclass makes it a kind: `sources.toml` knows it by the name in `kind`, and
    its keys are the parameters of `factory`.
    """

    __slots__ = ()

    kind: ClassVar[str]
    in_files: ClassVar[bool] = True  # whether a project file may list it
    beyond_data: ClassVar[str] = ""  # what it is if it is not plain data, so that a model file cannot hold it
    slow: ClassVar[bool] = False  # whether a journal keeps its answers
    file_fields: ClassVar[tuple[str, ...]] = ()  # parameters whose text is always a file name
    place_fields: ClassVar[tuple[str, ...]] = ()  # parameters whose text is a file name if there is such a file
    model_fields: ClassVar[tuple[str, ...]] = ()  # those of them whose text is a model file or a packaged model's name

    @classmethod
    def factory(cls) -> Callable[..., Any]:
        """Return the callable that builds one source, or a list, from a table's keys: the class, unless overridden."""
        return cls

    def remark(self) -> str:
        """Return a hint on settings whose effect is easily overlooked; "" for none."""
        return ""

    def hint(self, docs: Sequence[Document]) -> str:
        """Return why it may have found nothing in the documents, without a word of them; "" if it cannot tell."""
        return ""


def kind_of(source: Source) -> str:
    """Return the name of a source's kind; "python" for a callable that is no `SourceKind`."""
    return source.kind if isinstance(source, SourceKind) else "python"


def is_plain_data(source: Source) -> bool:
    """Tell whether a source of votes is plain data (no code, no model), fit for other processes and for model files."""
    return isinstance(source, SourceKind) and not source.beyond_data


def layer_of(source: Source) -> str:
    """Return the layer of a source's spans: "source:NAME", or "link:NAME" for linking rules."""
    return str(getattr(source, "layer", SOURCE + source.name))


def needs(source: Source) -> tuple[str, ...]:
    """Return the names of the sources and layers that a source builds on."""
    return tuple(getattr(source, "on", ()))


def negative_reliable(sources: Iterable[Source]) -> tuple[str, ...]:
    """Return the names of the sources whose silence means "not an entity"."""
    return tuple(source.name for source in sources if getattr(source, "negative_reliable", False))


def order_sources(sources: Sequence[Source]) -> list[Source]:
    """Return the sources with each after those it builds on; raise ConfigError for duplicate names and cycles."""
    again = [name for name, times in Counter(source.name for source in sources).items() if times > 1]
    if again:
        raise ConfigError(f"two sources are called {again[0]!r}; give one of them another name")
    waiting, done = list(sources), list[Source]()
    names, ready = {source.name for source in sources}, set[str]()
    while waiting:
        free = next((s for s in waiting if all(n in ready or n not in names for n in map(plain_name, needs(s)))), None)
        if free is None:
            cycle = ", ".join(repr(source.name) for source in waiting)
            raise ConfigError(f"the sources {cycle} build on one another in a cycle; remove a name from one `on`")
        waiting.remove(free)
        done.append(free)
        ready.add(free.name)
    return done


def plain_name(name: str) -> str:
    """Return a source's name without the prefix "source:"."""
    return name.removeprefix(SOURCE)


def spans_on(doc: Document, names: Iterable[str]) -> list[Span]:
    """Return a document's spans of the named sources or layers, in that order; a missing layer has none."""
    layers = (SOURCE + name if SOURCE + name in doc.layers else name for name in names)
    return [span for layer in layers for span in doc.layers.get(layer, ())]


def collect_spans(found: Iterable[Any], label: str, length: int) -> tuple[list[Span], Counter[str]]:
    """Return the valid spans of a source's answer for a text of `length`, sorted and distinct, and errors by kind.

    >>> collect_spans([(0, 4), Span(5, 9, "Dose"), (7, 90), "5 mg"], "Drug", 20)[1]
    Counter({'span outside the text': 1, 'not a span': 1})
    """
    spans, refused = set[Span](), Counter[str]()
    for item in found:
        span = _span(item, label, length)
        if isinstance(span, str):
            refused[span] += 1
        else:
            spans.add(span)
    return sorted(spans), refused


def _span(item: Any, label: str, length: int) -> Span | str:
    """Return an item of a source's answer as a span, `label` if it has none; or the text of what is wrong with it."""
    fields = (item.start, item.end, item.label) if isinstance(item, Span) else item
    if not isinstance(fields, tuple | list) or len(fields) not in (2, 3):
        return SHAPELESS
    span_label = label if len(fields) == 2 else fields[2]
    try:
        start, end = index(fields[0]), index(fields[1])
    except TypeError:
        return SHAPELESS
    if not isinstance(span_label, str) or not span_label:
        return SHAPELESS
    if not 0 <= start < end <= length:
        return UNFIT
    if isinstance(item, Span):
        return Span(start, end, span_label, item.score, item.source, item.concept)
    return Span(start, end, span_label)


def phrases_in(text: str, phrases: Lexicon) -> list[tuple[int, int]]:
    """Return (start, end) of every phrase in a text; any white space except an empty line may separate its words.

    >>> phrases_in("breast\\r\\ncancer", Lexicon.make({"": ["breast cancer"]}))
    [(0, 14)]
    """
    wide = [run.span() for run in _WIDE.finditer(text) if run.group().count("\n") < 2]
    if not wide:
        return [(start, end) for start, end, _ in phrases.find(text)]
    kept = np.ones(len(text), np.bool_)
    for start, end in wide:
        kept[start + 1 : end] = False
    places = np.flatnonzero(kept)
    found = phrases.find("".join(map(text.__getitem__, places.tolist())))
    return [(int(places[start]), int(places[end - 1]) + 1) for start, end, _ in found]


def token_ranges_of_phrases(doc: Document, phrases: Lexicon) -> list[tuple[int, int]]:
    """Return the token ranges, half-open, that the phrases in a document touch."""
    places = np.array(phrases_in(doc.text, phrases), np.int32).reshape(-1, 2)
    return [(first, end) for first, end in doc.token_ranges(places).tolist()]


def runs_in_sentences(doc: Document) -> list[tuple[int, int]]:
    """Return (first token, end token) of every sentence that has a token."""
    return [(first, end) for first, end in doc.sentence_tokens().tolist() if first < end]


def sentence_around(sentences: Sequence[tuple[int, int]], token: int) -> tuple[int, int]:
    """Return the sentence that contains a token; an empty range if none does."""
    if not sentences:
        return token, token
    first, end = sentences[max(0, bisect_right(sentences, token, key=lambda sentence: sentence[0]) - 1)]
    return (first, end) if first <= token < end else (token, token)


def over_tokens(doc: Document, first: int, end: int, label: str) -> Span:
    """Return the span over tokens [first, end), with a label."""
    return Span(int(doc.tokens[first, 0]), int(doc.tokens[end - 1, 1]), label)


def is_capitalised(word: str) -> bool:
    """Tell whether a word begins with a capital letter."""
    return word[:1].isupper()


def phrases_of(phrases: Phrases, what: str) -> tuple[str, ...]:
    """Return the phrases of a list, or of a file with one per line; ConfigError, with `what`, if there is none."""
    return to_texts(read_phrases(phrases) if isinstance(phrases, str | Path) else phrases, what, least=1)


def relabel(spans: Iterable[Span], labels: Mapping[str, str]) -> list[Span]:
    """Return spans with mapped labels, unlisted ones dropped unless `labels` is empty; scores stay, sources go."""
    return [
        Span(span.start, span.end, labels.get(span.label, span.label), span.score)
        for span in spans
        if not labels or span.label in labels
    ]


def check_labels(labels: object, what: str) -> dict[str, str]:
    """Return a table of labels as a dict; ConfigError, which names `what`, unless it maps names to names."""
    if not isinstance(labels, Mapping):
        raise ConfigError(f"{what} must be a table from labels to labels, got {type(labels).__name__}")
    for label, ours in labels.items():
        check_name(label, what)
        check_name(ours, what)
    return dict(labels)
