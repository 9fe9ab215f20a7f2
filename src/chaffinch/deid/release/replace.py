"""Replace identifiers: every span of a document becomes the result of its operator, and nothing else changes.

The result of an operator depends on the document, the policy, the secret and the patient's notes alone, never on other
patients. Every replacement is recorded with its offsets in both texts, so that it can be undone.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from chaffinch.deid.dates.order import DateOrders
from chaffinch.deid.dates.telling_ages import Timeline, find_old_dates
from chaffinch.deid.detect.class_doubt import settle_classes
from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import Kind, kind_of
from chaffinch.deid.surrogates.letters import words
from chaffinch.deid.surrogates.name_book import NameBook
from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.text import Document, Span
from chaffinch.text.view import plain_text

if TYPE_CHECKING:
    from chaffinch.deid.policy import Policy

T = TypeVar("T")

MONTH_FIRST = DateOrders()  # of callers that name no order
CONTEXT = 40  # characters that an operator sees on either side

_BLANK_CATEGORIES = frozenset({"Z", "P", "C"})  # first letters of Unicode categories: blanks, punctuation, controls


class FoundIdentifier(NamedTuple):
    """An identifier as operators see it; `before` and `after` are at most 40 characters of the original text.

    `text` is the original, invisible characters included; an operator that reads a meaning in it reads `plain`.
    """

    text: str
    kind: Kind
    label: str
    patient: str
    doc: str
    before: str
    after: str

    @property
    def plain(self) -> str:
        """Return the identifier's text in plain characters (see `text.view`), as the detector read it."""
        return plain_text(self.text)

    def __repr__(self) -> str:
        """Return the length and label, never the text."""
        return f"FoundIdentifier({len(self.text)} characters, {self.label})"


class Memory:
    """Facts that operators need beyond one identifier: the secret, facts of the document, the patient's names."""

    __slots__ = ("_known", "_numbers", "_secret", "dates", "names", "orders", "outcome", "reference_year")

    def __init__(
        self,
        secret: Secret | None = None,
        dates: Iterable[str] = (),
        reference_year: int | None = None,
        *,
        names: NameBook | None = None,
        orders: DateOrders = MONTH_FIRST,
    ) -> None:
        """Keep the secret, the document's date texts, the year for two-digit years, known names and date orders."""
        self._secret = secret
        self.orders = orders
        self.outcome = ""  # an operator that could not do what its name says writes here what it did
        self.names = NameBook() if names is None else names
        self.reference_year = reference_year  # around which two-digit years are read
        self.dates = tuple(dates)  # the texts of all dates of the document, in order
        self._known: dict[Hashable, Any] = {}
        self._numbers: dict[str, dict[str, int]] = {}

    def __repr__(self) -> str:
        """Return the number of dates, never text."""
        return f"Memory({len(self.dates)} dates)"

    @property
    def secret(self) -> Secret:
        """Return the secret; raise ConfigError if none was given."""
        if self._secret is None:
            raise ConfigError(
                "the policy draws surrogates or date shifts, and there is no secret; give --secret-file PATH, "
                "or make one with: chaffinch deid secret new PATH"
            )
        return self._secret

    def once(self, name: Hashable, find: Callable[[], T]) -> T:
        """Return the cached value for `name`; call `find` to compute it the first time."""
        if name not in self._known:
            self._known[name] = find()
        value: T = self._known[name]
        return value

    def number(self, name: str, text: str) -> int:
        """Return the rank of a text among distinct ones under `name`, case and blanks ignored: 1 for the first met.

        Case and white space are ignored.
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
class ReplacedText:
    """The text of a document after its identifiers were replaced, and every replacement in order."""

    doc_id: str
    text: str = field(repr=False)
    replacements: tuple[Replacement, ...]


def replace_identifiers(
    doc: Document,
    layer: str | None,
    policy: Policy,
    secret: Secret | None = None,
    *,
    names: NameBook | None = None,
    timeline: Timeline | None = None,
    orders: DateOrders = MONTH_FIRST,
    settled: bool = False,
) -> ReplacedText:
    """Return the text with a layer's spans replaced by the policy, and all offsets; DataError if an operator fails.

    Where spans overlap the longest is replaced whole, and of the others what sticks out: no character that any span
    marks is left. A span that the policy keeps comes last, so it protects no other. What the policy leaves readable
    must surely be of its class (see `class_doubt`), and a date that reveals an age which the policy hides becomes a
    tag, whatever its operator. Raise DataError, without any text of the document, if an operator fails.

    `names` is the book of the patient's names, with those of earlier notes; `timeline` is that of all notes of the
    patient. Unless given, both cover this document only. `orders` say how to read 03/04/1998 where the note does not.
    `settled`: the caller has settled the classes of the spans.
    """
    spans = separate_spans(doc.layer(layer) if settled else settle_classes(doc, layer, policy), doc.text, policy)
    operators = {label: policy.operator(label) for label in dict.fromkeys(span.label for span in spans)}
    kinds = [kind_of(span.label) for span in spans]
    text, size = doc.text, len(doc.text)
    date_spans = [span for span, kind in zip(spans, kinds, strict=True) if kind.name == "DATE"]
    old, known_timeline = find_old_dates(text, date_spans, policy.age_limit, timeline)
    memory = Memory(
        secret,
        [plain_text(text[span.start : span.end]) for span in date_spans],
        known_timeline.reference_year,
        names=names,
        orders=orders,
    )
    memory.names.add_real_words(_name_words(text, spans, kinds))
    pieces: list[str] = []
    replacements: list[Replacement] = []
    done = out = 0
    for span, kind in zip(spans, kinds, strict=True):
        start, end, label = span.start, span.end, span.label
        seen = FoundIdentifier(
            text[start:end], kind, label, doc.patient, doc.id,
            text[max(0, start - CONTEXT) : start], text[end : min(size, end + CONTEXT)],
        )  # fmt: skip
        name, operator = _HIDDEN_AGE if start in old else operators[label]
        memory.outcome = name
        try:
            new_text = operator(seen, memory)
        except ChaffinchError:
            raise
        except Exception as error:  # its message may hold text of the document
            raise DataError(f"{name} failed at [{start}, {end}) {label}: {type(error).__name__}") from None
        pieces += (text[done:start], new_text)
        out += start - done
        replacements.append(Replacement(start, end, label, memory.outcome, out, out + len(new_text)))
        out += len(new_text)
        done = end
    pieces.append(text[done:])
    return ReplacedText(doc.id, "".join(pieces), tuple(replacements))


def _name_words(text: str, spans: Iterable[Span], kinds: Iterable[Kind]) -> set[str]:
    """Return the folded words of all spans of people's names in a text."""
    names = (text[span.start : span.end] for span, kind in zip(spans, kinds, strict=True) if kind.category == "NAME")
    return {word for name in names for word in words(plain_text(name))}


def originals(text: str, replaced: ReplacedText) -> tuple[str, ...]:
    """Return the original text of every replacement, in order; `text` is the original document's."""
    return tuple(text[one.start : one.end] for one in replaced.replacements)


def undo(pieces: Sequence[str], replaced: ReplacedText) -> str:
    """Return the original text: `pieces`, in order, put back for the replacements; DataError if they do not fit.

    >>> after = ReplacedText("n1", "Dr. [DOCTOR] left.", (Replacement(4, 8, "DOCTOR", "tag", 4, 12),))
    >>> undo(["Penn"], after)
    'Dr. Penn left.'
    """
    replacements = replaced.replacements
    if len(pieces) != len(replacements):
        raise DataError(f"{len(replacements)} replacements cannot be undone with {len(pieces)} originals")
    parts: list[str] = []
    done = 0
    for number, (piece, one) in enumerate(zip(pieces, replacements, strict=True)):
        if len(piece) != one.end - one.start:
            raise DataError(f"original {number} has {len(piece)} characters, but {one.end - one.start} were replaced")
        parts += (replaced.text[done : one.out_start], piece)
        done = one.out_end
    return "".join([*parts, replaced.text[done:]])


def separate_spans(spans: Sequence[Span], text: str, policy: Policy) -> tuple[Span, ...]:
    """Cut overlapping spans into sorted ones that cover the same (but blanks and marks); longest first, kept last.

    The longest of overlapping spans stays whole; of equally long ones the one whose operator hides more, then the one
    with the higher score. Of the others the uncovered parts stay, unless they are blanks and punctuation only. Spans
    that the policy keeps come last.
    """
    if all(a.end <= b.start for a, b in pairwise(spans)):
        return tuple(spans)
    taken: list[Span] = []  # sorted, without overlaps
    for span in sorted(spans, key=lambda one: _rank(one, policy)):
        first = bisect_left(taken, span.start, key=lambda one: one.end)  # the first that does not end before the span
        for piece in list(_parts_outside(span, taken, first)):
            whole = len(piece) == len(span)
            if whole or any(
                unicodedata.category(mark)[0] not in _BLANK_CATEGORIES for mark in text[piece.start : piece.end]
            ):
                taken.insert(bisect_left(taken, piece.start, key=lambda one: one.start), piece)
    return tuple(taken)


def _rank(span: Span, policy: Policy) -> tuple[bool, int, int, float, int, str]:
    """Return the sort key of overlapping spans: hidden before kept, then longer, hidden better, surer, earlier."""
    hides = policy.hides(span.label)
    return hides == 0, span.start - span.end, -hides, -span.score, span.start, span.label


def _parts_outside(span: Span, taken: Sequence[Span], first: int) -> Iterator[Span]:
    """Yield the parts of a span that no taken span covers; `first` is the index of the first one to check."""
    offset = span.start
    for number in range(first, len(taken)):
        other = taken[number]
        if other.start >= span.end:
            break
        if other.start > offset:
            yield Span(offset, other.start, span.label, span.score, span.source)
        offset = max(offset, other.end)
    if offset < span.end:
        yield Span(offset, span.end, span.label, span.score, span.source)
