"""The contextual voice of a detector: a reader's chances joined with those of the fast models.

    log-odds of an identifier = (1 - w) · fast models + w · reader;   type = mean of what both say, given an identifier

N tokens of all documents of a batch, L labels, the first of which is O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from chaffinch.bundle import State
from chaffinch.checks import check_fractions
from chaffinch.deid.detect.recall_dial import Dial
from chaffinch.deid.detect.token_scores import Flags, TokenIndex
from chaffinch.kernels import Batch, viterbi
from chaffinch.kernels.lattice import Floats
from chaffinch.models.reader.model import Model as Reader
from chaffinch.text import Document, Soft, Span

# Of the reader. On dev writers .5 to .6 are alike, .4 and .7 lose .004 of precision at recall .97. Logistic regression
# on the log-odds of all voices and on what rules flag, fitted on the other writers, is no better.
WEIGHT = 0.55
TYPES = 0.75  # of what the reader says of types: it tells more apart; chosen on dev writers, where .7 to .9 are alike
SWITCH = 1.0  # log-chance that a change of label costs; on dev writers 0, 1, 2, 3 give span F1 .826 .859 .856 .849
SUREST = 1e-6  # no voice is surer than this, so that none decides alone


@dataclass(frozen=True, slots=True, eq=False)
class ContextVoice:
    """A reader, how much it counts, and the dial of the fast models without it.

    `adapted` is the number of reviewed notes of a site that the reader has learnt from, 0 for the packaged one.
    """

    reader: Reader = field(repr=False)
    fast_dial: Dial = field(default_factory=Dial)
    weight: float = WEIGHT
    types: float = TYPES
    adapted: int = 0

    def __post_init__(self) -> None:
        """Raise ConfigError if `weight` or `types` is not between 0 and 1."""
        check_fractions(self, "weight", "types")

    def read(self, docs: Iterable[Document]) -> Soft:
        """Return (N, L) the reader's soft labels for all tokens of the documents."""
        empty = np.zeros((0, len(self.reader.labels)))
        return Soft(self.reader.labels, np.concatenate([empty, *self.reader.posteriors(docs)]))

    def join(self, fast: Soft, docs: Iterable[Document]) -> Soft:
        """Return (N, L) the weighted mean of the fast models' soft labels and those of the reader on the documents."""
        return join(fast, self.read(docs), weight=self.weight, types=self.types)

    def describe(self) -> dict[str, Any]:
        """Return settings, labels, fast dial and what the reader was adapted to, for the manifest; no learnt arrays."""
        config = asdict(replace(self.reader.config, folder=None))
        entry: dict[str, Any] = {"config": config, "labels": self.reader.names}
        entry |= {"weight": self.weight, "types": self.types, "fast dial": self.fast_dial.to_dict()}
        return entry | ({"adapted": self.adapted} if self.adapted else {})

    @classmethod
    def of(cls, entry: Mapping[str, Any], state: State) -> ContextVoice:
        """Rebuild a voice from its manifest entry (see `describe`) and the reader's learnt arrays."""
        part = replace(state, config=entry["config"], labels=tuple(entry["labels"]))
        reader, dial = Reader.of(part), Dial.from_dict(entry["fast dial"])
        return cls(reader, dial, float(entry["weight"]), float(entry["types"]), int(entry.get("adapted", 0)))


def join(fast: Soft, read: Soft, *, weight: float = WEIGHT, types: float = TYPES) -> Soft:
    """Return the joint soft labels of two models: weighted means of the log-odds of O, and of the shares of types.

    >>> fast, read = Soft(("O", "A"), np.array([[0.5, 0.5]])), Soft(("O", "B"), np.array([[0.1, 0.9]]))
    >>> both = join(fast, read, weight=0.5, types=0.5)
    >>> both.labels, both.values.round(3).tolist()
    (('O', 'A', 'B'), [[0.25, 0.375, 0.375]])
    """
    labels = ("O", *sorted({*fast.labels, *read.labels} - {"O"}))
    odds = (1.0 - weight) * _log_odds(fast.values[:, 0]) + weight * _log_odds(read.values[:, 0])
    kinds = np.zeros((len(odds), len(labels)))
    for soft, share in ((fast, 1.0 - types), (read, types)):
        others = 1.0 - soft.values[:, 0]
        columns = [labels.index(name) for name in soft.labels[1:]]
        kinds[:, columns] += share * soft.values[:, 1:] / np.maximum(others, SUREST)[:, None]
    total = kinds.sum(axis=1, keepdims=True)
    chance = 1.0 / (1.0 + np.exp(-odds))
    values = kinds * np.where(total > 0, chance[:, None] / np.maximum(total, SUREST), 0.0)
    values[:, 0] = 1.0 - values[:, 1:].sum(axis=1)
    return Soft(labels, values)


def decode(index: TokenIndex, soft: Soft, flags: Flags) -> list[list[Span]]:
    """Return by document the spans of the best label path (Viterbi), in which flagged tokens (N,) are never O.

    A token by itself knows little of its type, so a change from one label to another costs `SWITCH`; runs of one label
    in a line are spans. The reader's labels have no beginnings: neighbours of one label are one span.
    """
    with np.errstate(divide="ignore"):
        emit = np.log(soft.values)
    emit[flags, 0] = -np.inf
    L = len(soft.labels)
    moves = np.zeros((L, L))
    moves[1:, 1:] = -SWITCH * (1.0 - np.eye(L - 1))
    kinds = viterbi(Batch(np.zeros(L), moves, emit, np.zeros(L), np.array(index.bounds, np.int64))).states
    out: list[list[Span]] = [[] for _ in index.docs]
    for number, (begin, end) in enumerate(pairwise(index.bounds)):
        doc, numbers, first = index.docs[number], kinds[begin:end].tolist(), 0
        while first < len(numbers):
            last = first + 1
            if numbers[first]:
                while last < len(numbers) and numbers[last] == numbers[first] and not _breaks(doc, last):
                    last += 1
                score = float(soft.values[begin + first : begin + last, numbers[first]].mean())
                start, stop = int(doc.tokens[first, 0]), int(doc.tokens[last - 1, 1])
                out[number].append(Span(start, stop, soft.labels[numbers[first]], score))
            first = last
    return out


def _breaks(doc: Document, token: int) -> bool:
    """Return whether there is a line end between this token and the one before."""
    return "\n" in doc.text[int(doc.tokens[token - 1, 1]) : int(doc.tokens[token, 0])]


def _log_odds(outside: Floats) -> Floats:
    """Return (N,) the log-odds that each token is an identifier, from (N,) the chance of O, clipped to stay finite."""
    held = np.clip(outside, SUREST, 1.0 - SUREST)
    return np.asarray(np.log1p(-held) - np.log(held))
