"""Notes with votes, for tests of what learns from them."""

from __future__ import annotations

import numpy as np

from chaffinch.models.cascade.config import Cascade
from chaffinch.text import Document, Span

QUICK = Cascade(objective="crf", documents=False, calibrate=False, epochs=3)
DISEASES = ("asthma", "gout", "renal failure", "breast cancer", "anaemia", "measles", "scarlet fever", "rickets")
DRUGS = ("aspirin", "heparin", "insulin", "warfarin")
FRAMES = (
    "The patient has {} and takes {} .",
    "Severe {} was treated with {} daily .",
    "History of {} ; {} was given .",
)


def note(number: int, *, gold: bool = False, canary: str = "") -> Document:
    """A note of two sentences; source "a" finds most diseases and drugs, "b" some diseases, "c" is often wrong."""
    rng = np.random.default_rng(number)
    text, spans = "", []
    for _ in range(2):
        frame = FRAMES[rng.integers(len(FRAMES))]
        disease, drug = DISEASES[rng.integers(len(DISEASES))], DRUGS[rng.integers(len(DRUGS))]
        before, middle, after = frame.split("{}")
        text += before
        spans.append(Span(len(text), len(text) + len(disease), "Disease"))
        text += disease + middle
        spans.append(Span(len(text), len(text) + len(drug), "Chemical"))
        text += drug + after + " "
    text += canary
    layers = {
        "source:a": [span for span in spans if rng.random() < 0.8],
        "source:b": [span for span in spans if span.label == "Disease" and rng.random() < 0.6],
        "source:c": [Span(span.start, span.end, "Disease") for span in spans if rng.random() < 0.1],
    }
    return Document.make(text, id=f"n{number}", layers=layers | ({"gold": spans} if gold else {}))


def notes(first: int, end: int, *, gold: bool = False) -> list[Document]:
    """Notes of those numbers."""
    return [note(number, gold=gold) for number in range(first, end)]
