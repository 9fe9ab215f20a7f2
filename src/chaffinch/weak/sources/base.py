"""What every source is: a name and a call, document in, spans out.

A source votes for a label where it finds a span, votes "not an entity" with a span labelled O, and says nothing
anywhere else.
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
    """Any callable with a name is a source. Where it says no more, it builds on no other and is silent about O.

    What it may say besides, as attributes: `label` (of bare offsets), `negative_reliable` (its silence means "not an
    entity"), `on` (names of the sources or layers it builds on), `layer` (where its spans go).
    """

    @property
    def name(self) -> str: ...
    def __call__(self, doc: Document, /) -> Iterable[Found]: ...


class SourceKind:
    """A kind of source of ours: what it says of itself here, in class variables, nobody else says.

    A module of this package that defines a subclass makes it a kind: `sources.toml` knows it by the name in `kind`, and
    its keys are the parameters of `factory`.
    """

    __slots__ = ()

    kind: ClassVar[str]
    in_files: ClassVar[bool] = True  # whether a project file may list it
    beyond_data: ClassVar[str] = ""  # what it is if it is more than plain data, so that a model file cannot hold it
    slow: ClassVar[bool] = False  # whether its answers are worth keeping while it is asked
    file_fields: ClassVar[tuple[str, ...]] = ()  # parameters whose text is always a file's name
    place_fields: ClassVar[tuple[str, ...]] = ()  # parameters whose text is a file's name if there is such a file
    model_fields: ClassVar[tuple[str, ...]] = ()  # those of them whose text is a model file or a packaged model's name

    @classmethod
    def factory(cls) -> Callable[..., Any]:
        """Return what makes a source, or a list of them, of the keys of a table: by default the class."""
        return cls


def kind_of(source: Source) -> str:
    """Return the name of a source's kind; "python" for any callable that is not of ours."""
    return source.kind if isinstance(source, SourceKind) else "python"


def is_plain_data(source: Source) -> bool:
    """Whether a source is plain data, which travels to other processes and into model files."""
    return isinstance(source, SourceKind) and not source.beyond_data


def layer_of(source: Source) -> str:
    """The layer that a source's spans go to: "source:NAME", or "link:NAME" for linking rules."""
    return str(getattr(source, "layer", SOURCE + source.name))


def needs(source: Source) -> tuple[str, ...]:
    """The names of the sources and layers that a source builds on."""
    return tuple(getattr(source, "on", ()))


def negative_reliable(sources: Iterable[Source]) -> tuple[str, ...]:
    """The names of the sources whose silence means "not an entity"."""
    return tuple(source.name for source in sources if getattr(source, "negative_reliable", False))


def in_order(sources: Sequence[Source]) -> list[Source]:
    """The sources, each after those it builds on, otherwise as they are; ConfigError for duplicates and circles."""
    again = [name for name, times in Counter(source.name for source in sources).items() if times > 1]
    if again:
        raise ConfigError(f"two sources are called {again[0]!r}; give one of them another name")
    waiting, done = list(sources), list[Source]()
    names, ready = {source.name for source in sources}, set[str]()
    while waiting:
        free = next((s for s in waiting if all(n in ready or n not in names for n in map(plain_name, needs(s)))), None)
        if free is None:
            circle = ", ".join(repr(source.name) for source in waiting)
            raise ConfigError(f"the sources {circle} build on one another in a circle; take a name out of one `on`")
        waiting.remove(free)
        done.append(free)
        ready.add(free.name)
    return done


def plain_name(name: str) -> str:
    """A source's name, whether it was given as such or as a layer."""
    return name.removeprefix(SOURCE)


def spans_on(doc: Document, names: Iterable[str]) -> list[Span]:
    """The spans of sources or layers in a document, in the order of the names; a layer that is not there has none."""
    layers = (SOURCE + name if SOURCE + name in doc.layers else name for name in names)
    return [span for layer in layers for span in doc.layers.get(layer, ())]


def settle(found: Iterable[Any], label: str, length: int) -> tuple[list[Span], Counter[str]]:
    """The spans among what a source gave for a text of that length, sorted, each once; and how many were none.

    >>> settle([(0, 4), Span(5, 9, "Dose"), (7, 90), "5 mg"], "Drug", 20)[1]
    Counter({'span outside the text': 1, 'not a span': 1})
    """
    spans, refused = set[Span](), Counter[str]()
    for item in found:
        span = _span(item, label)
        if span is None:
            refused[SHAPELESS] += 1
        elif not 0 <= span.start < span.end <= length:
            refused[UNFIT] += 1
        else:
            spans.add(span)
    return sorted(spans), refused


def _span(item: Any, label: str) -> Span | None:
    """One thing that a source gave, as a span; None if it has another shape."""
    fields = (item.start, item.end, item.label) if isinstance(item, Span) else item
    if not isinstance(fields, tuple | list) or len(fields) not in (2, 3):
        return None
    own = label if len(fields) == 2 else fields[2]
    try:
        start, end = index(fields[0]), index(fields[1])
    except TypeError:
        return None
    if not isinstance(own, str) or not own:
        return None
    if isinstance(item, Span):
        return Span(start, end, own, item.score, item.source, item.concept)
    return Span(start, end, own)


def phrases_in(text: str, phrases: Lexicon) -> list[tuple[int, int]]:
    """Start and end of every phrase in a text; any white space between words will do, but for an empty line.

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
    """Return the tokens that every phrase in a document touches, half-open."""
    places = np.array(phrases_in(doc.text, phrases), np.int32).reshape(-1, 2)
    return [(first, end) for first, end in doc.token_ranges(places).tolist()]


def runs_in_sentences(doc: Document) -> list[tuple[int, int]]:
    """The first token and one past the last of every sentence that has a token."""
    return [(first, end) for first, end in doc.sentence_tokens().tolist() if first < end]


def sentence_around(sentences: Sequence[tuple[int, int]], token: int) -> tuple[int, int]:
    """The sentence that a token stands in, of those in order; an empty one if it stands in none."""
    if not sentences:
        return token, token
    first, end = sentences[max(0, bisect_right(sentences, token, key=lambda own: own[0]) - 1)]
    return (first, end) if first <= token < end else (token, token)


def over_tokens(doc: Document, first: int, end: int, label: str) -> Span:
    """The span over a run of tokens."""
    return Span(int(doc.tokens[first, 0]), int(doc.tokens[end - 1, 1]), label)


def is_capitalised(word: str) -> bool:
    """Whether a word begins with a capital letter."""
    return word[:1].isupper()


def phrases_of(given: Phrases, what: str) -> tuple[str, ...]:
    """The phrases of a list, or of a file with one per line."""
    return to_texts(read_phrases(given) if isinstance(given, str | Path) else given, what, least=1)


def relabel(spans: Iterable[Span], labels: Mapping[str, str]) -> list[Span]:
    """The spans under our labels; those not in the table are left out, if there is one."""
    return [
        Span(span.start, span.end, labels.get(span.label, span.label), span.score)
        for span in spans
        if not labels or span.label in labels
    ]


def checked_labels(given: object, what: str) -> dict[str, str]:
    """A table from labels to ours, checked."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"{what} must be a table from labels to labels, got {type(given).__name__}")
    for label, ours in given.items():
        check_name(label, what)
        check_name(ours, what)
    return dict(given)
