"""A glance: tokens asked for in, log-odds that each has a label out.

    word + shape + gap + length + cues → relu → a window of them → relu → scores of labels

Matrices are in 8 bits, and sums of products are exact (`kernels.bytes_product`), so that what is read of a token
depends on its window alone. T tokens of a document, D of them asked for, n of them in some window, P numbers per word,
R words on either side, H hidden units, L labels with O, V word pieces, Q cues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from chaffinch.bundle import State
from chaffinch.errors import ModelError
from chaffinch.kernels import Floats
from chaffinch.kernels.bytes_product import ByteMatrix, apply, pack, to_bytes
from chaffinch.models.reader.forward import Floats32, Quantised
from chaffinch.models.reader.glance.config import Glance
from chaffinch.models.reader.glance.inputs import Pages, Seen, see, word_columns
from chaffinch.models.reader.inputs import GAPS, LENGTHS, SHAPES
from chaffinch.models.reader.wordpieces import Ints, Vocabulary, split_words
from chaffinch.text import Document

KIND = "glance"
REMEMBERED = 1 << 15  # words whose vectors are kept
TILE = 512  # tokens that are read together: more take more memory and leave the cache


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """What was learnt: the weights in 8 bits, and the same laid out for products."""

    config: Glance
    names: tuple[str, ...]  # the labels but O
    weights: State
    vocabulary: Vocabulary
    cues: Mapping[tuple[str, str], int]  # the number of a layer's label, from 1
    pieces: Quantised  # (V, P)
    shapes: Floats32  # (SHAPES, P)
    lengths: Floats32  # (LENGTHS, P)
    gaps: Floats32  # (GAPS, P)
    cued: Floats32  # (1 + Q, P), the first row is zero
    edge: Floats32  # (P,) stands for words before and after the document
    inner: ByteMatrix  # ((2 R + 1) P, H)
    outer: ByteMatrix  # (H, L)
    _vectors: dict[str, Floats32] = field(default_factory=dict)

    @classmethod
    def of(cls, state: State) -> Model:
        """Return the model of a state; ModelError if its parts do not fit together."""
        try:
            config, arrays = msgspec.convert(state.config, Glance), state.arrays
            vocabulary = Vocabulary.of(state.strings["pieces"])
            cues = dict(zip(map(_cue, state.strings["cues"]), range(1, 1 + len(state.strings["cues"])), strict=True))
            inputs, outputs = (2 * config.reach + 1) * config.width, 1 + len(state.labels)
            wanted = {
                "words": ((len(vocabulary.pieces), config.width), np.int8),
                "words_scale": ((len(vocabulary.pieces),), np.float32),
                "shapes": ((SHAPES, config.width), np.float32),
                "gaps": ((GAPS, config.width), np.float32),
                "lengths": ((LENGTHS, config.width), np.float32),
                "cues": ((1 + len(cues), config.width), np.float32),
                "edge": ((config.width,), np.float32),
                "inner": ((inputs, config.hidden), np.int8),
                "outer": ((config.hidden, outputs), np.int8),
            }
            for name, size in (("inner", config.hidden), ("outer", outputs)):
                wanted |= {f"{name}_{part}": ((size,), np.float32) for part in ("scale", "bias")}
            if not state.labels:
                raise ModelError("it has no label; copy the file again, or train it again")
            for name, (shape, kind) in wanted.items():
                bad = arrays[name].shape != shape or arrays[name].dtype != kind
                if bad or not np.isfinite(arrays[name]).all():
                    raise ModelError("its arrays do not fit together; copy the file again, or train it again")
            inner, outer = (
                pack(arrays[name], arrays[f"{name}_scale"], arrays[f"{name}_bias"]) for name in ("inner", "outer")
            )
            words = Quantised(arrays["words"], arrays["words_scale"])
            shapes, lengths, gaps = arrays["shapes"], arrays["lengths"], arrays["gaps"]
            cued, edge = arrays["cues"], arrays["edge"]
            kept = State({name: arrays[name] for name in wanted}, dict(state.strings))
            return cls(
                config, state.labels, kept, vocabulary, cues, words, shapes, lengths, gaps, cued, edge, inner, outer
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, msgspec.MsgspecError):
            raise ModelError("its arrays cannot be read; copy the file again, or train it again") from None

    def state(self) -> State:
        """Return everything but the config and the labels, for a model file."""
        return self.weights

    def log_odds(self, doc: Document, cued: Document, asked: Ints) -> Floats:
        """Return (D,) the log-odds that tokens `asked` (D,), in rising order, have any label; `cued` has the cues."""
        return self.log_odds_in([doc], [cued], asked)

    def log_odds_in(self, docs: Sequence[Document], cued: Sequence[Document], asked: Ints) -> Floats:
        """Return (D,) what `log_odds` does, of tokens of several documents, numbered one document after another.

        A token's answer has the same bits whatever documents and tokens are beside it.
        """
        if not len(asked):
            return np.zeros(0)
        reach, pages = self.config.reach, Pages.of(docs, cued)
        owners, window = pages.owners(asked)[:, None], asked[:, None] + np.arange(-reach, reach + 1)
        inside = (window >= pages.bounds[owners]) & (window < pages.bounds[owners + 1])
        looked_at = np.zeros(len(pages.starts), np.bool_)
        looked_at[window[inside]] = True
        near = np.flatnonzero(looked_at)
        rows = np.concatenate([self._rows(see(pages, self.config.layers, self.cues, near)), self.edge[None]])
        places = np.cumsum(looked_at) - 1
        place = np.where(inside, places[np.where(inside, window, 0)], len(near))
        return np.concatenate([self._read(rows[place[first : first + TILE]]) for first in range(0, len(asked), TILE)])

    def _read(self, windows: Floats32) -> Floats:
        """Return (D,) the log-odds of any label, of windows (D, 2 R + 1, P)."""
        hidden = np.maximum(apply(to_bytes(windows.reshape(len(windows), -1)), self.inner), np.float32(0.0))
        scores = apply(to_bytes(hidden), self.outer).astype(np.float64)
        scores -= scores[:, :1]
        highest = scores[:, 1:].max(axis=1)
        return np.asarray(highest + np.log(np.exp(scores[:, 1:] - highest[:, None]).sum(axis=1)))

    def _rows(self, seen: Seen) -> Floats32:
        """Return (n, P) the vectors of tokens: of word, gap and cues added up, with 0 in place of negative numbers."""
        numbers: dict[str, int] = {}
        which = [numbers.setdefault(word, len(numbers)) for word in seen.words]
        vectors: Floats32 = np.concatenate([self._vector(word) for word in numbers]).reshape(-1, self.config.width)
        out: Floats32 = vectors[which]
        out += self.gaps[seen.gaps]
        for column in seen.cues.T:
            out += self.cued[column]
        np.maximum(out, np.float32(0.0), out=out)
        return out

    def _vector(self, word: str) -> Floats32:
        """Return (P,) the mean of the vectors of a word's pieces, plus those of its shape and length."""
        known = self._vectors.get(word)
        if known is None:
            numbers = piece_numbers(word, self.vocabulary)
            shape, length = word_columns(word)
            mean = self.pieces.rows(numbers).sum(axis=0) / np.float32(max(len(numbers), 1))
            known = mean + self.shapes[shape] + self.lengths[length]
            if len(self._vectors) < REMEMBERED:
                self._vectors[word] = known
        return known


def piece_numbers(word: str, vocabulary: Vocabulary) -> Ints:
    """Return the numbers of the pieces of a token's word."""
    return np.array([piece for letters, _ in split_words(word) for piece, _ in vocabulary.spell(letters)], np.int64)


def _cue(name: str) -> tuple[str, str]:
    """Return layer and label of a cue's name."""
    layer, label = name.split(" ", 1)
    return layer, label
