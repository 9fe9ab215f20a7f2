"""A detector for tests that finds what a pattern says, and notes with identifiers it knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from chaffinch.deid.keys import Secret
from chaffinch.deid.release import LAYER, Detector
from chaffinch.text import Document, Span

SECRET = Secret(b"0123456789abcdef0123456789abcdef")
KEY = Secret(b"fedcba9876543210fedcba9876543210")
OTHER_KEY = Secret(b"fedcba9876543210fedcba9876543211")
CANARY = "Quillfeather"
KNOWN = re.compile(r"(?P<DOCTOR>Quillfeather|Penn|Lowe)|(?P<DATE>\d\d/\d\d/\d{4})|(?P<PHONE>555-\d{4})")


def find(docs: Iterable[Document]) -> Iterator[Document]:
    """The documents with a layer of all that the pattern knows."""
    for doc in docs:
        spans = [Span(m.start(), m.end(), str(m.lastgroup), 0.95) for m in KNOWN.finditer(doc.text)]
        yield doc.with_layer(LAYER, spans)


def detector(step: Callable[[Sequence[Document]], Iterable[Document]] = find, *, by_patient: bool = False) -> Detector:
    """A detector that does this, or finds what the pattern knows."""
    return Detector(step, "pattern", "0" * 64, by_patient=by_patient)


def note(number: int) -> str:
    """A note with a canary, a date and a phone number; line ends and characters of every sort."""
    day = f"{number % 12 + 1:02d}/{number % 28 + 1:02d}/1998"
    return f"\ufeffSeen by Dr. {CANARY} on {day}.\r\nCall 555-{number:04d} \U0001f600\0 or Dr. Penn.\n"
