"""Training documents, prepared: observations, the known labels of each token, and folds by patient.

N tokens with pads between sentences, K states, W columns, L tags, D documents, T tokens of one document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import DataError
from chaffinch.features import observe as window
from chaffinch.features.observe import Observed
from chaffinch.kernels.linear import Places, Target
from chaffinch.models.core.labels import Fitted, Labels, Piece, pieces_of
from chaffinch.text import Document, Soft

# From this many patients on, a feature must occur in the text of two patients. Lower keeps more training text out of
# models of small corpora, and costs features.
MANY_PATIENTS = 20
SLACK = 1e-3  # a row of soft labels is a distribution if its sum exceeds 1 by at most this; else it lists possible tags


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Task:
    """Documents to learn from, those of one patient next to each other."""

    docs: tuple[Document, ...]
    seen: Observed
    names: tuple[str, ...]
    pieces: tuple[list[Piece], ...]  # the spans of each document as runs of tokens
    soft: tuple[Soft, ...] | None  # or soft labels instead
    patients: NDArray[np.int64]  # (D,) the patient of each document, from 0
    fitted: Fitted
    numbers: tuple[int, ...] = ()  # (D,) of each document in the caller's order, from 1

    def number(self, document: int) -> int:
        """Return a document's number, from 1, in the order in which the caller gave the documents."""
        return self.numbers[document] if self.numbers else document + 1

    @classmethod
    def of(
        cls, documents: Sequence[Document], *, layer: str | None, soft: str | None, names: Sequence[str] = ()
    ) -> Task:
        """Return documents ready to learn from, sorted by patient, with spans or soft labels; DataError if unfit.

        Unfit are documents without a sentence, a label or their soft layer, a label "O", and overlapping spans.
        """
        if not documents:
            raise DataError("there are no documents to learn from; check the input")
        numbers: dict[str, int] = {}
        for doc in documents:
            numbers.setdefault(doc.patient, len(numbers))
        order = sorted(range(len(documents)), key=lambda i: numbers[documents[i].patient])
        docs = tuple(documents[i] for i in order)
        rows = None if soft is None else tuple(_soft(documents[i], soft, i + 1) for i in order)
        spans = [() if rows else doc.layer(layer) for doc in docs]
        found = {span.label for layer_spans in spans for span in layer_spans}
        found |= {tag[2:] if tag[1:2] == "-" else tag for row in rows or () for tag in row.labels if tag != "O"}
        names = (*names, *sorted(found - set(names)))
        if "O" in names:
            raise DataError("a label is called O, which means outside of all spans; rename it")
        if not names:
            what = f"soft layer {soft!r}" if soft else f"layer {layer or 'gold'!r}"
            raise DataError(f"{what} holds no span in any of {len(docs)} documents; there is nothing to learn")
        seen = window.observe(docs)
        if len(seen.begins) == 0:
            raise DataError(f"there is no sentence in any of {len(docs)} documents; there is nothing to learn from")
        index, fitted, pieces = {name: number for number, name in enumerate(names)}, Fitted(), []
        for i, doc, layer_spans in zip(order, docs, spans, strict=True):
            try:
                pieces.append(pieces_of(doc, layer_spans, index, fitted))
            except DataError as error:
                raise DataError(f"document {i + 1} of {len(docs)}: {error}") from None
        patients = np.array([numbers[doc.patient] for doc in docs], np.int64)
        return cls(docs, seen, names, tuple(pieces), rows, patients, fitted, tuple(i + 1 for i in order))

    def folds(self, count: int, seed: int) -> NDArray[np.int64] | None:
        """Return (S,) the fold, below `count`, of each sentence, drawn by patient; None below two patients."""
        P = int(self.patients.max()) + 1
        if P < 2:
            return None
        fold = np.random.default_rng(seed).permutation(P) % min(count, P)
        return np.asarray(fold[self.patients[self.seen.owners[self.seen.begins]]])

    def fold_of(self, folds: NDArray[np.int64], owners: Places) -> NDArray[np.int64]:
        """Return the folds of the documents numbered `owners`, from the fold of each sentence (S,)."""
        of_document = np.zeros(len(self.docs), np.int64)
        of_document[self.seen.owners[self.seen.begins]] = folds
        return np.asarray(of_document[owners])

    def floor(self, chosen: int | None) -> int:
        """Return how many patients must have shown a feature: `chosen`, or if None by the number of patients."""
        return patient_floor(int(self.patients.max()) + 1) if chosen is None else chosen

    @property
    def repeats(self) -> bool:
        """Tell whether some document has several sentences, so that its words may recur in others."""
        return len(self.seen.begins) > len(np.unique(self.seen.owners[self.seen.begins]))

    def target(self, labels: Labels) -> Target:
        """Return the training target of all tokens, from spans or soft labels, in the states of `labels`."""
        if self.soft is not None:
            return _soft_target(self, self.soft, labels)
        tags = [labels.encode(pieces, len(doc.tokens)) for pieces, doc in zip(self.pieces, self.docs, strict=True)]
        return hard_target(self.seen, self.seen.spread(tags), labels)

    def segments(self) -> Task:
        """Return a copy of the task with one label, "segment", for all spans, and without soft labels."""
        pieces = tuple([(first, end, 0) for first, end, _ in runs] for runs in self.pieces)
        return Task(self.docs, self.seen, ("segment",), pieces, None, self.patients, self.fitted)


def patient_floor(patients: int) -> int:
    """Return the default number of patients who must have shown a feature, given how many there are."""
    return 2 if patients >= MANY_PATIENTS else 1


def runs_of(doc: Document, layer: str | None, *, whole: bool = False) -> list[tuple[int, int, str]]:
    """Return a layer's spans as runs (first, end, label) of tokens; `whole`: all "segment"; DataError for overlaps."""
    spans = doc.layer(layer)
    names = sorted({span.label for span in spans})
    pieces = pieces_of(doc, spans, {name: number for number, name in enumerate(names)}, Fitted())
    return [(first, end, "segment" if whole else names[label]) for first, end, label in pieces]


def with_untagged(
    tagged: Sequence[Document], untagged: Sequence[Document], *, layer: str | None, name: str
) -> list[Document]:
    """Return all documents with soft tags `name`: one-hot for tagged, zeros for untagged; DataError: overlaps."""
    labels = sorted({span.label for doc in tagged for span in doc.layer(layer)})
    spelt, fitted = Labels(tuple(labels), "IOB2"), Fitted()
    index, known = {label: number for number, label in enumerate(labels)}, np.eye(len(spelt.tags))
    out = []
    for number, doc in enumerate(tagged, start=1):
        try:
            pieces = pieces_of(doc, doc.layer(layer), index, fitted)
        except DataError as error:
            raise DataError(f"document {number} of {len(tagged)}: {error}") from None
        out.append(doc.with_soft(name, Soft(spelt.tags, known[spelt.encode(pieces, len(doc.tokens))])))
    for doc in untagged:
        out.append(doc.with_soft(name, Soft(spelt.tags, np.zeros((len(doc.tokens), len(spelt.tags))))))
    return out


def hard_target(seen: Observed, tags: Places, labels: Labels) -> Target:
    """Return the training target of known tag numbers (N,), in the states of `labels`."""
    first = np.zeros(len(tags), np.bool_)
    first[seen.begins] = True
    first[seen.ends] = True
    gold = labels.to_states(tags.astype(np.int64), first)
    gold[seen.types == 0] = 0
    empty = np.zeros((0, labels.states.W), np.float32)
    return Target(gold.astype(np.int32), np.zeros(len(tags), np.int32), empty, np.zeros(0, np.bool_))


def _soft(doc: Document, name: str, number: int) -> Soft:
    """Return the document's soft layer; raise DataError, with its number, if it has none of that name."""
    if name not in doc.soft:
        names = ", ".join(doc.soft) or "none"
        raise DataError(
            f"document {number} has no soft layer {name!r} (found: {names}); all training documents need it"
        )
    return doc.soft[name]


def _soft_target(task: Task, soft: Sequence[Soft], labels: Labels) -> Target:
    """Return the training target of soft labels; rows that sum to 0 are free, to more than 1 list what is possible.

    A row of zeros leaves the token open; a row whose sum is above 1 lists possible tags, among which the model chooses;
    any other row is a distribution.
    """
    K, W = labels.states.K, labels.states.W
    seen = task.seen
    rows = np.zeros((int(seen.sizes.sum()), len(labels.tags)), np.float32)
    begin = 0
    for doc, layer in zip(task.docs, soft, strict=True):
        spelt = layer.values @ _spelling(layer.labels, labels)
        totals = layer.values.sum(axis=1)
        if not any(tag[1:2] == "-" for tag in layer.labels):
            spelt *= _in_runs(doc, layer, totals, labels)
        spelt[totals == 0] = 1.0
        rows[begin : begin + len(spelt)] = spelt
        begin += len(spelt)
    total = np.concatenate([layer.values.sum(axis=1) for layer in soft])[seen.sources]
    weights = np.zeros((len(seen.places) + 1, W), np.float32)
    weights[1:, :K] = np.minimum(rows[seen.sources], 1.0)[:, labels.tag_of]
    free = np.concatenate([[False], (total == 0) | (total > 1 + SLACK)])
    which = np.zeros(len(seen.types), np.int32)
    which[seen.places] = np.arange(1, len(seen.places) + 1)
    return Target(np.where(which > 0, -1, 0).astype(np.int32), which, weights, free)


def _in_runs(doc: Document, soft: Soft, totals: NDArray[np.float64], labels: Labels) -> NDArray[np.float64]:
    """Return (T, L) weights of tags for soft labels without B and I: likely that neighbours of one label are one span.

    Where a neighbour is unknown, or the row only lists possible labels, every spelling stays possible.
    """
    out = np.ones((len(soft.values), len(labels.tags)))
    starts, ends = doc.sentence_tokens().T
    open_row = (totals == 0) | (totals > 1 + SLACK)
    for number, tag in enumerate(labels.tags):
        if tag != "O" and tag[2:] in soft.labels and labels.scheme not in ("tokens", "runs"):
            chance = np.where(open_row, 0.5, soft.values[:, soft.labels.index(tag[2:])])
            before, after = np.zeros_like(chance), np.zeros_like(chance)
            before[1:], after[:-1] = chance[:-1], chance[1:]
            before[starts[starts < len(chance)]] = 0.0
            after[ends[ends > 0] - 1] = 0.0
            out[:, number] = (1.0 - before) if tag[0] in "BS" else before
            if labels.scheme == "IOBES":
                out[:, number] *= (1.0 - after) if tag[0] in "ES" else after
    out[open_row] = 1.0
    return out


def _spelling(tags: Sequence[str], labels: Labels) -> NDArray[np.float32]:
    """Return (given tags, L) 1 where a given tag or bare label can be a tag of `labels`, else 0."""
    out = np.zeros((len(tags), len(labels.tags)), np.float32)
    finer = {"B": "BS", "I": "IE", "E": "E", "S": "S"} if labels.scheme == "IOBES" else {"B": "B", "I": "I"}
    finer |= dict.fromkeys("BIES", "I") if labels.scheme == "runs" else {}
    for g, tag in enumerate(tags):
        letter, name = (tag[0], tag[2:]) if tag[1:2] == "-" else ("", tag)
        for k, ours in enumerate(labels.tags):
            same = ours == tag == "O" or (ours != "O" and ours[2:] == name)
            out[g, k] = float(same and (ours == "O" or not letter or ours[0] in finer.get(letter, letter)))
    return out
