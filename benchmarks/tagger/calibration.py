"""Whether the confidence of spans is right: expected calibration error on four corpora, cross-fitted.

Cross-fitted: the documents of the training file are divided into folds by patient; each fold is tagged by a tagger that
learnt, and calibrated itself, on the other folds, and all of them are judged together. The test set of the corpus,
which other annotators or other years may have made, is shown beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import chaffinch as cf
from chaffinch import Cascade, Document, Tagger
from chaffinch.evaluate.pairing import Pair
from chaffinch.evaluate.ranking import ScoredSpans, calibration, collect_scores

FOLDS = 5  # as in the usual cross-validation
CORPORA = {
    "bc5cdr": ("bc5cdr/CDR_TrainingSet.PubTator.txt.gz", "bc5cdr/CDR_TestSet.PubTator.txt.gz"),
    "conll2003": ("conll2003/eng.train.gz", "conll2003/eng.testb.gz"),
    "jnlpba": ("jnlpba/Genia4ERtask2.iob2.gz", "jnlpba/Genia4EReval2.iob2.gz"),
    "ncbi-disease": ("ncbi-disease/NCBItrainset_corpus.txt.gz", "ncbi-disease/NCBItestset_corpus.txt.gz"),
}
COLUMNS = ("corpus", "judged on", "spans", "said", "true", "calibration error")


def measure(data: Path, corpus: str, config: Cascade, *, test: bool) -> list[dict[str, Any]]:
    """Return a row for the cross-fitted spans and, with `test`, one for those of the test set."""
    docs = _documents(data / CORPORA[corpus][0])
    rows = [_row(corpus, f"{FOLDS} folds", cross_fit(docs, config))]
    if test:
        tagger = cf.train(docs, config)
        rows.append(_row(corpus, "test set", judge(tagger, _documents(data / CORPORA[corpus][1]))))
    return rows


def cross_fit(docs: Sequence[Document], config: Cascade) -> ScoredSpans:
    """Return the scored spans of all documents, each read by a tagger that saw nothing of its fold."""
    patients = {patient: number for number, patient in enumerate(dict.fromkeys(doc.patient for doc in docs))}
    fold = np.random.default_rng(0).permutation(len(patients)) % FOLDS
    found = []
    for number in range(FOLDS):
        part = [fold[patients[doc.patient]] == number for doc in docs]
        tagger = cf.train([doc for doc, held in zip(docs, part, strict=True) if not held], config)
        found.append(judge(tagger, [doc for doc, held in zip(docs, part, strict=True) if held]))
    scores, right = (np.concatenate([getattr(spans, name) for spans in found]) for name in ("scores", "right"))
    return ScoredSpans(scores, right, sum(spans.gold for spans in found))


def judge(tagger: Tagger, docs: Sequence[Document]) -> ScoredSpans:
    """Return the spans that a tagger finds, with their confidence and whether they are right."""
    tagged: Iterable[Document] = tagger.annotate(docs, confidence=True)
    return collect_scores(
        Pair(gold, gold.layer("gold"), found.layer(tagger.layer)) for gold, found in zip(docs, tagged, strict=True)
    )


def _documents(path: Path) -> list[Document]:
    """Return the documents with gold that does not overlap, as a tagger learns it."""
    return [doc.with_layer("gold", cf.resolve(doc.layer("gold"))) for doc in cf.read(path)]


def _row(corpus: str, judged_on: str, spans: ScoredSpans) -> dict[str, Any]:
    said, true = float(spans.scores.mean()), float(spans.right.mean())
    values = (corpus, judged_on, len(spans.scores), round(said, 3), round(true, 3), round(calibration(spans).error, 4))
    return dict(zip(COLUMNS, values, strict=True))
