"""Descriptions of sub-tags and of paths through them, as data and in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from chaffinch.features.signatures import MARK
from chaffinch.text import Span
from chaffinch.text.explanation import Explanation, PathState, Voice

_COUNTS = ("fields=", "digits=", "run=")  # fields of signatures whose 1 is a number; that of others is a yes
_SMALL = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True, slots=True)
class Subtag:
    """A description of one sub-tag. Words and signatures are of the model's vocabulary, likeliest first.

    They come with their probability. `before` are the sub-tags it follows, or "begin", with their share of its tokens;
    `after` the tags it leads to, or "end", with their probability.
    """

    tag: str
    number: int  # from 1 within its tag
    tokens: float
    share: float  # of its tag's tokens
    words: tuple[tuple[str, float], ...] = field(repr=False)  # they are training text
    signatures: tuple[tuple[str, float], ...]
    before: tuple[tuple[str, float], ...]
    after: tuple[tuple[str, float], ...]

    @property
    def name(self) -> str:
        """Return the tag with its number as a subscript, such as O₁₇."""
        return name_of(self.tag, self.number)


@dataclass(frozen=True, slots=True)
class Use:
    """Usage of a tag's sub-tags: how many there are, how many are used, and their perplexity."""

    tag: str
    subtags: int
    effective: int
    perplexity: float
    tokens: float

    @property
    def full(self) -> bool:
        """Tell whether all sub-tags are used, so that a larger number may help."""
        return self.effective == self.subtags


def name_of(tag: str, number: int) -> str:
    """Return a sub-tag's name: its tag with the number as a subscript, such as O₁₇.

    >>> name_of("O", 17)
    'O₁₇'
    """
    return tag + str(number).translate(_SMALL)


def shorten_signature(signature: str) -> str:
    """Return a signature in few words: without its mark and the fields that are 0.

    >>> shorten_signature("‹ALPHA|Cap|first=0|last=hi|common=1|len=5-8")
    'ALPHA Cap last=hi common len=5-8'
    """
    fields = [field for field in signature.removeprefix(MARK).split("|") if not field.endswith("=0")]
    return " ".join(field if field.startswith(_COUNTS) else field.removesuffix("=1") for field in fields)


@dataclass(frozen=True, slots=True)
class PathStep:
    """A token of a path, quoted from the document, and its sub-tag."""

    word: str = field(repr=False)
    tag: str
    number: int
    start: int = 0
    end: int = 0

    @property
    def name(self) -> str:
        """Return the sub-tag as its tag with a subscript, such as O₁₇."""
        return name_of(self.tag, self.number)


@dataclass(frozen=True, slots=True)
class Lead:
    """A sub-tag of a path whose tag has several, and the tags that follow it there, with their probabilities."""

    subtag: Subtag
    to: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        """Return a clause: what the sub-tag follows, shows (words of training text) and leads to."""
        subtag, words = self.subtag, [self.subtag.name]
        if subtag.before:
            words.append("follows " + _join_with_and([name for name, _ in subtag.before[:3]]) + ",")
        shown = [f'"{word}"' for word, _ in subtag.words[:3]] or [
            shorten_signature(symbol) for symbol, _ in subtag.signatures[:1]
        ]
        if shown:
            words.append("shows " + _join_with_and(shown) + ",")
        if len(words) > 1:
            words.append("and")
        return " ".join(
            [*words, "leads", _join_with_and([f"to {tag} with {two_digits(chance)}" for tag, chance in self.to])]
        )


@dataclass(frozen=True, slots=True, repr=False)
class SubtagPath:
    """The best path through the sub-tags that reads a span.

    `chance` is the exact probability of the span, sub-tags and all other tokens summed out. `runner_up` are the spans
    of the best path without the span, around it; by `ratio` the tags of the path with the span are likelier than those.
    """

    span: Span
    steps: tuple[PathStep, ...]  # up to three tokens before the span, the span, up to two after
    leads: tuple[Lead, ...]
    chance: float
    runner_up: tuple[Span, ...]
    ratio: float
    discriminative: bool

    def explanation(self, method: str) -> Explanation:
        """Return the path as a tagger's Explanation: margin is the log of the ratio, remarks describe sub-tags."""
        path = tuple(PathState(step.name, step.start, step.end, step.word) for step in self.steps)
        remarks = [str(lead) for lead in self.leads]
        if self.discriminative and remarks:
            remarks.append(
                "(The path is the whole model's; sub-tags are described as its generative stage learnt them.)"
            )
        spans = (self.span,) if self.ratio >= 1.0 else self.runner_up
        voice = Voice("tagger", method, spans, self.chance, math.log(self.ratio), (), path, tuple(remarks))
        return Explanation(self.span, (voice,), self.runner_up, self.chance)


def _join_with_and(words: Sequence[str]) -> str:
    """Return words joined by commas, and by "and" before the last; "" for none."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def two_digits(chance: float) -> str:
    """Return a probability with two decimals, such as ".71"; "<.01" below .005, but ".00" for 0."""
    return "<.01" if 0 < chance < 0.005 else f"{chance:.2f}".removeprefix("0")
