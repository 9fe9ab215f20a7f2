"""The transformer's forward pass in numpy: a window of word pieces in, scores of labels for some of them out.

Weights are in 8 bits with one scale per output channel (per row of an embedding table), and so are the rows that they
meet, each with a step of its own (`kernels.bytes_product`): sums of bytes are exact on every machine. Attention, norms
and the last layer are in float32. A window is computed by itself, with shapes that depend on nothing but its own
length: what is read of a document never depends on its neighbours, and there is no padding and no mask.

n pieces of a window, m of them asked for, H numbers per piece, A heads of D numbers each (H = A D), F numbers inside
the feed-forward part, L labels with O, V word pieces, N positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.kernels.bytes_product import (
    ByteMatrix,
    add_and_normalise,
    apply,
    apply_gelu,
    exponentiate,
    pack,
    to_bytes,
)

Floats32 = NDArray[np.float32]
Bytes = NDArray[np.int8]
Ints = NDArray[np.int64]

LARGEST = 127  # of 8 bits with a sign, the same on both sides
EPSILON = 1e-12  # BERT's, under the root of a variance
ONE = np.float32(1.0)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Quantised:
    """A matrix in 8 bits: `values[i, j] * scales[j]`, or `values[i, j] * scales[i]` for the rows of a table."""

    values: Bytes  # (inputs, outputs), or (rows, H)
    scales: Floats32  # (outputs,), or (rows,)

    @classmethod
    def of(cls, matrix: NDArray[Any], *, axis: int) -> Quantised:
        """Return the matrix rounded to 8-bit steps, with scales from the largest over `axis` (0; 1 for tables).

        >>> Quantised.of(np.array([[1.0, -4.0], [0.5, 2.0]]), axis=0).values.tolist()
        [[127, -127], [64, 64]]
        """
        exact = np.asarray(matrix, np.float64)
        largest = np.abs(exact).max(axis=axis, initial=0.0)
        scales = np.where(largest > 0, largest / LARGEST, 1.0).astype(np.float32)
        steps = np.expand_dims(scales.astype(np.float64), axis)
        return cls(np.clip(np.rint(exact / steps), -LARGEST, LARGEST).astype(np.int8), scales)

    def matrix(self) -> Floats32:
        """Return the whole matrix (inputs, outputs) in float32."""
        return self.values.astype(np.float32) * self.scales

    def rows(self, numbers: Ints) -> Floats32:
        """Return (n, H) the rows of these numbers of a table in float32."""
        return self.values[numbers].astype(np.float32) * self.scales[numbers, None]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Linear:
    """x W + b."""

    weight: Floats32  # (inputs, outputs)
    bias: Floats32  # (outputs,)

    def __call__(self, x: Floats32) -> Floats32:
        """Return x · weight + bias (n, outputs); x is unchanged."""
        out: Floats32 = x @ self.weight
        out += self.bias
        return out


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Norm:
    """Layer normalisation: rows of mean 0 and variance 1, then a gain and a shift per column."""

    gain: Floats32  # (H,)
    shift: Floats32  # (H,)

    def __call__(self, x: Floats32, y: Floats32) -> Floats32:
        """Return (n, H) the layer norm of x + y, written over x."""
        add_and_normalise(x, y, self.gain, self.shift, EPSILON)
        return x


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Layer:
    """Attention, then a feed-forward part; each is added to what came in, and normalised."""

    query: ByteMatrix  # (H, H), divided by the root of D
    key_value: ByteMatrix  # (H, 2 H): keys, then values
    out: ByteMatrix  # (H, H)
    attended: Norm
    inner: ByteMatrix  # (H, F)
    outer: ByteMatrix  # (F, H)
    done: Norm
    heads: int

    def __call__(self, x: Floats32, asked: Ints | None = None) -> Floats32:
        """Return (n, H), or (m, H) of the pieces `asked`, which attend to all; x may be overwritten."""
        every = to_bytes(x)
        rows, some = (x, every) if asked is None else (x[asked], to_bytes(x[asked]))
        mixed = attend(apply(some, self.query), apply(every, self.key_value), self.heads)
        rows = self.attended(rows, apply(to_bytes(mixed), self.out))
        return self.done(rows, apply(apply_gelu(to_bytes(rows), self.inner), self.outer))


def attend(query: Floats32, key_value: Floats32, heads: int) -> Floats32:
    """Return (m, H) values weighted by softmax(q k'), per head, side by side; query (m, H), key_value (n, 2 H)."""
    (m, H), n = query.shape, len(key_value)
    D = H // heads
    pairs = key_value.reshape(n, 2, heads, D)
    weights = np.matmul(query.reshape(m, heads, D).transpose(1, 0, 2), pairs[:, 0].transpose(1, 2, 0))  # (A, m, n)
    totals = exponentiate(weights.reshape(heads * m, n))
    mixed = np.matmul(weights, pairs[:, 1].transpose(1, 0, 2))  # (A, m, D)
    mixed /= totals.reshape(heads, m, 1)
    return np.ascontiguousarray(mixed.transpose(1, 0, 2)).reshape(m, H)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Window:
    """The pieces of a window with case, shape and gap, the special pieces at its ends included."""

    columns: Ints  # (4, n) pieces, shapes, gaps, lengths
    asked: Ints  # (m,) places in the window


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Network:
    """A prepared network."""

    words: Quantised  # (V, H)
    positions: Floats32  # (N, H)
    beside: tuple[Floats32, ...]  # (values, H) of each of shapes, gaps and lengths
    embedded: Norm
    layers: tuple[Layer, ...]
    head: Linear  # (H, L)

    @property
    def longest(self) -> int:
        """Return how many pieces a window can have at most, special ones included."""
        return len(self.positions)

    def embed(self, window: Window) -> Floats32:
        """Return (n, H) the normalised sum of each piece's word, position, shape, gap and length vectors."""
        x = self.words.rows(window.columns[0])
        x += self.positions[: len(x)]
        for table, values in zip(self.beside, window.columns[1:], strict=True):
            x += table[values]
        return self.embedded(x, np.zeros_like(x))

    def scores(self, window: Window) -> Floats32:
        """Return (m, L) the scores of labels, before softmax, of the pieces that are asked for."""
        x = self.embed(window)
        for layer in self.layers[:-1]:
            x = layer(x)
        return self.head(self.layers[-1](x, window.asked))


def prepare(state: State) -> Network:
    """Return the network of a model file's arrays; KeyError if one is missing, ValueError if shapes do not fit."""
    arrays = state.arrays
    heads, count = (int(number) for number in arrays["plan"])
    layers = tuple(_layer(state.child(f"layer{number}").arrays, heads) for number in range(count))
    beside = tuple(arrays[name] for name in ("shapes", "gaps", "lengths"))
    words, positions = Quantised(arrays["words"], arrays["words_scale"]), arrays["positions"].astype(np.float32)
    return Network(words, positions, beside, _norm(arrays, "embedded"), layers, _linear(arrays, "head"))


def _layer(arrays: Mapping[str, NDArray[Any]], heads: int) -> Layer:
    """Return a transformer layer of its quantised arrays; queries are divided by the root of the head size."""
    root = np.float32(np.sqrt(len(arrays["query_bias"]) // heads))
    query = _bytes(arrays, "query", root)
    key_value, out, inner, outer = (_bytes(arrays, name) for name in ("key_value", "out", "inner", "outer"))
    return Layer(query, key_value, out, _norm(arrays, "attended"), inner, outer, _norm(arrays, "done"), heads)


def _bytes(arrays: Mapping[str, NDArray[Any]], name: str, divisor: np.float32 = ONE) -> ByteMatrix:
    """Return the 8-bit matrix of this name laid out for the kernels, scales and bias divided by `divisor`."""
    scales = (arrays[f"{name}_scale"] / divisor).astype(np.float32)
    bias = (arrays[f"{name}_bias"] / divisor).astype(np.float32)
    return pack(arrays[name], scales, bias)


def _linear(arrays: Mapping[str, NDArray[Any]], name: str) -> Linear:
    """Return the linear map, in float32, of the quantised weight and the bias of this name."""
    weight = Quantised(arrays[name], arrays[f"{name}_scale"]).matrix()
    return Linear(np.ascontiguousarray(weight), arrays[f"{name}_bias"])


def _norm(arrays: Mapping[str, NDArray[Any]], name: str) -> Norm:
    """Return the layer norm of the gain and shift of this name."""
    return Norm(arrays[f"{name}_gain"], arrays[f"{name}_shift"])
