"""Documents by the thousand for the promises: text of every script and sort, with identifiers at known places."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np

from chaffinch.deid.policy import Policy, PolicyRule
from chaffinch.deid.release.patient import LAYER
from chaffinch.text import Document, Span
from tests.deid.releases import FunctionDetector

Rng = np.random.Generator

PLANTED = "planted"
READY = tuple(Policy.read(name) for name in ("safe-harbor", "limited-dataset", "i2b2-surrogate"))
POLICIES = (*READY, *(Policy(name, PolicyRule(name)) for name in ("tag", "number", "mask", "remove")))

_BLOCKS = (
    (0x20, 0x7F), (0x20, 0x7F), (0xA0, 0x250), (0x300, 0x370), (0x370, 0x530), (0x590, 0x700), (0x900, 0xA00),
    (0xE00, 0x1100), (0x1E00, 0x2100), (0x2100, 0x2C00), (0x3000, 0x3200), (0x4E00, 0x5200), (0xAC00, 0xAD00),
    (0xE000, 0xE100), (0xFB00, 0xFE10), (0xFE20, 0xFFFE), (0x10000, 0x10400), (0x1D400, 0x1D800), (0x1F300, 0x1FA00),
    (0xE0000, 0xE0080), (0x10FF00, 0x110000),
)  # fmt: skip
_AWKWARD = (
    "\r\n", "\n", "\r", "\n\n", "\t", " ", "  ", "\ufeff", "\0", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029",
    "\u200d", "\u202e", "\u2066", "\U0001f469\u200d\u2695\ufe0f", "\U0001f1e9\U0001f1ea", "e\u0301", "\u0130", "ß",
    "[DATE]", "[DOCTOR-1]", "<b>", "&amp;", '"', ",", ";", "\\", "{", "%s", ". ", "Dr. ", "seen by ", "b.i.d. 5 mg",
)  # fmt: skip
_SYLLABLES = tuple("ka ro mi ten vel dor ash qui lin bur os pra gan fer wyn tol".split())
_LETTERS = (
    tuple(
        "абвгдежз",
    )
    + tuple("αβγδεζηθ")
    + tuple("日本語山田太郎")
    + tuple("éüßñçøåž")
)

Form = Callable[[date], str]
# Month first or unmistakable, so that the order of a document is never in doubt.
FULL_DATES: tuple[tuple[str, str], ...] = (
    ("%m/%d/%Y", "03/04/1998"), ("%Y-%m-%d", "1998-03-04"), ("%B %d, %Y", "March 04, 1998"),
    ("%d %b %Y", "04 Mar 1998"), ("%Y%m%d", "19980304"), ("%m-%d-%Y", "03-04-1998"),
)  # fmt: skip


def glue(rng: Rng, most: int = 6) -> str:
    """Text that is no identifier: characters of random blocks, and awkward pieces."""
    parts = []
    for _ in range(int(rng.integers(0, most + 1))):
        if rng.random() < 0.5:
            parts.append(_AWKWARD[rng.integers(len(_AWKWARD))])
        else:
            low, high = _BLOCKS[rng.integers(len(_BLOCKS))]
            parts.append("".join(map(chr, rng.integers(low, high, int(rng.integers(1, 5))))))
    return "".join(parts)


def word(rng: Rng, syllables: int = 3) -> str:
    """A name nobody has: of four syllables and more, in no other text by chance."""
    return "".join(_SYLLABLES[n] for n in rng.integers(0, len(_SYLLABLES), syllables)).capitalize()


def day(rng: Rng) -> date:
    """A day of 1950 to 2029."""
    return date(1950, 1, 1) + timedelta(days=int(rng.integers(0, 29_000)))


def _name(rng: Rng) -> str:
    style = rng.integers(6)
    last = word(rng)
    if style == 0:
        return last.upper()
    if style == 1:
        return f"{last}, {word(rng, 2)} {chr(65 + rng.integers(26))}."
    if style == 2:
        return "".join(_LETTERS[n] for n in rng.integers(0, len(_LETTERS), int(rng.integers(1, 8))))
    if style == 3:
        return f"{word(rng, 2)}-{last}\n{word(rng, 1)}'s"
    return f"{word(rng, 2)} {last}" if style == 4 else last


def _date(rng: Rng) -> str:
    one = day(rng)
    style = int(rng.integers(0, len(FULL_DATES) + 5))
    if style < len(FULL_DATES):
        return one.strftime(FULL_DATES[style][0])
    return (
        f"{one.month}/{one.day}", one.strftime("%B %Y"), "31/02/1998", one.strftime("%A"), "3 days later",
    )[style - len(FULL_DATES)]  # fmt: skip


def _digits(rng: Rng, number: int) -> str:
    return "".join(map(str, rng.integers(0, 10, number)))


_KINDS: dict[str, Callable[[Rng], str]] = {
    "PATIENT": _name,
    "DOCTOR": _name,
    "DATE": _date,
    "AGE": lambda rng: str(rng.integers(0, 120)),
    "ZIP": lambda rng: _digits(rng, 5),
    "STATE": lambda rng: ("MA", "Ohio", "new york")[rng.integers(3)],
    "CITY": word,
    "PHONE": lambda rng: f"({_digits(rng, 3)}) {_digits(rng, 3)}-{_digits(rng, 4)}",
    "EMAIL": lambda rng: f"{word(rng).lower()}@{word(rng).lower()}.org",
    "MEDICALRECORD": lambda rng: f"{chr(65 + rng.integers(26))}{_digits(rng, 7)}",
    "Own type": lambda rng: glue(rng, 2) or "x",
}  # fmt: skip
LABELS = tuple(_KINDS)


def document(rng: Rng, number: int, *, patients: int = 40, overlaps: bool = True) -> Document:
    """One document with the layer "planted": spans often touch, and some overlap if they may."""
    parts: list[str] = []
    spans: list[Span] = []
    at = 0
    for _ in range(int(rng.integers(0, 7))):
        between = glue(rng)
        label = LABELS[rng.integers(len(LABELS))]
        found = _KINDS[label](rng)
        parts += (between, found)
        at += len(between)
        spans.append(Span(at, at + len(found), label, float(rng.choice([0.3, 0.6, 0.95, 1.0]))))
        at += len(found)
    parts.append(glue(rng))
    text = "".join(parts)
    if overlaps and len(text) > 2 and rng.random() < 0.5:
        start, end = sorted(rng.choice(len(text) + 1, 2, replace=False).tolist())
        spans.append(Span(start, end, LABELS[rng.integers(len(LABELS))], 0.5))
    group = f"p{rng.integers(patients)}" if rng.random() < 0.9 else None
    return Document.make(text, id=f"n{number:05d}", group=group, layers={PLANTED: sorted(set(spans), key=_place)})


def _place(span: Span) -> tuple[int, int, str]:
    return span.start, span.end, span.label


@functools.cache
def documents(number: int, seed: int, *, overlaps: bool = True) -> tuple[Document, ...]:
    """So many documents, the same for the same seed."""
    rng = np.random.default_rng(seed)
    return tuple(document(rng, n, overlaps=overlaps) for n in range(number))


def with_patient(doc: Document) -> Document:
    """The document; one without a patient is of a patient of its own."""
    return replace(doc, group=doc.patient)


def planted(docs: Sequence[Document]) -> FunctionDetector:
    """A detector that finds what was planted in these documents, told by their text."""
    known = {doc.text: doc.layers[PLANTED] for doc in docs}

    def find(given: Iterable[Document]) -> Iterator[Document]:
        for doc in given:
            yield doc.with_layer(LAYER, known[doc.text])

    return FunctionDetector(find, PLANTED)


class Dated(NamedTuple):
    """A document whose dates are known: by place, the format and the day."""

    doc: Document
    days: tuple[tuple[str, date], ...]


def dated(rng: Rng, number: int, patient: str, count: int) -> Dated:
    """A document with so many full dates between glue."""
    parts: list[str] = []
    spans: list[Span] = []
    days: list[tuple[str, date]] = []
    at = 0
    for _ in range(count):
        one, (form, _) = day(rng), FULL_DATES[rng.integers(len(FULL_DATES))]
        between, text = glue(rng, 3), one.strftime(form)
        spans.append(Span(at + len(between), at + len(between) + len(text), "DATE"))
        parts += (between, text)
        at += len(between) + len(text)
        days.append((form, one))
    return Dated(Document.make("".join(parts), id=f"n{number}", group=patient, layers={PLANTED: spans}), tuple(days))


def put_back(out: str, original: str, places: Iterable[Sequence[int | str]]) -> str:
    """The original from an output, by the places of [start, end, …, out_start, out_end], last first."""
    for start, end, *_, out_start, out_end in reversed(list(places)):
        out = out[: int(out_start)] + original[int(start) : int(end)] + out[int(out_end) :]
    return out
