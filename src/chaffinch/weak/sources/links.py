"""Linking rules: which neighbouring tokens belong to one entity, of any label, and which do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Literal

from chaffinch.checks import check_choice, check_flags, check_name, to_texts
from chaffinch.errors import ConfigError
from chaffinch.features import lexicon
from chaffinch.models.tagger import Tagger, load
from chaffinch.text import Document, Span
from chaffinch.weak.sources.base import (
    Phrases,
    SourceKind,
    is_capitalised,
    over_tokens,
    phrases_of,
    runs_in_sentences,
    token_ranges_of_phrases,
)
from chaffinch.weak.votes import LINK

TOGETHER, APART = "TOGETHER", "APART"
RULES = ("capitalised", "hyphen", "phrases")


@dataclass(frozen=True, slots=True)
class Link(SourceKind):
    """Neighbouring tokens of a sentence that belong together by one of three rules.

    "capitalised": all begin with a capital letter; "hyphen": hyphens without spaces join them; "phrases": they are in
    one phrase of a list, or of a file with one per line. With `apart`, the rule also votes that the tokens at the edges
    of such a run and their neighbours outside do not belong together.

    >>> link = Link("names", "capitalised")
    >>> [(span.start, span.end, span.label) for span in link(Document.make("We saw Ada Penn."))]
    [(7, 15, 'TOGETHER')]
    """

    kind: ClassVar[str] = "link"
    file_fields: ClassVar[tuple[str, ...]] = ("phrases",)

    name: str
    rule: Literal["capitalised", "hyphen", "phrases"]
    phrases: Phrases = field(default=(), repr=False)
    _: KW_ONLY
    apart: bool = False
    _lexicon: lexicon.Lexicon | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the settings, and build the lexicon of `phrases`; raise ConfigError if rule and phrases do not fit."""
        check_name(self.name, "name")
        check_choice(self.rule, "rule", RULES)
        check_flags(self, "apart")
        if bool(self.phrases) != (self.rule == "phrases"):
            raise ConfigError(f"the rule {self.rule!r} {'has no' if self.phrases else 'needs'} phrases")
        phrases = phrases_of(self.phrases, "phrases") if self.phrases else ()
        object.__setattr__(self, "phrases", phrases)
        object.__setattr__(self, "_lexicon", lexicon.Lexicon.make({TOGETHER: phrases}) if phrases else None)

    @property
    def layer(self) -> str:
        """Return the name of its layer, "link:NAME"."""
        return LINK + self.name

    def __call__(self, doc: Document) -> list[Span]:
        """Return TOGETHER spans of tokens that the rule links, and with `apart` APART spans of pairs at their edges."""
        if self._lexicon is not None:
            runs = token_ranges_of_phrases(doc, self._lexicon)
        else:
            runs = list(_runs_of_links(doc, _capitals(doc) if self.rule == "capitalised" else _hyphens(doc)))
        return _links(doc, runs, self.apart)


@dataclass(frozen=True, slots=True)
class ChunkLink(SourceKind):
    """Neighbouring tokens of one base phrase of a shallow parser belong together; `apart` as in `Link`.

    `parser` is a tagger, a model file or the name of a packaged model; `labels` are the kinds of phrases that count.
    """

    kind: ClassVar[str] = "chunks"
    beyond_data: ClassVar[str] = "a model of its own"
    slow: ClassVar[bool] = True
    place_fields: ClassVar[tuple[str, ...]] = ("parser",)
    model_fields: ClassVar[tuple[str, ...]] = ("parser",)

    name: str
    parser: Tagger | str | Path = "genia"
    _: KW_ONLY
    labels: tuple[str, ...] = ("NP",)
    apart: bool = False
    _tagger: Tagger = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Load the parser and check the settings; raise ConfigError for a label that it does not have."""
        check_name(self.name, "name")
        check_flags(self, "apart")
        object.__setattr__(self, "labels", to_texts(self.labels, "labels", least=1))
        object.__setattr__(self, "_tagger", self.parser if isinstance(self.parser, Tagger) else load(self.parser))
        unknown = [label for label in self.labels if label not in self._tagger.labels]
        if unknown:
            raise ConfigError(f"the parser has no label {unknown[0]!r}; it has {', '.join(self._tagger.labels)}")

    @property
    def layer(self) -> str:
        """Return the name of its layer, "link:NAME"."""
        return LINK + self.name

    def __call__(self, doc: Document) -> list[Span]:
        """Return TOGETHER spans of the parser's phrases of two or more tokens; with `apart` APART edge pairs."""
        chunks = [chunk for chunk in self._tagger(doc).layer(self._tagger.layer) if chunk.label in self.labels]
        return _links(doc, doc.token_ranges(chunks).tolist(), self.apart)


def _links(doc: Document, runs: Iterable[tuple[int, int]], apart: bool) -> list[Span]:
    """Return TOGETHER spans of linked runs, cut at sentences, and with `apart` APART spans of pairs at their edges."""
    inside, edges, first_tokens = set[int](), set[int](), {first for first, _ in runs_in_sentences(doc)}
    for first, end in runs:
        inside.update(range(first + 1, end))
        edges.update((first, end))
    inside -= first_tokens
    together = [over_tokens(doc, first, end, TOGETHER) for first, end in _runs(inside)]
    if not apart:
        return together
    cut = edges - inside - first_tokens - {0, len(doc.tokens)}
    return sorted([*together, *(over_tokens(doc, place - 1, place + 1, APART) for place in cut)])


def _runs(inside: set[int]) -> Iterator[tuple[int, int]]:
    """Yield (first, end) of runs of linked tokens; `inside` are the tokens linked to the one before."""
    starts = sorted(place for place in inside if place - 1 not in inside)
    for start in starts:
        end = start
        while end in inside:
            end += 1
        yield start - 1, end


def _runs_of_links(doc: Document, linked: list[bool]) -> Iterator[tuple[int, int]]:
    """Yield the runs of tokens of which each except the first is linked to the one before."""
    yield from _runs({place for place in range(1, len(doc.tokens)) if linked[place]})


def _capitals(doc: Document) -> list[bool]:
    """Return (T,) whether a token and the one before it are both capitalised; False for the first."""
    capital = [is_capitalised(word) for word in doc.words()]
    return [False, *(a and b for a, b in pairwise(capital))]


def _hyphens(doc: Document) -> list[bool]:
    """Return (T,) whether a hyphen without spaces joins a token and the one before it, or is one of the two."""
    words, tokens = doc.words(), doc.tokens.tolist()
    touching = [False, *(a[1] == b[0] for a, b in pairwise(tokens)), False]
    joins = {
        place for place, word in enumerate(words)
        if word == "-" and touching[place] and touching[place + 1] and 0 < place < len(words) - 1
    }  # fmt: skip
    return [place in joins or place - 1 in joins for place in range(len(words))]
