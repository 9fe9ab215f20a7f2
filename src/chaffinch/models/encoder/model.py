"""A fine-tuned encoder: reading documents with it. Networks stay in `encoder`; here are arrays alone.

T tokens of one document, L tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
from chaffinch.models.latent.layout import KnownTags
from chaffinch.models.latent.reading import LatentReader
from chaffinch.text import Document


class Net(Protocol):
    """What is asked of a network."""

    def scores(self, docs: Sequence[Document]) -> Floats:
        """(tokens of all documents, L) log-probabilities of tags, token by token."""
        ...

    def state(self) -> State:
        """Return its weights and what else it is made of."""
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """What was learnt: a network, and how sure its spans are."""

    config: Encoder
    names: tuple[str, ...]
    net: Net
    calibration: Calibration = Calibration()  # noqa: RUF009  (frozen)
    floor: int = 1  # it holds no word of its own, but weights remember what they saw

    @property
    def labels(self) -> Labels:
        """The tags, each of which is a state."""
        return Labels(self.names, "IOB2")

    def batch(self, docs: Sequence[Document], bias: Bias = None) -> tuple[Observed, Batch]:
        """The documents, and their sentences as lattices: tags by themselves, as far as they may follow one another."""
        seen, labels = window.observe(docs), self.labels
        bounds = np.concatenate([[0], np.cumsum((seen.ends - seen.begins).astype(np.int64))])
        L, moves = len(labels.tags), np.where(labels.follows, 0.0, -np.inf)
        emit = self.net.scores(docs)[seen.sources]
        if bias:
            emit = emit + np.array([bias.get(tag[2:] or "O", 0.0) for tag in labels.tags])
        return seen, Batch(moves[L], moves[:L], emit, moves[L + 1], bounds)

    def reading(self, docs: Sequence[Document], bias: Bias = None) -> LatentReader:
        """The documents, ready to be read."""
        seen, batch = self.batch(docs, bias)
        return LatentReader(seen, [batch], self.labels, best, self.calibration)

    def read(self, docs: Sequence[Document], bias: Bias = None) -> list[list[Run]]:
        """The labelled runs of tokens of every document."""
        return self.reading(docs, bias).runs()

    def read_with_confidence(self, docs: Sequence[Document], bias: Bias = None) -> list[tuple[list[Run], Floats]]:
        """The runs of every document, and the calibrated probability that each is right (n,)."""
        return list(zip(*self.reading(docs, bias).runs_with_chances(), strict=True))

    def posteriors(self, docs: Sequence[Document]) -> list[Floats]:
        """(T, 1 + L) per document: at every token the probability of O and of each label; O in no sentence."""
        return [rows for _, rows in self.read_with_posteriors(docs)]

    def read_with_posteriors(self, docs: Sequence[Document]) -> list[tuple[list[Run], Floats]]:
        """What `read` and `posteriors` give, of documents that are looked at once for both."""
        columns = np.array([0] + [1 + self.names.index(tag[2:]) for tag in self.labels.tags[1:]])
        return list(zip(*self.reading(docs).runs_with_posteriors(columns, 1 + len(self.names)), strict=True))

    def alternatives(self, doc: Document, n: int) -> list[list[Run]]:
        """The n best readings; a sentence with fewer repeats its last."""
        return [found[0] for found in self.reading([doc]).alternatives(n)]

    def state(self) -> State:
        """Return everything but the config, for a model file."""
        return self.net.state().merged(State({"calibration": np.array([*asdict(self.calibration).values()])}))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Judge:
    """Says how good a model is on dev documents."""

    docs: tuple[Document, ...]
    gold: tuple[set[tuple[int, int, str]], ...]

    @classmethod
    def of(cls, docs: Sequence[Document], layer: str | None) -> Judge | None:
        """None without documents."""
        return cls(tuple(docs), tuple(set(runs_of(doc, layer)) for doc in docs)) if docs else None

    def __call__(self, model: Model) -> float:
        return span_f1(self.gold, model.read(self.docs))


def best(batch: Batch, _: KnownTags | None = None) -> Ints:
    """The likeliest tags that may follow one another."""
    return viterbi(batch).states
