"""The publication's comparison: four representations, both null models, Krogh's training; on two corpora.

A tuple is right if its segments contain the arguments, each stated tuple once. Intervals come from drawing documents
anew.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.relations.data import Sample
from chaffinch import Document
from chaffinch.kernels.lattice import Bools, Ints
from chaffinch.models.phrasehmm.choice import cross_validate
from chaffinch.models.phrasehmm.config import PUBLISHED, PhraseHMM
from chaffinch.relations import Extraction, Schema
from chaffinch.relations.distant import label, names_of
from chaffinch.relations.joint.extractor import assemble_tuples, right_ones
from chaffinch.relations.joint.segments import lines

FOLDS = 5
POINTS = 60  # of a curve
DRAWS = 300  # of documents, for intervals
LEVELS = np.linspace(0.0, 1.0, 41)  # recalls at which a band has its edges
ML, KROGH, OURS = "counts", "Krogh's rule", "our exponentiated rule"
RATES = (0.0001, 0.001, 0.01, 0.05)


@dataclass(frozen=True, slots=True)
class Compared:
    """One model of the comparison on one corpus: representation, null model, training, and what the model sees."""

    representation: str
    null: str  # separate or combined
    training: str
    labels: str  # of training sentences: by known tuples, or those of the corpus
    masked: bool = False

    @property
    def name(self) -> str:
        """The name of the row."""
        parts = (self.representation, f"{self.null} null", self.training, "masked" if self.masked else "bare")
        return ", ".join(parts)

    def config(self) -> PhraseHMM:
        """The settings: as published, or with our rule, which held-out groups stop."""
        combined, usual = self.null == "combined", PhraseHMM()
        if self.training == ML:
            return PhraseHMM.published(self.representation, combined=combined)
        chosen = PhraseHMM.published(self.representation, combined=combined, trainer="krogh")
        if self.training == KROGH:
            return chosen
        return replace(chosen, update=usual.update, rate=usual.rate, held_out=usual.held_out)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Extracted tuples by falling confidence: which are right, of which document; and what documents state."""

    right: Bools  # (n,)
    document: Ints  # (n,)
    stated: Ints  # (documents,)
    seconds: float

    def rates(self) -> tuple[float, float, float]:
        """Precision, recall and F1 of the end point: everything that was extracted."""
        return _rates(int(self.right.sum()), len(self.right), int(self.stated.sum()))

    def points(self) -> list[tuple[float, float]]:
        """The curve: recall and precision at confidences evenly spread."""
        hits, count = np.cumsum(self.right), len(self.right)
        places = sorted({round(n * (count - 1) / max(POINTS - 1, 1)) for n in range(min(POINTS, count))})
        total = max(int(self.stated.sum()), 1)
        return [(float(hits[n] / total), float(hits[n] / (n + 1))) for n in places]

    def drawn(self) -> Iterator[Ints]:
        """How often each document is in each draw."""
        rng, count = np.random.default_rng(0), len(self.stated)
        for _ in range(DRAWS):
            yield np.bincount(rng.integers(count, size=count), minlength=count)

    def intervals(self) -> list[tuple[float, float]]:
        """Intervals of precision, recall and F1 of the end point."""
        found = []
        for times in self.drawn():
            weights = times[self.document]
            found.append(_rates(int(weights @ self.right), int(weights.sum()), int(times @ self.stated)))
        low, high = np.quantile(found, [0.025, 0.975], axis=0)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def band(self) -> list[tuple[float, float, float]]:
        """Recall, and the interval of precision there, as far as nine in ten draws reach."""
        every = np.full((DRAWS, len(LEVELS)), np.nan)
        for n, times in enumerate(self.drawn()):
            weights = times[self.document]
            hits, taken = np.cumsum(weights * self.right), np.cumsum(weights)
            if len(hits) and hits[-1]:
                recall = hits / max(int(times @ self.stated), 1)
                first = np.searchsorted(recall, LEVELS)
                inside = first < len(recall)
                every[n, inside] = (hits / np.maximum(taken, 1))[first[inside]]
        kept = np.isfinite(every).mean(axis=0) >= 0.9
        if not kept.any():
            return []
        low, high = np.nanquantile(every[:, kept], [0.025, 0.975], axis=0)
        return list(zip(LEVELS[kept].tolist(), low.tolist(), high.tolist(), strict=True))


def comparison(masked: Sequence[bool], labels: str) -> list[Compared]:
    """Every representation with both null models, and the phrase model with both rules of training."""
    out = []
    for mask in masked:
        out += [Compared(kind, null, ML, labels, mask) for kind in PUBLISHED for null in ("separate", "combined")]
        out += [Compared("phrase", "combined", rule, labels, mask) for rule in (KROGH, OURS)]
    return out


def measure(sample: Sample, one: Compared, config: PhraseHMM | None = None) -> Curve:
    """Learn by folds over documents from the labels of `one`, and judge by those of the sample."""
    hmm = config or one.config()
    settings = Extraction(mode="joint", mask=one.masked, pairing="order", labels="path", hmm=hmm)
    began = time.process_time()
    known = by_tuples(sample.docs, sample.schema) if one.labels == "tuples" else sample.docs
    learnt = [line.input for doc in known for line in lines(doc, sample.schema, settings)]
    flat = [(n, line) for n, doc in enumerate(sample.docs) for line in lines(doc, sample.schema, settings)]
    groups = [sample.groups[n] for n, _ in flat]
    readings = cross_validate(learnt, sample.schema.roles, hmm, groups=groups, count=FOLDS)
    stated = np.zeros(len(sample.docs), np.int64)
    scored: list[tuple[float, bool, int]] = []
    for (n, line), reading in zip(flat, readings, strict=True):
        stated[n] += len(line.stated)
        found = assemble_tuples(sample.docs[n], line, reading, sample.schema, settings)
        keys = dict.fromkeys(sample.schema.key(item.spans) for item in found)
        right = right_ones(list(keys), line.stated, exact=False)
        scored += [(reading.log_confidence, hit, n) for hit in right]
    scored.sort(key=lambda own: -own[0])
    _, hits, documents = zip(*scored, strict=True) if scored else ((), (), ())
    seconds = time.process_time() - began
    return Curve(np.array(hits, bool), np.array(documents, np.int64), stated, seconds)


def row(corpus: str, one: Compared, curve: Curve, **more: Any) -> dict[str, Any]:
    """The end point with its intervals."""
    figures = dict(zip(("precision", "recall", "F1"), curve.rates(), strict=True))
    edges = [f"{low:.3f}–{high:.3f}" for low, high in curve.intervals()]
    return {
        "corpus": corpus, "system": one.name, "labelled by": one.labels, **more,
        **{name: round(value, 4) for name, value in figures.items()},
        "P interval": edges[0], "R interval": edges[1], "interval": edges[2],
        "extracted": len(curve.right), "stated": int(curve.stated.sum()), "CPU s": round(curve.seconds, 1),
    }  # fmt: skip


def by_tuples(docs: Sequence[Document], schema: Schema) -> list[Document]:
    """The documents labelled as published: every sentence that names all members of a tuple that some document states.

    The tuples of all documents are the database, which knows the tested ones too, as the publication's did.
    """
    known = set()
    for doc in docs:
        for relation in doc.relations:
            for spans in schema.tuples(relation):
                known |= _combined([names_of(doc, span) for span in spans])
    return label(docs, sorted(known), schema, layer="gold")


def _combined(names: Sequence[frozenset[str]]) -> set[tuple[str, ...]]:
    """Every choice of one name per role."""
    out: set[tuple[str, ...]] = {()}
    for group in names:
        out = {(*head, name) for head in out for name in group}
    return out


def _rates(hits: int, found: int, stated: int) -> tuple[float, float, float]:
    return hits / max(found, 1), hits / max(stated, 1), 2 * hits / max(found + stated, 1)
