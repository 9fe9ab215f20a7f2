"""A detector for tests that finds what a pattern says, and notes with identifiers it knows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaffinch.deid.keys import Secret
from chaffinch.deid.release.patient import LAYER
from chaffinch.text import Document, Span

# Made by `chaffinch deid secret new`: nothing that a person thought of is accepted.
SECRET = Secret(b"3cbca3244aadd588a943bf7421d9449e8e667f0d5a38d71ba1aa01fdc117ea9f")
OTHER_SECRET = Secret(b"12bd4a7af751586d447e410c5dd1d2e58abcd1da9f9e2fd2fe8a59f7e82370bd")
KEY = Secret(b"f58f112e0f28e924e8283ced030926f6f0e198f9f2d83dd4e8b196f8b10e13e0")
OTHER_KEY = Secret(b"238ed9ea2d0599fc824c4deefb3b94fd69bec42e71919ea03400d0f97c63e458")
CANARY = "Quillfeather"
KNOWN = re.compile(r"(?P<DOCTOR>Quillfeather|Penn|Lowe)|(?P<DATE>\d\d/\d\d/\d{4})|(?P<PHONE>555-\d{4})")


@dataclass(frozen=True, slots=True)
class FunctionDetector:
    """A detector that does what a function does."""

    find: Callable[[Sequence[Document]], Iterable[Document]] = field(repr=False)
    name: str = "pattern"
    model_digest: str = "0" * 64
    layer: str = LAYER
    by_patient: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""

    def __call__(self, documents: Sequence[Document]) -> Iterable[Document]:
        return self.find(documents)


def find(docs: Iterable[Document]) -> Iterator[Document]:
    """The documents with a layer of all that the pattern knows."""
    for doc in docs:
        spans = [Span(m.start(), m.end(), str(m.lastgroup), 0.95) for m in KNOWN.finditer(doc.text)]
        yield doc.with_layer(LAYER, spans)


def detector(
    step: Callable[[Sequence[Document]], Iterable[Document]] = find, *, by_patient: bool = False
) -> FunctionDetector:
    """A detector that does this, or finds what the pattern knows."""
    return FunctionDetector(step, by_patient=by_patient)


def note(number: int) -> str:
    """A note with a canary, a date and a phone number; line ends and characters of every sort."""
    day = f"{number % 12 + 1:02d}/{number % 28 + 1:02d}/1998"
    return f"\ufeffSeen by Dr. {CANARY} on {day}.\r\nCall 555-{number:04d} \U0001f600\0 or Dr. Penn.\n"
