"""Cues from lines and sections, as layers that taggers use as features.

"cue:field" marks the value after a label such as "Attending:", by the class of the label, and rows of numbers;
"cue:section" marks the sections of a note, their titles, the letterhead and the signature; "cue:protected" marks terms
that identify nobody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from chaffinch import languages
from chaffinch.deid.detect.word_lists import LANGUAGE, WordLists, word_lists
from chaffinch.deid.detect.word_lists import LAYER as PROTECTED
from chaffinch.deid.patterns import find as patterns
from chaffinch.models.core.batching import BATCH_TOKENS, batches
from chaffinch.text import Document, Span

FIELD, SECTION = "cue:field", "cue:section"
ROW = "row"  # the label of a row of a table of numbers, in the layer of fields
LAYERS = (FIELD, SECTION, PROTECTED, patterns.LAYER)
_LONGEST_LABEL = 32  # characters; what is longer before a colon is a clause, not a label
LEAST_NUMBERS = 5  # of a row of a table; if lower, short lines of measurements count as rows too
_NUMBERS = re.compile(r"(?<!\S)[-+<>(]?\d[\d./:x-]*[%)HL]?(?!\S)")
_LABEL = re.compile(
    r"(?:^[*_<\[ ]{0,3}|(?<=\s{2})|(?<=[|;,]\s)|(?<=\t))([A-Za-z][A-Za-z/#.'’ ]{0,31}?)[*_]{0,2}\s*"
    r"(?::[*_]{0,2}|#|>|\||\s-)(?=\s|\w|$)"
)
_MARK = re.compile(r"[:#>|]|\s-")  # every label ends in one; lines without any are skipped
_WORD = re.compile(r"[a-z-]+")
_TITLE = re.compile(r"^[ \t#*]*([A-Z][A-Za-z/&' -]{2,40}?)(?::|\s-)?[ \t]*$|^[ \t]*([A-Z][A-Z/&' ]{2,40}):")

_LAST_LINES = 4  # the most lines that count as the signature; a note must have more than twice as many
# Characters of a line: a longer line is no title (unless a colon ends its title), and no part of a signature.
_LONGEST_TITLE, _LONGEST_SIGNED = 48, 90


def with_cues(docs: Iterable[Document], lists: WordLists | None = None) -> Iterator[Document]:
    """Yield the documents with layers of fields, sections, protected terms and patterns, computed where missing."""
    known = lists or word_lists()
    # Each layer with the function that finds its spans; a function may use the layers before its own.
    finders: tuple[tuple[str, Callable[[Sequence[Document]], list[list[Span]]]], ...] = (
        (FIELD, lambda docs: [fields(doc.text, known.language) for doc in docs]),
        (SECTION, lambda docs: [sections(doc.text, known.language) for doc in docs]),
        (PROTECTED, known.find_protected_in),
        (patterns.LAYER, lambda docs: patterns.find_in(docs, lists=known)),
    )
    for batch in batches(docs, BATCH_TOKENS):
        layers = [dict(doc.layers) for doc in batch]  # filled step by step, because finders build on one another
        prepared = [replace(doc, layers=added) for doc, added in zip(batch, layers, strict=True)]
        for name, find in finders:
            missing = [number for number, present in enumerate(layers) if name not in present]
            found = find([prepared[number] for number in missing]) if missing else []
            for number, spans in zip(missing, found, strict=True):
                layers[number][name] = tuple(spans)
        yield from prepared


def without_cues(doc: Document, before: Document) -> Document:
    """Return `doc` without those cue and pattern layers that `before` does not have."""
    added = [name for name in LAYERS if name not in before.layers]
    return replace(doc, layers={name: spans for name, spans in doc.layers.items() if name not in added})


def fields(text: str, language: str = LANGUAGE) -> list[Span]:
    """Return spans of values after known labels such as "MRN:", by class; else of lines that are rows of numbers.

    >>> [(span.start, span.end, span.label) for span in fields("Attending: Ada Penn   MRN: 12345")]
    [(10, 22, 'doctor'), (26, 32, 'id')]
    """
    out: list[Span] = []
    for start, line in _lines(text):
        matches = _LABEL.finditer(line) if _MARK.search(line) else ()
        labels = [(match.start(1), match.end(), _class_of(match.group(1), language, titles=False)) for match in matches]
        found = len(out)
        for number, (_, begin, kind) in enumerate(labels):
            end = labels[number + 1][0] if number + 1 < len(labels) else len(line)
            if kind and line[begin:end].strip():
                out.append(Span(start + begin, start + end, kind, 1.0, "cue"))
        if len(out) == found and _is_row(line):
            out.append(Span(start, start + len(line), ROW, 1.0, "cue"))
    return out


def _is_row(line: str) -> bool:
    """Tell whether a line has five or more numbers, and these are more than half of its words."""
    if len(line) < 2 * LEAST_NUMBERS - 1:
        return False
    numbers = len(_NUMBERS.findall(line))
    return numbers >= LEAST_NUMBERS and numbers > len(line.split()) / 2


def sections(text: str, language: str = LANGUAGE) -> list[Span]:
    """Return spans of a note's titles and sections by class; "letterhead" before the first title, "signature" last."""
    lines = list(_lines(text))
    cuts: list[tuple[int, str]] = [(0, "letterhead")]
    for start, line in lines:
        match = _TITLE.match(line) if len(line) <= _LONGEST_TITLE or ":" in line[:_LONGEST_TITLE] else None
        kind = _class_of(match.group(1) or match.group(2), language, titles=True) if match else ""
        if match and kind:
            cuts += [(start, "title"), (start + match.end(), kind)]
    filled = [(start, line) for start, line in lines if line.strip()]
    last = len(text)
    for start, line in filled[: -_LAST_LINES - 1 : -1] if len(filled) > 2 * _LAST_LINES else ():
        if len(line) > _LONGEST_SIGNED or (cuts and start <= cuts[-1][0]):
            break
        last = start
    cuts += [(last, "signature")] if last < len(text) else []
    ends = [start for start, _ in cuts[1:]] + [len(text)]
    return [Span(start, end, kind, 1.0, "cue") for (start, kind), end in zip(cuts, ends, strict=True) if start < end]


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (offset of its first character, text without its line end) of each line."""
    start = 0
    for line in text.split("\n"):
        yield start, line.rstrip("\r")
        start += len(line) + 1


@cache
def _classes(language: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return two tables of a language, word to class: for labels of fields and for titles of sections."""
    cues = languages.cue_words(language)
    fields, sections = (
        {word: name for name, words in reversed(table.items()) for word in words}
        for table in (cues.fields, cues.sections)
    )
    return fields, sections


@lru_cache(maxsize=1 << 12)  # labels and titles recur
def _class_of(label: str, language: str, *, titles: bool) -> str:
    """Return the class of the first word of a label, or title, that is in its table; "" for none or a long label."""
    table = _classes(language)[titles]
    words = _WORD.findall(label.lower())
    return next((table[word] for word in words if word in table), "") if len(label) <= _LONGEST_LABEL else ""
