"""A view of a text in plain characters, with exact offsets back, so that rules and models read what people read.

In the view, characters that nobody sees are absent, characters that look like others are those others, and a word that
is written letter by letter or broken at the end of a line is one word. Most texts are their own view:

    >>> view_of("Seen by Dr. Penn.") is None
    True
    >>> view = view_of("Seen by Dr. P\u200be\u00adnn and J o h n  W r e n.")
    >>> view.text
    'Seen by Dr. Penn and John Wren.'
    >>> view.back(12, 16)
    (12, 18)

N characters of the view.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from chaffinch import languages
from chaffinch.text.document import Document, Soft
from chaffinch.text.span import Span

_PLAIN = frozenset(map(chr, range(0x20, 0x7F))) | frozenset("\t\n\v\f\r")
_PLAIN_BYTES = "".join(_PLAIN).encode()
SOFT_HYPHEN = "\u00ad"
# Characters without a glyph that are no format characters: joiners, fillers, variation selectors.
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_MARKS = "\u0300-\u034e\u0350-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"  # of no script in particular
_MARK = re.compile(f"[{_MARKS}]")
_MARKED_WORD = re.compile(rf"(?:[^\W\d_][{_MARKS}]+){{3,}}")  # no language does; then all marks are ornaments
_ALIKE = {
    "\x1e": "-",
    "\x1f": "",
    "\x85": "\n",
    "\u2028": "\n",
    "\u2029": "\n",
    "\u2010": "-",
    "\u2011": "-",
    "\u2212": "-",
    "\u2800": " ",
    "\ufb00": "ff",
    "\ufb01": "fi",
    "\ufb02": "fl",
    "\ufb03": "ffi",
    "\ufb04": "ffl",
    "\ufb05": "st",
    "\ufb06": "st",
}  # fmt: skip  (control characters as Word writes them: 1E is a hyphen, 1F a soft hyphen)
_SOFT_BREAK = re.compile(rf"{SOFT_HYPHEN}\r?\n[ \t]*(?=[^\W\d_])")
_BREAK = re.compile(r"(?<=[^\W_])-\r?\n[ \t]*(?=[^\W_])")
_SHORT_LINE = 40  # characters; a capital after a hyphen at the end of a shorter line begins another line, not a word

_LONGEST_SYLLABLE = 4  # letters; the common words among beginnings of names are no longer ("War-ren")

_MAYBE_SPACED = re.compile(r" \S \S(?!\w)")
_SPACED = re.compile(r"(?<![^\s([{“‘:,;/'#-])\S(?: \S)+(?![^\s)\]}”’'.,:;!?/]|/(?!\S ))")
_WORD = re.compile(r"[^\W\d_]{3,}")
_INITIALS = re.compile(r"[A-Z](?: [A-Z]){2}")
_SPACED_WORD = re.compile(r"[^\W\d_](?: [^\W\d_]){2}\Z")
_NUMBER, _CODE = re.compile(r"[0-9(][0-9()/.,:-]*"), re.compile(r"[A-Z0-9]+(?:[-/.][A-Z0-9]+)*")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}s?")
_MAILBOX = re.compile(r"(?: \S){0,64} @")
_NUMBER_AFTER, _NUMBER_BEFORE = re.compile(r" {2,4}\d \d \d"), re.compile(r"\d \d \d {2,4}\Z")
_JOINS_NUMBERS = frozenset("-/.()")
_CODE_DIGITS = 4  # the fewest digits of a code with letters that is written letter by letter
_FEWEST_DIGITS, _MANY_DIGITS = 3, 7  # of a spaced number with a hyphen, slash, dot or bracket; and without
_WIDEST_GAP = 4  # blanks between words that are written letter by letter; more of them separate columns
_GAP = re.compile(rf" {{2,{_WIDEST_GAP}}}(?! )")
# Two blanks or a tab inside a line; not after a sentence, nor before a label such as "MRN:". More blanks are columns.
_WIDE = re.compile(
    r"(?:[^.!?\s]|\b[A-Z][a-z]{0,3}\.)( {2}| ?\t ?)(?=\S)(?![A-Za-z/'’]{1,24}(?: [A-Za-z/'’]{1,24}){0,2} ?[:#])"
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class View:
    """A text in plain characters; character i comes from [starts[i], ends[i]) of the original.

    Invisible characters belong to the visible one before them. Both arrays never fall.
    """

    text: str
    starts: NDArray[np.int64]  # (N,)
    ends: NDArray[np.int64]  # (N,)

    def back(self, start: int, end: int) -> tuple[int, int]:
        """Return the original offsets of a stretch [start, end) of the view, which must not be empty (not checked)."""
        return int(self.starts[start]), int(self.ends[end - 1])

    def forth(self, offsets: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return (n, 2) the stretches of the view that show n stretches (n, 2) of the original; some may be empty."""
        firsts = np.searchsorted(self.ends, offsets[:, 0], side="right")
        stops = np.searchsorted(self.starts, offsets[:, 1], side="left")
        return np.stack([firsts, np.maximum(firsts, stops)], axis=1)

    def spans_back(self, spans: Iterable[Span]) -> list[Span]:
        """Return copies of spans of the view with their offsets in the original."""
        return [
            replace(span, start=start, end=end) for span in spans for start, end in [self.back(span.start, span.end)]
        ]

    def document(self, doc: Document) -> Document:
        """Return the document with the view's text, tokens, and spans it shows; no soft labels, no relations."""
        layers = {name: list(self._spans_forth(spans)) for name, spans in doc.layers.items()}
        sentences = np.maximum.accumulate(self.forth(doc.sentences).ravel()).reshape(-1, 2) if doc.given else None
        return Document.make(
            self.text, id=doc.id, group=doc.group, meta=doc.meta, layers=layers, sentences=sentences,
            max_chars=max(1, len(self.text)),
        )  # fmt: skip

    def soft_back(self, soft: Soft, shown: Document, doc: Document) -> Soft:
        """Return soft labels of the original's tokens: of the view's tokens each touches, the row least O; else O.

        `shown` is the document that `soft` belongs to, `doc` the original. A token that the view does not show is O.
        """
        rows = np.zeros((len(doc.tokens), len(soft.labels)))
        other = soft.labels.index("O")
        rows[:, other] = 1.0
        firsts, ends = shown.token_ranges(self.forth(doc.tokens)).T
        single = ends == firsts + 1  # nearly all
        rows[single] = soft.values[firsts[single]]
        for token in np.flatnonzero(ends > firsts + 1).tolist():
            first, end = int(firsts[token]), int(ends[token])
            rows[token] = soft.values[first + int(soft.values[first:end, other].argmin())]
        return Soft(soft.labels, rows)

    def _spans_forth(self, spans: tuple[Span, ...]) -> Iterator[Span]:
        """Yield spans of the original moved to the view; those that the view does not show are left out."""
        offsets = np.array([(span.start, span.end) for span in spans], np.int64).reshape(-1, 2)
        for span, (start, end) in zip(spans, self.forth(offsets).tolist(), strict=True):
            if start < end:
                yield replace(span, start=start, end=end)


@dataclass(frozen=True, slots=True, eq=False)
class ShownDocument:
    """A document, and the document that its view shows: itself where the text is its own view. Built by `of`."""

    original: Document
    shown: Document
    view: View | None = None

    @classmethod
    def of(cls, doc: Document) -> ShownDocument:
        """Return the document together with the document of its view in plain characters."""
        view = view_of(doc.text)
        return cls(doc, doc) if view is None else cls(doc, view.document(doc), view)

    def restore(self, read: Document) -> Document:
        """Return the original with the layers and soft labels that `read` has beside it, in the original's offsets.

        `read` is the shown document, annotated. Where the text is its own view, it is returned as it is.
        """
        view = self.view
        if view is None:
            return read
        layers = {
            name: tuple(view.spans_back(spans))
            for name, spans in read.layers.items()
            if spans is not self.shown.layers.get(name)
        }
        soft = {name: view.soft_back(labels, read, self.original) for name, labels in read.soft.items()}
        return replace(self.original, layers={**self.original.layers, **layers}, soft={**self.original.soft, **soft})


def view_of(text: str) -> View | None:
    """Return a view of the text in plain characters; None if the text is plain already."""
    if text.isascii() and text.isprintable() and (text.count(" ") < 2 or not _MAYBE_SPACED.search(text)):
        return None  # an identifier, say, without an end of line
    readings = {sign: reading for sign in _unusual_characters(text) if (reading := _reading(sign)) != sign}
    if not readings and "-\n" not in text and "-\r\n" not in text and not _MAYBE_SPACED.search(text):
        return None
    view = _View(text)
    if readings:
        view.read_characters(readings)
    if "-\n" in view.text or "-\r\n" in view.text:
        view.drop(_line_ends(view.text))
    if _MAYBE_SPACED.search(view.text):
        view.drop(_letter_gaps(view.text))
    return view.build()


def narrow_view(text: str) -> View | None:
    """Return a view with one blank for tabs and runs of blanks inside lines; None if there are none.

    >>> narrow_view("Dr.  Ada\\tPenn").text
    'Dr. Ada Penn'
    """
    gaps = find_wide_gaps(text)
    if not gaps:
        return None
    view = _View(text.replace("\t", " "), changed=True)
    view.drop((start + 1, end) for start, end in gaps)
    return view.build()


def find_wide_gaps(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each tab or pair of blanks between words of a line; not between sentences or columns.

    >>> find_wide_gaps("Dr.  Ada\\tPenn.  Name:  none   12")
    [(3, 5), (8, 9), (21, 23)]
    """
    if "  " not in text and "\t" not in text:
        return []
    return [match.span(1) for match in _WIDE.finditer(text)]


def plain_text(text: str) -> str:
    """Return a text in plain characters, as its view shows it."""
    view = view_of(text)
    return text if view is None else view.text


class _View:
    """A view while it is made."""

    def __init__(self, text: str, *, changed: bool = False) -> None:
        """Begin with the text itself as its view; `changed` if the text is not the original's."""
        self.text, self._size, self._changed = text, len(text), changed
        self._starts: NDArray[np.int64] | None = None
        self._ends: NDArray[np.int64] | None = None

    def build(self) -> View | None:
        """Return the view; None if nothing was changed."""
        if not self._changed:
            return None
        starts, ends = self._offsets()
        return View(self.text, starts, ends)

    def _offsets(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (n,) start and (n,) end in the original of each character of the view so far."""
        if self._starts is None or self._ends is None:
            places = np.arange(self._size + 1)
            return places[:-1], places[1:]
        return self._starts, self._ends

    def read_characters(self, readings: dict[str, str]) -> None:
        """Replace characters of the view by their `readings`; drop unseen ones, and compose marks with letters."""
        text, out, starts, ends = self.text, list[str](), list[int](), list[int]()
        ornamental = _MARKED_WORD.search(text) is not None
        skipped = -1
        for place, sign in enumerate(text):
            if place < skipped:
                ends[-1] = place + 1
                continue
            shown = readings.get(sign, sign)
            if sign == SOFT_HYPHEN and out and (broken := _SOFT_BREAK.match(text, place)):
                skipped = broken.end()
            if shown == "" and out and _MARK.match(sign) and not ornamental:
                composed = unicodedata.normalize("NFC", out[-1] + sign)
                out[-1] = composed if len(composed) == 1 else out[-1]
            if shown == "" and _separates(text, place, sign):
                shown = " "
            if shown == "" and ends:
                ends[-1] = place + 1
            for one in shown:
                out.append(one)
                starts.append(place)
                ends.append(place + 1)
        self.text, self._changed = "".join(out), True
        self._starts, self._ends = np.array(starts, np.int64), np.array(ends, np.int64)

    def drop(self, stretches: Iterable[tuple[int, int]]) -> None:
        """Remove stretches from the view; the character before each then covers it in the original."""
        dropped = sorted(stretches)
        if not dropped:
            return
        kept = np.ones(len(self.text), np.bool_)
        for start, end in dropped:
            kept[start:end] = False
        starts, ends = self._offsets()
        places = np.flatnonzero(kept)
        last = np.append(places[1:], len(kept)) - 1  # the last character that each kept one stands for
        self._starts, self._ends, self._changed = starts[places], ends[last], True
        self.text = "".join(np.array(list(self.text), dtype=object)[places].tolist())


def _unusual_characters(text: str) -> set[str]:
    """Return the characters of a text that may be read as others."""
    if text.isascii():
        return set(text.encode().translate(None, _PLAIN_BYTES).decode())
    return set(text) - _PLAIN


@lru_cache(maxsize=4096)
def _reading(sign: str) -> str:
    """Return what a character is read as: itself, plain characters alike, a blank, or "" if it is invisible."""
    if sign in _PLAIN:
        return sign
    if sign in _ALIKE:
        return _ALIKE[sign]
    category = unicodedata.category(sign)
    if category == "Zs":
        return " "
    if category == "Nd":
        return str(unicodedata.digit(sign))
    if category == "Cc":
        return " " if sign.isspace() else ""
    if category == "Cf" and unicodedata.bidirectional(sign) != "AN":  # Arabic signs of numbers are visible
        return ""
    if _INVISIBLE.match(sign) or _MARK.match(sign):
        return ""
    kind = unicodedata.decomposition(sign).partition(" ")[0]
    plain = unicodedata.normalize("NFKC", sign)
    return plain if kind in ("<wide>", "<font>") or (kind == "<circle>" and plain.isalpha()) else sign


def _separates(text: str, place: int, sign: str) -> bool:
    """Tell whether an unseen character means a blank: "John|Smith", or the second of two control codes."""
    if sign == SOFT_HYPHEN or _MARK.match(sign):
        return False
    if unicodedata.category(sign) == "Cc" and text[place - 1 : place] == sign:
        return text[place + 1 : place + 2] != sign and text[place - 2 : place - 1] != ""
    before, after = text[max(0, place - 3) : place], text[place + 1 : place + 3]
    return before[-2:].islower() and before[-2:].isalpha() and before != "Mac" and after.istitle() and after.isalpha()


def _line_ends(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) to drop of words and numbers broken at a line end: the break, and a hyphen only for it."""
    for match in _BREAK.finditer(text):
        hyphen, end = match.span()
        line = text[text.rfind("\n", 0, hyphen) + 1 : hyphen]
        before, after = text[hyphen - 1], text[end]
        if before.isdigit() and after.isdigit():
            yield hyphen + 1, end
        elif not before.isalpha() or not after.isalpha() or _is_heading(line):
            continue
        elif after.islower() or line[-2:].isupper():
            yield hyphen, end
        elif len(line) >= _SHORT_LINE:
            yield hyphen + 1, end


def _is_heading(line: str) -> bool:
    """Tell whether a line before a hyphen is one common English word longer than a syllable: "Assessment"."""
    word = line.strip()
    return len(word) > _LONGEST_SYLLABLE and word.isalpha() and languages.fold(word) in languages.pack("en").common


def _letter_gaps(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of blanks to drop inside and around words and numbers written letter by letter."""
    runs = list(_find_spaced_runs(text))
    lines = {line for line, start, end in runs if _is_spaced_word(text, start, end)}
    for line, start, end in runs:
        if not (_is_spaced_word(text, start, end) or _is_number(text, start, end, beside_words=line in lines)):
            continue
        yield from ((place, place + 1) for place in range(start + 1, end, 2) if not _keeps_blank(text, place))
        if after := _GAP.match(text, end):
            yield end + 1, after.end()
        near = text[max(0, start - _WIDEST_GAP - 1) : start]
        before = len(near) - len(near.rstrip(" "))
        if 1 < before <= _WIDEST_GAP:
            yield start - before + 1, start


def _find_spaced_runs(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield (newline before the line, -1 without; start; end) of runs of single characters and single blanks."""
    line, next_line = -1, text.find("\n")  # the end of the line before, and that of this one
    for match in _SPACED.finditer(text):
        start, end = match.span()
        while 0 <= next_line < start:
            line, next_line = next_line, text.find("\n", next_line + 1)
        while start < end and not text[start].isalnum() and text[start] != "(":
            start += 2
        while start < end and not text[end - 1].isalnum() and text[end - 1] not in ").,;:":
            end -= 2
        if start < end:
            yield line, start, end


def _is_spaced_word(text: str, start: int, end: int) -> bool:
    """Tell whether spaced characters hold a word of three letters; not initials before a name, or "L x W x H"."""
    blanks = {place for place in range(start + 1, end, 2) if _keeps_blank(text, place)}
    joined = "".join(text[place] for place in range(start, end) if place in blanks or not (place - start) % 2)
    if not _WORD.search(joined):
        return False
    return not (_INITIALS.fullmatch(text, start, end) and re.match(r" [A-Z][^\W\d_]", text[end : end + 3]))


def _is_number(text: str, start: int, end: int, *, beside_words: bool) -> bool:
    """Tell whether a run of spaced characters is a number or code, and too long for a scale or table.

    Beside words that are written letter by letter, any number is one, and what has wide blanks beside it is a word.
    """
    signs = text[start:end:2]
    digits = [int(sign) for sign in signs if "0" <= sign <= "9"]
    if beside_words and (_NUMBER.fullmatch(signs) or text[end : end + 2] == "  " or text[start - 2 : start] == "  "):
        return True
    if len(digits) > 2 and (_NUMBER_AFTER.match(text, end) or _NUMBER_BEFORE.search(text[max(0, start - 8) : start])):
        return True
    if _YEAR.fullmatch(signs):
        return True
    if not _NUMBER.fullmatch(signs):
        return len(digits) >= _CODE_DIGITS and _CODE.fullmatch(signs) is not None
    if not _JOINS_NUMBERS.isdisjoint(signs):
        return len(digits) >= _FEWEST_DIGITS
    return len(digits) >= _MANY_DIGITS and any(b - a != 1 for a, b in pairwise(digits))


def _keeps_blank(text: str, place: int) -> bool:
    """Tell whether a blank between single characters separates words (after a mark, before a capital), and stays.

    "M c" and "M a c" begin a name.
    """
    before, after = text[place - 1], text[place + 1]
    if _MAILBOX.match(text, place):
        return False
    if after.isupper() and (before.islower() or before in ".,;:!?"):
        return text[max(0, place - 3) : place] != "M c" and text[max(0, place - 5) : place] != "M a c"
    if before.isdigit() and after.isupper() and text[place + 3 : place + 4].islower():
        return True
    return before in ",;:" or (after.isdigit() and _SPACED_WORD.search(text[max(0, place - 5) : place]) is not None)
