"""Token patterns: a sequence of things that tokens must be, some of them optional or repeated. P parts, T tokens.

    [{regex = '\\d+'}, {lower = ["mg", "ml"]}]                        20 mg
    [{lower = ["dr."], mark = false}, {shape = ["Xx"], repeat = "+"}]  Dr. Ada Penn, without the title

All that a part asks for must hold, one of the alternatives of each is enough; a part that asks for nothing takes any
token. A pattern is read as a regular expression is, from the left and greedily, inside a sentence; its time is linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal

from chaffinch.checks import check_choice, check_flags, check_name, check_text, did_you_mean, to_texts
from chaffinch.errors import ConfigError
from chaffinch.text import Document, Span
from chaffinch.text.regex import compiled
from chaffinch.weak.sources.base import (
    Phrases,
    SourceKind,
    over_tokens,
    phrases_of,
    runs_in_sentences,
)

REPEATS = ("", "?", "+", "*")
_LISTS = ("text", "lower", "shape", "prefix", "suffix")


@dataclass(frozen=True, slots=True)
class Token:
    """What one token, or with `repeat` a run of tokens, must be.

    `text` exactly, `lower` in lower case, `shape` as `word_shape` gives it, `prefix` and `suffix` its beginning and its
    end, `regex` matches the whole of it, `in_list` is a list or a file of words, case ignored. With `any` it may be
    anything. A part that is not to `mark` must be there, but no span begins or ends with it.
    """

    _: KW_ONLY
    text: Sequence[str] = ()
    lower: Sequence[str] = ()
    shape: Sequence[str] = ()
    prefix: Sequence[str] = ()
    suffix: Sequence[str] = ()
    regex: str = ""
    in_list: Phrases = field(default=(), repr=False)
    any: bool = False
    repeat: Literal["", "?", "+", "*"] = ""
    mark: bool = True
    _listed: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in _LISTS:
            own = getattr(self, name)
            object.__setattr__(self, name, to_texts([own] if isinstance(own, str) else own, name))
        check_text(self.regex, "regex")
        compiled(self.regex, False)
        check_flags(self, "any", "mark")
        check_choice(self.repeat, "repeat", REPEATS)
        listed = phrases_of(self.in_list, "in_list") if self.in_list else ()
        object.__setattr__(self, "in_list", listed)
        object.__setattr__(self, "_listed", frozenset(word.lower() for word in listed))
        asks = bool(self.regex or listed or [name for name in _LISTS if getattr(self, name)])
        if asks == self.any:
            raise ConfigError(
                f"a part of a token pattern asks for one of {', '.join(_LISTS)}, regex, in_list, or has any = true"
            )

    def fits(self, word: str) -> bool:
        """Whether a token is all that is asked for."""
        small = word.lower()
        return (
            (not self.text or word in self.text)
            and (not self.lower or small in self.lower)
            and (not self.prefix or word.startswith(tuple(self.prefix)))
            and (not self.suffix or word.endswith(tuple(self.suffix)))
            and (not self._listed or small in self._listed)
            and (not self.shape or word_shape(word) in self.shape)
            and (not self.regex or compiled(self.regex, False).fullmatch(word) is not None)
        )


@dataclass(frozen=True, slots=True)
class TokenPattern(SourceKind):
    """A sequence of parts that tokens must fit, one after the other; each part is a `Token`, or a table of its fields.

    >>> dose = TokenPattern("dose", [Token(regex=r"\\d+"), {"lower": ["mg", "ml"]}], label="Dose")
    >>> [(span.start, span.end) for span in dose(Document.make("Aspirin 20 mg and 5ml"))]
    [(8, 13), (18, 21)]
    """

    kind: ClassVar[str] = "tokens"
    file_fields: ClassVar[tuple[str, ...]] = ("in_list",)  # of the parts of its pattern

    name: str
    pattern: Sequence[Token | Mapping[str, object]]
    _: KW_ONLY
    label: str
    negative_reliable: bool = False
    _parts: tuple[Token, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name, "name")
        check_name(self.label, "label")
        check_flags(self, "negative_reliable")
        parts = tuple(_part(part, number) for number, part in enumerate(self.pattern, start=1))
        if not any(part.mark and part.repeat in ("", "+") for part in parts):
            raise ConfigError("pattern has no part that must be there and is marked; add one")
        object.__setattr__(self, "pattern", parts)
        object.__setattr__(self, "_parts", parts)

    def __call__(self, doc: Document) -> list[Span]:
        """The runs of tokens that fit, never overlapping."""
        words = doc.words()
        kinds = list(dict.fromkeys(words))
        number = {word: n for n, word in enumerate(kinds)}
        fitting = [[part.fits(word) for word in kinds] for part in self._parts]
        codes = [number[word] for word in words]
        spans = []
        for first, end in runs_in_sentences(doc):
            fits = [[own[code] for code in codes[first:end]] for own in fitting]
            if all(any(own) or part.repeat in ("?", "*") for own, part in zip(fits, self._parts, strict=True)):
                spans += [over_tokens(doc, first + a, first + b, self.label) for a, b in self._runs(fits)]
        return spans

    def _runs(self, fits: Sequence[Sequence[bool]]) -> Iterator[tuple[int, int]]:
        """The marked runs of a sentence, from the (P, T) answers of parts to tokens."""
        T = len(fits[0])
        goes = self._ways(fits, T)
        at = 0
        while at < T:
            if not goes[0][at]:
                at += 1
                continue
            place, marked = at, list[int]()
            for p, part in enumerate(self._parts):
                most, taken = 1 if part.repeat in ("", "?") else T, 0
                while taken < most and place < T and fits[p][place] and self._may_take(goes, p, place, most > 1):
                    marked += [place] if part.mark else []
                    place, taken = place + 1, taken + 1
            yield marked[0], marked[-1] + 1
            at = place

    def _may_take(self, goes: Sequence[Sequence[bool]], p: int, place: int, again: bool) -> bool:
        """Whether the rest of the pattern can follow if part p takes this token."""
        P = len(self._parts)
        return goes[p + 1][place + 1] or (again and goes[P + 1 + p][place + 1])

    def _ways(self, fits: Sequence[Sequence[bool]], T: int) -> list[list[bool]]:
        """(2 P + 1, T + 1) whether the pattern can be fulfilled from part p on, from a token on; row P is the end.

        Row P + 1 + p is of a part that may be repeated and has had a token already.
        """
        P = len(fits)
        goes = [[False] * (T + 1) for _ in range(2 * P + 1)]
        goes[P] = [True] * (T + 1)
        for p in range(P - 1, -1, -1):
            repeat, own, later, more = self._parts[p].repeat, goes[p], goes[p + 1], goes[P + 1 + p]
            for t in range(T, -1, -1):
                fit = t < T and fits[p][t]
                more[t] = repeat in ("+", "*") and (later[t] or (fit and more[t + 1]))
                takes = fit and (more[t + 1] if repeat in ("+", "*") else later[t + 1])
                own[t] = takes or (repeat in ("?", "*") and later[t])
        return goes


def word_shape(word: str) -> str:
    """The kinds of signs of a word: X capital, x other letter, d digit, else the sign itself; a run counts once.

    >>> [word_shape(word) for word in ("Penn", "IL-2", "mRNA", "12/03")]
    ['Xx', 'X-d', 'xX', 'd/d']
    """
    shape = ""
    for sign in word:
        kind = "X" if sign.isupper() else "x" if sign.isalpha() else "d" if sign.isdigit() else sign
        shape += kind if not shape.endswith(kind) else ""
    return shape


def _part(given: object, number: int) -> Token:
    """A part of a pattern, checked."""
    if isinstance(given, Token):
        return given
    if not isinstance(given, Mapping):
        raise ConfigError(f"part {number} of the pattern must be a table such as {{lower = ['mg']}}")
    known = [name for name in Token.__dataclass_fields__ if not name.startswith("_")]
    for name in given:
        if name not in known:
            raise ConfigError(
                f"part {number} of the pattern has the unknown key {name!r}; {did_you_mean(str(name), known)}"
            )
    try:
        return Token(**given)
    except ConfigError as error:
        raise ConfigError(f"part {number} of the pattern: {error}") from None
