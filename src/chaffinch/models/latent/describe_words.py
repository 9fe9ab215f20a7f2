"""What is told of sub-tags, and how it is put into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from chaffinch.features.signatures import MARK
from chaffinch.text import Span

_COUNTS = ("fields=", "digits=", "run=")  # fields of signatures whose 1 is a number; that of others is a yes
_SMALL = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


@dataclass(frozen=True, slots=True)
class Subtag:
    """One sub-tag. Words and signatures are of the model's vocabulary, likeliest first, with their probability.

    `before` are the sub-tags it follows, or "begin", with their share of its tokens; `after` the tags it leads to, or
    "end", with their probability.
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
        """The tag with its number, such as O₁₇."""
        return name_of(self.tag, self.number)


@dataclass(frozen=True, slots=True)
class Use:
    """How many sub-tags a tag has, how many of them are used, and as how many equal ones they count."""

    tag: str
    subtags: int
    effective: int
    perplexity: float
    tokens: float

    @property
    def full(self) -> bool:
        """Are all used, so that a larger number may help?"""
        return self.effective == self.subtags


def name_of(tag: str, number: int) -> str:
    """The name of a sub-tag.

    >>> name_of("O", 17)
    'O₁₇'
    """
    return tag + str(number).translate(_SMALL)


def brief(signature: str) -> str:
    """A signature in few words: without its mark and what it does not have.

    >>> brief("‹ALPHA|Cap|first=0|last=hi|common=1|len=5-8")
    'ALPHA Cap last=hi common len=5-8'
    """
    fields = [field for field in signature.removeprefix(MARK).split("|") if not field.endswith("=0")]
    return " ".join(field if field.startswith(_COUNTS) else field.removesuffix("=1") for field in fields)


@dataclass(frozen=True, slots=True, repr=False)
class PathStep:
    """A token of a path (it quotes the document) and its sub-tag."""

    word: str
    tag: str
    number: int

    def __str__(self) -> str:
        return f"{self.word}/{name_of(self.tag, self.number)}"


@dataclass(frozen=True, slots=True)
class Lead:
    """A sub-tag of a path that has others beside it, and the tags it leads to there, with what it learnt of them."""

    subtag: Subtag
    to: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        own, said = self.subtag, [self.subtag.name]
        if own.before:
            said.append("follows " + _joined([name for name, _ in own.before[:3]]) + ",")
        shown = [f'"{word}"' for word, _ in own.words[:3]] or [brief(symbol) for symbol, _ in own.signatures[:1]]
        if shown:
            said.append("shows " + _joined(shown) + ",")
        if len(said) > 1:
            said.append("and")
        return " ".join([*said, "leads", _joined([f"to {tag} with {two(chance)}" for tag, chance in self.to])])


@dataclass(frozen=True, slots=True, repr=False)
class SubtagPath:
    """The best way through the sub-tags that reads a span. Printed, it says in words what each of them stands for.

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

    def __str__(self) -> str:
        others = ", ".join(f"[{span.start}, {span.end}) {span.label}" for span in self.runner_up) or "no span there"
        lines = [
            " → ".join(map(str, self.steps)),
            f"[{self.span.start}, {self.span.end}) {self.span.label}: probability {_three(self.chance)}, "
            f"{_times(self.ratio)} as likely as {others}",
            *map(str, self.leads),
        ]
        if self.discriminative and self.leads:
            lines.append("(The path is the whole model's; sub-tags are described as its generative stage learnt them.)")
        return "\n".join(lines)


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def two(chance: float) -> str:
    """A probability with two digits: .71."""
    return "<.01" if 0 < chance < 0.005 else f"{chance:.2f}".removeprefix("0")


def _three(chance: float) -> str:
    if 0 < chance < 0.0005:
        return "<.001"
    return ">.999" if 0.9995 <= chance < 1 else f"{chance:.3f}".removeprefix("0")


def _times(ratio: float) -> str:
    if ratio > 10_000:
        return "more than 10,000 times"
    return (
        f"{ratio:,.0f} times"
        if ratio >= 10
        else f"{ratio:.2g} times".removeprefix("0")
        if ratio >= 0.001
        else "less than .001 times"
    )
