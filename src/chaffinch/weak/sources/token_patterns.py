"""Token patterns: a sequence of conditions on tokens, some of them optional or repeated. P parts, T tokens.

    [{regex = '\\d+'}, {lower = ["mg", "ml"]}]                        20 mg
    [{lower = ["dr."], mark = false}, {shape = ["Xx"], repeat = "+"}]  Dr. Ada Penn, without the title

All conditions of a part must hold; of the alternatives of a condition one is enough. A part with `any` matches every
token. A pattern matches as a regular expression does, from the left and greedily, inside a sentence, in linear time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal

from chaffinch.checks import check_choice, check_flags, check_name, check_text, did_you_mean, to_texts
from chaffinch.errors import ConfigError
from chaffinch.text import Document, Span
from chaffinch.text.regex import compile_pattern
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
    """Conditions on one token or, with `repeat`, on a run of tokens.

    `text` exactly, `lower` in lower case, `shape` as `word_shape` gives it, `prefix` and `suffix` its beginning and its
    end, `regex` matches the whole of it, `in_list` is a list or a file of words, case ignored. With `any` it may be
    anything. A part with `mark=False` must match, but no span begins or ends with it.
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
        """Check the conditions and compile the pattern; raise ConfigError if there are none, or `any` has some."""
        for name in _LISTS:
            value = getattr(self, name)
            object.__setattr__(self, name, to_texts([value] if isinstance(value, str) else value, name))
        check_text(self.regex, "regex")
        compile_pattern(self.regex, False)
        check_flags(self, "any", "mark")
        check_choice(self.repeat, "repeat", REPEATS)
        listed = phrases_of(self.in_list, "in_list") if self.in_list else ()
        object.__setattr__(self, "in_list", listed)
        object.__setattr__(self, "_listed", frozenset(word.lower() for word in listed))
        asks = bool(self.regex or listed or [name for name in _LISTS if getattr(self, name)])
        if asks == self.any:
            raise ConfigError(
                f"a part of a token pattern needs one of {', '.join(_LISTS)}, regex, in_list, or any = true"
            )

    def fits(self, word: str) -> bool:
        """Tell whether a word meets all conditions of this part of a pattern."""
        small = word.lower()
        return (
            (not self.text or word in self.text)
            and (not self.lower or small in self.lower)
            and (not self.prefix or word.startswith(tuple(self.prefix)))
            and (not self.suffix or word.endswith(tuple(self.suffix)))
            and (not self._listed or small in self._listed)
            and (not self.shape or word_shape(word) in self.shape)
            and (not self.regex or compile_pattern(self.regex, False).fullmatch(word) is not None)
        )


@dataclass(frozen=True, slots=True)
class TokenPattern(SourceKind):
    """A sequence of parts that consecutive tokens must match; each part is a `Token`, or a table of its fields.

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
        """Check the settings and parts; raise ConfigError if no required part is marked."""
        check_name(self.name, "name")
        check_name(self.label, "label")
        check_flags(self, "negative_reliable")
        parts = tuple(_part(part, number) for number, part in enumerate(self.pattern, start=1))
        if not any(part.mark and part.repeat in ("", "+") for part in parts):
            raise ConfigError("pattern has no required part that is marked; add one")
        object.__setattr__(self, "pattern", parts)
        object.__setattr__(self, "_parts", parts)

    def __call__(self, doc: Document) -> list[Span]:
        """Return spans of the marked tokens of all matches in each sentence, left to right, never overlapping."""
        words = doc.words()
        kinds = list(dict.fromkeys(words))
        number = {word: n for n, word in enumerate(kinds)}
        fitting = [[part.fits(word) for word in kinds] for part in self._parts]
        codes = [number[word] for word in words]
        spans = []
        for first, end in runs_in_sentences(doc):
            fits = [[row[code] for code in codes[first:end]] for row in fitting]
            if all(any(row) or part.repeat in ("?", "*") for row, part in zip(fits, self._parts, strict=True)):
                spans += [over_tokens(doc, first + a, first + b, self.label) for a, b in self._runs(fits)]
        return spans

    def _runs(self, fits: Sequence[Sequence[bool]]) -> Iterator[tuple[int, int]]:
        """Yield (first marked token, end) of greedy matches, left to right; `fits` (P, T): whether part fits token."""
        T = len(fits[0])
        goes = self._ways(fits, T)
        start = 0
        while start < T:
            if not goes[0][start]:
                start += 1
                continue
            t, marked = start, list[int]()
            for p, part in enumerate(self._parts):
                most, taken = 1 if part.repeat in ("", "?") else T, 0
                while taken < most and t < T and fits[p][t] and self._may_take(goes, p, t, most > 1):
                    marked += [t] if part.mark else []
                    t, taken = t + 1, taken + 1
            yield marked[0], marked[-1] + 1
            start = t

    def _may_take(self, goes: Sequence[Sequence[bool]], p: int, place: int, again: bool) -> bool:
        """Tell whether the pattern can match on if part p takes token `place`; `again`: p may take more."""
        P = len(self._parts)
        return goes[p + 1][place + 1] or (again and goes[P + 1 + p][place + 1])

    def _ways(self, fits: Sequence[Sequence[bool]], T: int) -> list[list[bool]]:
        """Return (2 P + 1, T + 1) whether parts p.. match from token t; rows P + 1 + p: p has matched once already.

        Row P + 1 + p is for a repeatable part that has taken a token already.
        """
        P = len(fits)
        goes = [[False] * (T + 1) for _ in range(2 * P + 1)]
        goes[P] = [True] * (T + 1)
        for p in range(P - 1, -1, -1):
            repeat, here, later, more = self._parts[p].repeat, goes[p], goes[p + 1], goes[P + 1 + p]
            for t in range(T, -1, -1):
                fit = t < T and fits[p][t]
                more[t] = repeat in ("+", "*") and (later[t] or (fit and more[t + 1]))
                takes = fit and (more[t + 1] if repeat in ("+", "*") else later[t + 1])
                here[t] = takes or (repeat in ("?", "*") and later[t])
        return goes


def word_shape(word: str) -> str:
    """Return the character classes of a word: X capital, x other letter, d digit, else itself; a run counts once.

    >>> [word_shape(word) for word in ("Penn", "IL-2", "mRNA", "12/03")]
    ['Xx', 'X-d', 'xX', 'd/d']
    """
    shape = ""
    for sign in word:
        kind = "X" if sign.isupper() else "x" if sign.isalpha() else "d" if sign.isdigit() else sign
        shape += kind if not shape.endswith(kind) else ""
    return shape


def _part(part: object, number: int) -> Token:
    """Return a part of a pattern, a table or `Token`, as a `Token`; ConfigError, with its number, if it is invalid."""
    if isinstance(part, Token):
        return part
    if not isinstance(part, Mapping):
        raise ConfigError(f"part {number} of the pattern must be a table such as {{lower = ['mg']}}")
    known = [name for name in Token.__dataclass_fields__ if not name.startswith("_")]
    for name in part:
        if name not in known:
            raise ConfigError(
                f"part {number} of the pattern has the unknown key {name!r}; {did_you_mean(str(name), known)}"
            )
    try:
        return Token(**part)
    except ConfigError as error:
        raise ConfigError(f"part {number} of the pattern: {error}") from None
