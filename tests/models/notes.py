"""Invented notes with known spans: names after titles, doses after drugs, towns after "to"; all from a seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chaffinch.models.cascade.model import Model as CascadeModel
from chaffinch.models.registry import Model
from chaffinch.text import Document, Span

FIRST = "Ann Bo Carl Dora Eve Finn Gus Hal Ida Jo".split()
LAST = "Penn Lowe Hart Ford Byrd Cole Dale Nash Reed Voss".split()
DRUGS = "aspirin heparin warfarin codeine insulin".split()
TOWNS = ["Leeds", "York", "Bath", "Hull", "New Haven", "Ely"]
Part = tuple[str, str]  # words and their label, "" for none

# Documents with next to nothing in them.
EMPTY = (Document.make(""), Document.make(" \n "), Document.make("a b", tokens=[(0, 1), (2, 3)], sentences=[]))
TINY = (
    *EMPTY,
    Document.make("Ann"),
    Document.make("."),
    Document.make("Zyxgov qoph"),  # unknown words only
    Document.make("a b", tokens=[(0, 1), (2, 3)], sentences=[(0, 0), (2, 3)]),
    Document.make("😀 東京 \u200d"),
)


def sentence(rng: np.random.Generator) -> list[Part]:
    def one(words: Sequence[str]) -> str:
        return words[int(rng.integers(len(words)))]

    kind = rng.integers(6)
    if kind == 0:
        name = " ".join([one(FIRST), one(LAST), one(LAST)][: rng.integers(1, 4)])
        return [(one(["Dr.", "Mrs.", "Mr."]), ""), (name, "NAME"), (one(["saw her.", "came.", "was called."]), "")]
    if kind == 1:
        dose = (f"{rng.integers(1, 90)} {one(['mg', 'ml'])}", "DOSE")
        return [("Take", ""), (one(DRUGS), "DRUG"), dose, ("daily.", "")]
    if kind == 2:
        return [("She was moved to", ""), (one(TOWNS), "TOWN"), ("by", ""), (one(FIRST), "NAME"), (".", "")]
    if kind == 3:
        return [(one(["No fever.", "Lungs are clear.", "The pain is gone.", "Seen at home."]), "")]
    if kind == 4:
        return [("Discharged to", ""), (one(TOWNS), "TOWN"), ("\n", "")]
    return [("No", ""), (one(DRUGS), "DRUG"), ("was given to", ""), (one(FIRST), "NAME"), (".", "")]


def note(parts: Sequence[Sequence[Part]], *, id: str, group: str | None = None) -> Document:  # noqa: A002
    text, spans = "", []
    for sentence in parts:
        for words, label in sentence:
            text += " " if text and words not in (".", "\n") else ""
            if label:
                spans.append(Span(len(text), len(text) + len(words), label))
            text += words
    return Document.make(text, id=id, group=group, layers={"gold": spans})


def noisy(parts: list[Part], rng: np.random.Generator, noise: float) -> list[Part]:
    """Remove some spans, and give some the wrong label."""
    draws = rng.random((len(parts), 2)) < noise
    return [(w, "" if a else "TOWN" if b and label else label) for (w, label), (a, b) in zip(parts, draws, strict=True)]


def notes(count: int, seed: int = 0, *, patients: int | None = None, noise: float = 0.0) -> list[Document]:
    """Return that many notes of one to five sentences, each of another patient or divided among `patients`."""
    rng = np.random.default_rng(seed)
    return [
        note(
            [noisy(sentence(rng), rng, noise) for _ in range(rng.integers(1, 6))],
            id=f"note-{seed}-{number}",
            group=None if patients is None else f"patient-{number % patients}",
        )
        for number in range(count)
    ]


def hit_rate(docs: Sequence[Document], layer: str = "cascade") -> float:
    """Return the F1 of a layer against gold, exact spans."""
    right = sum(len(set(doc.layer("gold")) & set(doc.layer(layer))) for doc in docs)
    total = sum(len(doc.layer("gold")) + len(doc.layer(layer)) for doc in docs)
    return 2 * right / total


def cascade_model(model: Model) -> CascadeModel:
    """Return the model of a tagger that is a cascade."""
    assert isinstance(model, CascadeModel)
    return model
