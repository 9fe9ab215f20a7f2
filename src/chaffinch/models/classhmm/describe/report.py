"""The description of a class's states, as stored in a model file, and the verdict on them in words."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from chaffinch.models.latent.describe_words import two_digits

Share: TypeAlias = tuple[str, float]

POSITIONS = ("first", "inner", "last", "single")
BEGIN, END = "begin", "end"
# NMI is clearly above chance from this value on, if it is also this many times the 95th percentile of random
# assignments. `RULE` states it for users; raising either makes the verdict stricter.
LEAST, TIMES = 0.05, 2.0
RULE = (
    f"NMI counts as clearly above chance if it is at least {two_digits(LEAST)} and at least twice the 95th percentile "
    "of random assignments, both when every mention counts and when every word counts once."
)


class Trait(msgspec.Struct, frozen=True):
    """A word or feature that a state shows more often than its class does."""

    name: str
    lift: float  # its tokens in the state divided by those expected from the class, smoothed
    tokens: int  # of the state

    def __repr__(self) -> str:  # it may be training text
        """Return lift and tokens, but not the name, which may be training text."""
        return f"Trait(lift={self.lift}, tokens={self.tokens})"


class Piece(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A part of an example: its words, and the number of its state."""

    text: str
    number: int

    def __repr__(self) -> str:
        """Return the number only, because the text may be training text."""
        return f"Piece(number={self.number})"


class State(msgspec.Struct, frozen=True):
    """A description of one state, by the best path through the training text inside the known tags."""

    name: str  # PER/1
    tag: str  # PER; with B and I apart, B-PER
    number: int  # from 1 among all states of the label
    tokens: int
    share: float  # of its label's tokens
    words: tuple[Trait, ...]  # by lift
    features: tuple[Trait, ...]
    positions: tuple[float, ...]  # shares of `POSITIONS`; empty for O
    after: tuple[Share, ...]  # states that follow in the same span, or "end"; for O, what follows in the sentence
    before: tuple[Share, ...]  # states before, of any label, or "begin": shares of its tokens
    leads: tuple[Share, ...]  # labels or O that come next, or "end" of the sentence


class Measure(msgspec.Struct, frozen=True):
    """Normalised mutual information of state and role, with that of random assignments of states."""

    mentions: int
    nmi: float
    mean: float  # of random assignments
    high: float  # their 95th percentile

    @property
    def clear(self) -> bool:
        """Tell whether the NMI is clearly above that of random assignments."""
        return self.nmi >= max(LEAST, TIMES * self.high)


class Roles(msgspec.Struct, frozen=True):
    """Agreement of a class's states with the roles of its words, or the reason why it was not measured."""

    mentions: int = 0  # of one token
    known: dict[str, int] = {}  # how many of them have each role
    single: Measure | None = None  # one-token mentions
    words: Measure | None = None  # the same, every different word once with the state it mostly has
    longer: Measure | None = None  # tokens of longer mentions, given their place and the mention's length
    reason: str = ""  # why nothing was measured

    @property
    def clear(self) -> bool:
        """Tell whether states follow roles clearly above chance, by mentions and with each word once."""
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
    """The classes of a model. Its words are training text; each was used by at least `patients` patients."""

    classes: tuple[Class, ...]
    patients: int
    private: bool

    def json(self) -> str:
        """Return the sub-structure as JSON text, for a model file."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def of(cls, text: str) -> Substructure:
        """Rebuild the sub-structure from the text of `json`."""
        return msgspec.json.decode(text, type=cls)


def has_parts(klass: Class, held_out: tuple[float, ...]) -> bool | None:
    """Tell whether a class has sub-structure: states follow roles and make held-out text likelier; None if unknown.

    `held_out` is the log-likelihood per token with these states and with one per class, or empty.
    """
    if len(klass.states) < 2 or klass.roles.single is None:
        return None
    if not klass.roles.clear:
        return False
    return held_out[0] > held_out[1] if len(held_out) == 2 else None


def verdict(klass: Class, held_out: tuple[float, ...]) -> str:
    """Return a sentence that says whether a class has sub-structure, with the numbers."""
    if len(klass.states) < 2:
        return f"{klass.name} has one state, so no sub-structure; train with more states per class."
    found = has_parts(klass, held_out)
    heads = {
        True: f"{klass.name} has sub-structure",
        False: f"{klass.name} has no sub-structure that we can show",
        None: f"Whether {klass.name} has sub-structure cannot be said",
    }
    return f"{heads[found]}: {_of_roles(klass.roles)}; {_of_likelihood(held_out)}."


def _of_roles(roles: Roles) -> str:
    """Return the clause on agreement of states and roles, or the reason why it was not measured."""
    if roles.single is None or roles.words is None:
        return roles.reason
    single, each = roles.single, roles.words
    return (
        f"NMI of state and role is {three_digits(single.nmi)} on {single.mentions:,} one-token mentions (at random "
        f"{three_digits(single.mean)}, 95 % below {three_digits(single.high)}), and {three_digits(each.nmi)} with "
        f"each of {each.mentions:,} words counted once (at random {three_digits(each.mean)}, "
        f"95 % below {three_digits(each.high)})"
    )


def _of_likelihood(held_out: tuple[float, ...]) -> str:
    """Return the clause on held-out likelihood, or that it was not measured."""
    if len(held_out) < 2:
        return "what more states do for held-out text was not measured (train with calibration, on several patients)"
    gain = held_out[0] - held_out[1]
    comparison = "likelier" if gain > 0 else "not likelier"
    return f"held-out text is {comparison} than with one state per class ({gain:+.4f} log-likelihood per token)"


def three_digits(value: float) -> str:
    """Return a figure from 0 to 1 as text with three digits, like .071."""
    return f"{value:.3f}".removeprefix("0")
