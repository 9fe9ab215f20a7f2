"""Acting on identifiers: every span of a document becomes what its operator makes of it, and nothing else changes.

What an operator does depends on the document, the policy and the secret alone, never on other documents or their
order. Every replacement is recorded with its place in both texts, so that it can be undone.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from chaffinch.deid.dates.telling_ages import Timeline, find_old_dates
from chaffinch.deid.detect.class_doubt import settle_classes
from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import Kind, kind_of
from chaffinch.deid.surrogates.letters import words
from chaffinch.deid.surrogates.name_book import NameBook
from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.text import Document, Span

if TYPE_CHECKING:
    from chaffinch.deid.policy import Policy

T = TypeVar("T")

CONTEXT = 40  # characters an operator sees on either side

_NO_CONTENT = frozenset({"Z", "P", "C"})  # first letters of Unicode categories: blanks, punctuation, controls


class FoundIdentifier(NamedTuple):
    """One identifier as operators see it; `before` and `after` are at most 40 characters of the original text."""

    text: str
    kind: Kind
    label: str
    patient: str
    doc: str
    before: str
    after: str

    def __repr__(self) -> str:
        return f"Seen({len(self.text)} characters, {self.label})"


class Memory:
    """What operators know beyond one identifier: the secret, what the document says elsewhere, the patient's names."""

    __slots__ = ("_known", "_numbers", "_secret", "dates", "names", "reference_year")

    def __init__(
        self,
        secret: Secret | None = None,
        dates: Iterable[str] = (),
        reference_year: int | None = None,
        *,
        names: NameBook | None = None,
    ) -> None:
        self._secret = secret
        self.names = NameBook() if names is None else names
        self.reference_year = reference_year  # around which years of two digits lie
        self.dates = tuple(dates)  # the texts of all dates of the document, in order of place
        self._known: dict[Hashable, Any] = {}
        self._numbers: dict[str, dict[str, int]] = {}

    def __repr__(self) -> str:
        return f"Memory({len(self.dates)} dates)"

    @property
    def secret(self) -> Secret:
        """The secret; ConfigError if none was given."""
        if self._secret is None:
            raise ConfigError(
                "the policy draws surrogates or date shifts, and there is no secret; give --secret-file PATH, "
                "or make one with: chaffinch deid secret new PATH"
            )
        return self._secret

    def once(self, name: Hashable, find: Callable[[], T]) -> T:
        """What `find` finds out about the document, looked for at the first call only."""
        if name not in self._known:
            self._known[name] = find()
        found: T = self._known[name]
        return found

    def number(self, name: str, text: str) -> int:
        """The number of a text among those of its name: 1 for the first that the document has, and so on.

        Case and white space make no difference.
        """
        numbers = self._numbers.setdefault(name, {})
        form = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
        return numbers.setdefault(form, len(numbers) + 1)


Operator: TypeAlias = Callable[[FoundIdentifier, Memory], str]

_HIDDEN_AGE: tuple[str, Operator] = ("generalise", lambda seen, _: f"[{seen.kind.name}]")


@dataclass(frozen=True, slots=True)
class Replacement:
    """One replacement: [start, end) of the original became [out_start, out_end) of the output. It holds no text."""

    start: int
    end: int
    label: str
    operator: str
    out_start: int
    out_end: int


@dataclass(frozen=True, slots=True)
class Acted:
    """The text of a document after its identifiers were acted on, and every replacement in order of place."""

    doc_id: str
    text: str = field(repr=False)
    replacements: tuple[Replacement, ...]


def act(
    doc: Document,
    layer: str | None,
    policy: Policy,
    secret: Secret | None = None,
    *,
    names: NameBook | None = None,
    timeline: Timeline | None = None,
) -> Acted:
    """Replace every span of a layer as the policy says; outside the spans nothing changes.

    Where spans overlap the longest acts first, and others act on what it left of them: no character that any span
    marks gets through. A span that the policy keeps acts last, so it shields no other. What the policy leaves readable
    must surely be of its class (see `class_doubt`), and a date that tells of an age which the policy hides becomes a
    tag, whatever its operator. DataError, without any text of the document, if an operator fails.

    `names` is the book of the patient's names, with those of earlier notes; `timeline` tells of the times of all notes
    of the patient. Unless given, both are of the document alone.
    """
    spans = apart(settle_classes(doc, layer, policy), doc.text, policy)
    operators = {label: policy.operator(label) for label in dict.fromkeys(span.label for span in spans)}
    kinds = [kind_of(span.label) for span in spans]
    text, size = doc.text, len(doc.text)
    dated = [span for span, kind in zip(spans, kinds, strict=True) if kind.name == "DATE"]
    old, times = find_old_dates(text, dated, policy.age_limit, timeline)
    memory = Memory(secret, [text[span.start : span.end] for span in dated], times.reference_year, names=names)
    memory.names.meet(_name_words(text, spans, kinds))
    pieces: list[str] = []
    made: list[Replacement] = []
    at = out = 0
    for span, kind in zip(spans, kinds, strict=True):
        start, end, label = span.start, span.end, span.label
        seen = FoundIdentifier(
            text[start:end], kind, label, doc.patient, doc.id,
            text[max(0, start - CONTEXT) : start], text[end : min(size, end + CONTEXT)],
        )  # fmt: skip
        name, operator = _HIDDEN_AGE if start in old else operators[label]
        try:
            new = operator(seen, memory)
        except ChaffinchError:
            raise
        except Exception as error:  # its message may hold text of the document
            raise DataError(f"{name} failed at [{start}, {end}) {label}: {type(error).__name__}") from None
        pieces += (text[at:start], new)
        out += start - at
        made.append(Replacement(start, end, label, name, out, out + len(new)))
        out += len(new)
        at = end
    pieces.append(text[at:])
    return Acted(doc.id, "".join(pieces), tuple(made))


def _name_words(text: str, spans: Iterable[Span], kinds: Iterable[Kind]) -> set[str]:
    """Return the folded words of all names of people in a document."""
    names = (text[span.start : span.end] for span, kind in zip(spans, kinds, strict=True) if kind.category == "NAME")
    return {word for name in names for word in words(name)}


def originals(text: str, acted: Acted) -> tuple[str, ...]:
    """What stood in the original text at every replacement, in order."""
    return tuple(text[one.start : one.end] for one in acted.replacements)


def undo(pieces: Sequence[str], acted: Acted) -> str:
    """The original text, from the output and what stood at every replacement.

    >>> after = Acted("n1", "Dr. [DOCTOR] left.", (Replacement(4, 8, "DOCTOR", "tag", 4, 12),))
    >>> undo(["Penn"], after)
    'Dr. Penn left.'
    """
    made = acted.replacements
    if len(pieces) != len(made):
        raise DataError(f"{len(made)} replacements cannot be undone with {len(pieces)} originals")
    parts: list[str] = []
    at = 0
    for number, (piece, one) in enumerate(zip(pieces, made, strict=True)):
        if len(piece) != one.end - one.start:
            raise DataError(f"original {number} has {len(piece)} characters, its place has {one.end - one.start}")
        parts += (acted.text[at : one.out_start], piece)
        at = one.out_end
    return "".join([*parts, acted.text[at:]])


def apart(spans: Sequence[Span], text: str, policy: Policy) -> tuple[Span, ...]:
    """Spans that share no character and cover all that the given ones cover, sorted; neighbours are never merged.

    The longest of overlapping spans stays whole, of equals the one whose operator hides more, then the surer one;
    of the others stays what sticks out, unless it is blanks and punctuation only. Spans to be kept come last.
    """
    if all(a.end <= b.start for a, b in pairwise(spans)):
        return tuple(spans)
    taken: list[Span] = []  # sorted, apart
    for span in sorted(spans, key=lambda one: _rank(one, policy)):
        at = bisect_left(taken, span.start, key=lambda one: one.end)  # the first that does not end before us
        for piece in list(_left_of(span, taken, at)):
            whole = len(piece) == len(span)
            if whole or any(unicodedata.category(mark)[0] not in _NO_CONTENT for mark in text[piece.start : piece.end]):
                taken.insert(bisect_left(taken, piece.start, key=lambda one: one.start), piece)
    return tuple(taken)


def _rank(span: Span, policy: Policy) -> tuple[bool, int, int, float, int, str]:
    hides = policy.hides(span.label)
    return hides == 0, span.start - span.end, -hides, -span.score, span.start, span.label


def _left_of(span: Span, taken: Sequence[Span], first: int) -> Iterator[Span]:
    """The stretches of a span that no taken span covers; the taken are sorted, those before `first` end before it."""
    at = span.start
    for number in range(first, len(taken)):
        other = taken[number]
        if other.start >= span.end:
            break
        if other.start > at:
            yield Span(at, other.start, span.label, span.score, span.source)
        at = max(at, other.end)
    if at < span.end:
        yield Span(at, span.end, span.label, span.score, span.source)
