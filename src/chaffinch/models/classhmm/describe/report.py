"""What is told of the states of a class, and the verdict on them in words."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from chaffinch.models.latent.describe_words import two

Share: TypeAlias = tuple[str, float]

POSITIONS = ("first", "inner", "last", "single")
BEGIN, END = "begin", "end"
LEAST, TIMES = 0.05, 2.0  # what NMI must reach: so much, and so many times the 95th percentile of its baseline
RULE = (
    f"NMI counts as clearly above chance if it is at least {two(LEAST)} and at least twice the 95th percentile of "
    "random assignments, both when every mention counts and when every word counts once."
)


class Told(msgspec.Struct, frozen=True):
    """Something a state shows more often than its class does."""

    name: str
    lift: float  # its tokens of the state against those expected from the class, a few added to both
    tokens: int  # of the state

    def __repr__(self) -> str:  # it may be training text
        return f"Told(lift={self.lift}, tokens={self.tokens})"


class Piece(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A part of an example: its words, and the number of its state."""

    text: str
    number: int

    def __repr__(self) -> str:
        return f"Piece(number={self.number})"


class State(msgspec.Struct, frozen=True):
    """One state, by the best path through the training text inside the known tags."""

    name: str  # PER/1
    tag: str  # PER; with B and I apart, B-PER
    number: int  # from 1 among all states of the label
    tokens: int
    share: float  # of its label's tokens
    words: tuple[Told, ...]  # by lift
    features: tuple[Told, ...]
    positions: tuple[float, ...]  # shares of `POSITIONS`; empty for O
    after: tuple[Share, ...]  # states that follow in the same span, or "end"; for O, what follows in the sentence
    before: tuple[Share, ...]  # states before, of any label, or "begin": shares of its tokens
    leads: tuple[Share, ...]  # labels or O that come next, or "end" of the sentence


class Measure(msgspec.Struct, frozen=True):
    """Normalised mutual information of state and role, beside what random assignments of states reach."""

    mentions: int
    nmi: float
    mean: float  # of random assignments
    high: float  # their 95th percentile

    @property
    def clear(self) -> bool:
        """Is it clearly above chance?"""
        return self.nmi >= max(LEAST, TIMES * self.high)


class Roles(msgspec.Struct, frozen=True):
    """What public lists of names say of a class's mentions, against its states; or why they say nothing."""

    mentions: int = 0  # of one token
    known: dict[str, int] = {}  # how many of them have each role
    single: Measure | None = None  # one-token mentions
    words: Measure | None = None  # the same, every different word once with the state it mostly has
    longer: Measure | None = None  # tokens of longer mentions, given their place and the mention's length
    reason: str = ""  # why nothing was measured

    @property
    def clear(self) -> bool:
        """Do states follow roles, clearly above chance?"""
        return bool(self.single and self.single.clear and self.words and self.words.clear)


class Class(msgspec.Struct, frozen=True):
    """A label or O with its states; at most 20 mentions, segmented by state."""

    name: str
    tokens: int
    mentions: int
    states: tuple[State, ...]
    roles: Roles
    examples: tuple[tuple[Piece, ...], ...]


class Substructure(msgspec.Struct, frozen=True):
    """The classes of a model. Its words are training text: so many `patients` at least used each of them."""

    classes: tuple[Class, ...]
    patients: int
    private: bool

    def json(self) -> str:
        """As a model file holds it."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def of(cls, text: str) -> Substructure:
        """What `json` gave."""
        return msgspec.json.decode(text, type=cls)


def has_parts(own: Class, held_out: tuple[float, ...]) -> bool | None:
    """Whether a class has sub-structure: its states follow roles, and held-out text is likelier; None if unknown.

    `held_out` is the log-likelihood per token with these states and with one per class, or empty.
    """
    if len(own.states) < 2 or own.roles.single is None:
        return None
    if not own.roles.clear:
        return False
    return held_out[0] > held_out[1] if len(held_out) == 2 else None


def verdict(own: Class, held_out: tuple[float, ...]) -> str:
    """A sentence that says whether a class has sub-structure, with the numbers."""
    if len(own.states) < 2:
        return f"{own.name} has one state, so no sub-structure; train with more states per class."
    found = has_parts(own, held_out)
    heads = {
        True: f"{own.name} has sub-structure",
        False: f"{own.name} has no sub-structure that we can show",
        None: f"Whether {own.name} has sub-structure cannot be said",
    }
    return f"{heads[found]}: {_of_roles(own.roles)}; {_of_likelihood(held_out)}."


def _of_roles(roles: Roles) -> str:
    if roles.single is None or roles.words is None:
        return roles.reason
    one, each = roles.single, roles.words
    return (
        f"NMI of state and role is {three(one.nmi)} on {one.mentions:,} one-token mentions (at random "
        f"{three(one.mean)}, 95 % below {three(one.high)}), and {three(each.nmi)} with "
        f"each of {each.mentions:,} words counted once (at random {three(each.mean)}, 95 % below {three(each.high)})"
    )


def _of_likelihood(held_out: tuple[float, ...]) -> str:
    if len(held_out) < 2:
        return "what more states do for held-out text was not measured (train with calibration, on several patients)"
    gain = held_out[0] - held_out[1]
    said = "likelier" if gain > 0 else "not likelier"
    return f"held-out text is {said} than with one state per class ({gain:+.4f} log-likelihood per token)"


def three(value: float) -> str:
    """A figure from 0 to 1 with three digits: .071."""
    return f"{value:.3f}".removeprefix("0")
