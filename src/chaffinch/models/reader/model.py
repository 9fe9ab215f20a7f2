"""A contextual reader: documents in, a distribution over labels for every token out.

T tokens of one document, L labels with O, n pieces of a window, V word pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np

from chaffinch import bundle
from chaffinch.bundle import Manifest, State
from chaffinch.errors import ModelError
from chaffinch.kernels import Floats
from chaffinch.models.reader import forward
from chaffinch.models.reader.config import Reader
from chaffinch.models.reader.inputs import Inputs, PieceWindow, windows_of
from chaffinch.models.reader.wordpieces import Ints, Vocabulary
from chaffinch.text import Document

KIND = "reader"
SPECIALS = 2  # the pieces before and after a window


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """What was learnt: the weights in 8 bits, and the network and the vocabulary that they are prepared as."""

    config: Reader
    names: tuple[str, ...]  # the labels but O
    weights: State
    network: forward.Network
    vocabulary: Vocabulary
    checksum: str = field(default="")

    @classmethod
    def of(cls, state: State) -> Model:
        """Return the model of a state; ModelError if its parts are missing or do not fit together."""
        try:
            config = msgspec.convert(state.config, Reader)
            network, vocabulary = forward.prepare(state), Vocabulary.of(state.strings["pieces"])
            fits = (
                len(vocabulary.pieces) == len(network.words.values) == len(network.words.scales)
                and config.length + SPECIALS <= network.longest
                and network.head.weight.shape == (network.positions.shape[1], 1 + len(state.labels))
            )
            if not fits:
                raise ModelError("its arrays do not fit together; copy the file again, or train it again")
            return cls(config, state.labels, State(state.arrays, state.strings), network, vocabulary)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, msgspec.MsgspecError):
            raise ModelError("its arrays cannot be read; copy the file again, or train it again") from None

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the labels, O first."""
        return ("O", *self.names)

    def state(self) -> State:
        """Return everything but the config and the labels, for a model file."""
        return self.weights

    def posteriors(self, docs: Iterable[Document]) -> Iterator[Floats]:
        """Yield (T, L) for every document: chances of O and each label; O is 1 where a token has no word piece."""
        for doc in docs:
            yield self.read(doc)

    def read(self, doc: Document) -> Floats:
        """Return (T, L) the chances of O and each label for a document's tokens, read in overlapping windows."""
        seen = Inputs.of(doc, self.vocabulary)
        out = np.zeros((len(doc.tokens), len(self.labels)))
        out[:, 0] = 1.0
        for window in windows_of(len(seen), self.config.length, self.config.overlap):
            tokens = np.flatnonzero((seen.firsts >= window.own_first) & (seen.firsts < window.own_end))
            if len(tokens):
                out[tokens] = softmax(self.network.scores(self._window(seen, window, seen.firsts[tokens])))
        return out

    def _window(self, seen: Inputs, window: PieceWindow, asked: Ints) -> forward.Window:
        """Return a window with special pieces around it, as the network's input; `asked` are the pieces to score."""
        columns = np.pad(seen.columns[:, window.first : window.end], ((0, 0), (1, 1)))
        columns[0, [0, -1]] = self.vocabulary.begin, self.vocabulary.end
        return forward.Window(columns, asked - window.first + 1)

    def save(
        self, path: str | Path, *, corpus: str = "", documents: int = 0, patients: int = 0, notes: str = ""
    ) -> Model:
        """Write a model file at once, without `folder`; return the model with its checksum; ConfigError, ModelError."""
        told = asdict(replace(self.config, folder=None))  # a path on the trainer's computer is nobody else's business
        manifest = Manifest(KIND, told, self.names, self.config.seed, corpus, documents, patients, 1, notes=notes)
        saved = bundle.save(path, manifest, self.weights.arrays, self.weights.strings)
        return replace(self, checksum=saved.checksum)


def load(path: str | Path) -> Model:
    """Return the reader in a file; ModelError if the file holds another kind of model or is damaged."""
    found = bundle.load(path)
    if found.manifest.kind != KIND:
        raise ModelError(f"is a model of kind {found.manifest.kind!r}, not a reader", path=bundle.find(path))
    try:
        return replace(Model.of(found.state), checksum=found.manifest.checksum)
    except ModelError as error:
        raise ModelError(error.message, path=bundle.find(path)) from None


def softmax(scores: forward.Floats32) -> Floats:
    """Return (m, L) the softmax of each row, in float64.

    >>> softmax(np.zeros((1, 2), np.float32)).tolist()
    [[0.5, 0.5]]
    """
    shifted = scores.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted
