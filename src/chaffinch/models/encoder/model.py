"""A fine-tuned encoder: reading documents with it. The network is in `network`; this module uses arrays only.

T tokens of one document, L tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chaffinch.bundle import State
from chaffinch.features import observe as window
from chaffinch.features.observe import Observed
from chaffinch.kernels import Batch, Floats, Ints, viterbi
from chaffinch.models.core.confidence import Calibration
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.runs import Bias, Run, span_f1
from chaffinch.models.core.tasks import runs_of
from chaffinch.models.encoder.config import Encoder
from chaffinch.models.latent.layout import TagPosterior
from chaffinch.models.latent.reading import LatentReader
from chaffinch.text import Document


class Net(Protocol):
    """The operations that a model needs of a network."""

    def scores(self, docs: Sequence[Document]) -> Floats:
        """Return (N, L) log-probabilities of tags for all tokens of the documents."""
        ...

    def state(self) -> State:
        """Return weights, tokeniser and architecture, for a model file."""
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """A trained encoder: its network and the calibration of its spans."""

    config: Encoder
    names: tuple[str, ...]
    net: Net
    calibration: Calibration = Calibration()  # noqa: RUF009  (frozen)
    floor: int = 1  # it stores no vocabulary of the training text, but its weights may memorise some

    @property
    def labels(self) -> Labels:
        """Return the labels with IOB2 tags, which are the states."""
        return Labels(self.names, "IOB2")

    def batch(self, docs: Sequence[Document], bias: Bias = None) -> tuple[Observed, Batch]:
        """Return (observations, sentences as lattices that allow only valid tag sequences), with `bias` by label."""
        seen, labels = window.observe(docs), self.labels
        bounds = np.concatenate([[0], np.cumsum((seen.ends - seen.begins).astype(np.int64))])
        L, moves = len(labels.tags), np.where(labels.follows, 0.0, -np.inf)
        emit = self.net.scores(docs)[seen.sources]
        if bias:
            emit = emit + np.array([bias.get(tag[2:] or "O", 0.0) for tag in labels.tags])
        return seen, Batch(moves[L], moves[:L], emit, moves[L + 1], bounds)

    def reading(self, docs: Sequence[Document], bias: Bias = None) -> LatentReader:
        """Return a lazy reader of the documents, which decodes them when asked for runs or posteriors."""
        seen, batch = self.batch(docs, bias)
        return LatentReader(seen, [batch], self.labels, best, self.calibration)

    def read(self, docs: Sequence[Document], bias: Bias = None) -> list[list[Run]]:
        """Return for each document its runs (first token, end, label); `bias` is added to the scores of labels."""
        return self.reading(docs, bias).runs()

    def read_with_confidence(self, docs: Sequence[Document], bias: Bias = None) -> list[tuple[list[Run], Floats]]:
        """Return the runs of every document, and the calibrated probability that each is right (n,)."""
        return list(zip(*self.reading(docs, bias).runs_with_chances(), strict=True))

    def posteriors(self, docs: Sequence[Document]) -> list[Floats]:
        """Return per document (T, 1 + L) each token's probability of O and of each label; O outside sentences."""
        return [rows for _, rows in self.read_with_posteriors(docs)]

    def read_with_posteriors(self, docs: Sequence[Document]) -> list[tuple[list[Run], Floats]]:
        """Return (runs, posteriors) of each document, as `read` and `posteriors` do, in one pass."""
        columns = np.array([0] + [1 + self.names.index(tag[2:]) for tag in self.labels.tags[1:]])
        return list(zip(*self.reading(docs).runs_with_posteriors(columns, 1 + len(self.names)), strict=True))

    def alternatives(self, doc: Document, n: int) -> list[list[Run]]:
        """Return up to n readings as runs, best first; a sentence with fewer repeats its last."""
        return [found[0] for found in self.reading([doc]).alternatives(n)]

    def state(self) -> State:
        """Return the arrays and strings of a model file: everything except the config."""
        return self.net.state().merge(State({"calibration": self.calibration.array()}))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Judge:
    """A function that returns a model's F1 on dev documents."""

    docs: tuple[Document, ...]
    gold: tuple[set[tuple[int, int, str]], ...]

    @classmethod
    def of(cls, docs: Sequence[Document], layer: str | None) -> Judge | None:
        """Return a judge of models by the documents' layer; None without documents."""
        return cls(tuple(docs), tuple(set(runs_of(doc, layer)) for doc in docs)) if docs else None

    def __call__(self, model: Model) -> float:
        """Return span F1 of a model on the dev documents."""
        return span_f1(self.gold, model.read(self.docs))


def best(batch: Batch, _: TagPosterior | None = None) -> Ints:
    """Return (N,) the likeliest valid sequence of tags in each sentence; the second argument is ignored."""
    return viterbi(batch).states
