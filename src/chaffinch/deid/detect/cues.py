"""What a line and a section say of the words in them, as layers that taggers use as features.

"cue:field" marks what stands behind a label such as "Attending:", by what the label announces, and rows of numbers;
"cue:section" the part of a note a word stands in, titles, the letterhead and the signature; "cue:protected" terms that
identify nobody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from chaffinch import languages
from chaffinch.deid.detect.word_lists import LANGUAGE, WordLists, word_lists
from chaffinch.deid.detect.word_lists import LAYER as PROTECTED
from chaffinch.deid.patterns import find as patterns
from chaffinch.models.core.batching import BATCH_TOKENS, batches
from chaffinch.text import Document, Span

FIELD, SECTION = "cue:field", "cue:section"
ROW = "row"  # of a table of numbers, among the fields
LAYERS = (FIELD, SECTION, PROTECTED, patterns.LAYER)
_LONGEST_LABEL = 32
LEAST_NUMBERS = 5  # of a row of a table
_NUMBERS = re.compile(r"(?<!\S)[-+<>(]?\d[\d./:x-]*[%)HL]?(?!\S)")
_LABEL = re.compile(
    r"(?:^[*_<\[ ]{0,3}|(?<=\s{2})|(?<=[|;,]\s)|(?<=\t))([A-Za-z][A-Za-z/#.'’ ]{0,31}?)[*_]{0,2}\s*"
    r"(?::[*_]{0,2}|#|>|\||\s-)(?=\s|\w|$)"
)
_MARK = re.compile(r"[:#>|]|\s-")  # every label ends in one
_TITLE = re.compile(r"^[ \t#*]*([A-Z][A-Za-z/&' -]{2,40}?)(?::|\s-)?[ \t]*$|^[ \t]*([A-Z][A-Z/&' ]{2,40}):")

_LAST_LINES = 4
_LONGEST_TITLE, _LONGEST_SIGNED = 48, 90  # characters of a line


def with_cues(docs: Iterable[Document], lists: WordLists | None = None) -> Iterator[Document]:
    """Yield the documents with the layers of cues and of patterns, those that lack them."""
    known = lists or word_lists()
    # By layer, what finds its spans in documents, which may build on the layers before.
    finders: tuple[tuple[str, Callable[[Sequence[Document]], list[list[Span]]]], ...] = (
        (FIELD, lambda docs: [fields(doc.text, known.language) for doc in docs]),
        (SECTION, lambda docs: [sections(doc.text, known.language) for doc in docs]),
        (PROTECTED, known.protected_in),
        (patterns.LAYER, lambda docs: patterns.find_in(docs, lists=known)),
    )
    for batch in batches(docs, BATCH_TOKENS):
        layers = [dict(doc.layers) for doc in batch]  # filled step by step, for finders build on one another
        prepared = [replace(doc, layers=own) for doc, own in zip(batch, layers, strict=True)]
        for name, find in finders:
            lacking = [place for place, own in enumerate(layers) if name not in own]
            found = find([prepared[place] for place in lacking]) if lacking else []
            for place, spans in zip(lacking, found, strict=True):
                layers[place][name] = tuple(spans)
        yield from prepared


def without_cues(doc: Document, before: Document) -> Document:
    """The document without the layers of cues that it lacked before."""
    gone = [name for name in LAYERS if name not in before.layers]
    return replace(doc, layers={name: spans for name, spans in doc.layers.items() if name not in gone})


def fields(text: str, language: str = LANGUAGE) -> list[Span]:
    """Find what stands behind the labels of lines, up to the next label or the end of the line; and rows of numbers.

    >>> [(span.start, span.end, span.label) for span in fields("Attending: Ada Penn   MRN: 12345")]
    [(10, 22, 'doctor'), (26, 32, 'id')]
    """
    out: list[Span] = []
    announced, _ = _classes(language)
    for start, line in _lines(text):
        matches = _LABEL.finditer(line) if _MARK.search(line) else ()
        labels = [(match.start(1), match.end(), _class_of(match.group(1), announced)) for match in matches]
        found = len(out)
        for place, (_, begin, kind) in enumerate(labels):
            end = labels[place + 1][0] if place + 1 < len(labels) else len(line)
            if kind and line[begin:end].strip():
                out.append(Span(start + begin, start + end, kind, 1.0, "cue"))
        if len(out) == found and _is_row(line):
            out.append(Span(start, start + len(line), ROW, 1.0, "cue"))
    return out


def _is_row(line: str) -> bool:
    """Whether a line is a row of a table of numbers: five or more, and more than the other words."""
    if len(line) < 2 * LEAST_NUMBERS - 1:
        return False
    numbers = len(_NUMBERS.findall(line))
    return numbers >= LEAST_NUMBERS and numbers > len(line.split()) / 2


def sections(text: str, language: str = LANGUAGE) -> list[Span]:
    """Find the sections of a note: from each title to the next; "letterhead" before the first, "signature" last."""
    lines = list(_lines(text))
    _, begun = _classes(language)
    cuts: list[tuple[int, str]] = [(0, "letterhead")]
    for start, line in lines:
        match = _TITLE.match(line) if len(line) <= _LONGEST_TITLE or ":" in line[:_LONGEST_TITLE] else None
        kind = _class_of(match.group(1) or match.group(2), begun) if match else ""
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
    start = 0
    for line in text.split("\n"):
        yield start, line.rstrip("\r")
        start += len(line) + 1


@cache
def _classes(language: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return by word what a label with it announces, and what a title; the first class that fits counts."""
    cues = languages.cue_words(language)
    fields, sections = (
        {word: name for name, words in reversed(table.items()) for word in words}
        for table in (cues.fields, cues.sections)
    )
    return fields, sections


def _class_of(label: str, table: Mapping[str, str]) -> str:
    words = re.findall(r"[a-z-]+", label.lower())
    return next((table[word] for word in words if word in table), "") if len(label) <= _LONGEST_LABEL else ""
