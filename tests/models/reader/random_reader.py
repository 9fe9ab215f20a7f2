"""A contextual reader with random weights of any shape: no training, no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.models.reader.config import Reader
from chaffinch.models.reader.forward import Quantised
from chaffinch.models.reader.inputs import GAPS, LENGTHS, SHAPES
from chaffinch.models.reader.model import KIND, SPECIALS, Model

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,;:!?'-/()"
PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *(f"##{letter}" for letter in LETTERS[:36]))


def reader_of(
    labels: Sequence[str],
    *,
    hidden: int = 24,
    heads: int = 2,
    inner: int = 48,
    layers: int = 2,
    pieces: Sequence[str] = PIECES,
    seed: int = 0,
) -> Model:
    """A reader of these labels; by default a small one that spells every word."""
    rng = np.random.default_rng(seed)
    config = Reader(layers=tuple(range(layers)))

    def linear(name: str, rows: int, columns: int) -> dict[str, NDArray[Any]]:
        made = Quantised.of(rng.normal(0, rows**-0.5, (rows, columns)), axis=0)
        bias = rng.normal(0, 0.1, columns).astype(np.float32)
        return {name: made.values, f"{name}_scale": made.scales, f"{name}_bias": bias}

    def norm(name: str) -> dict[str, NDArray[Any]]:
        gain, shift = rng.normal(1, 0.1, hidden), rng.normal(0, 0.1, hidden)
        return {f"{name}_gain": gain.astype(np.float32), f"{name}_shift": shift.astype(np.float32)}

    words = Quantised.of(rng.normal(0, 1, (len(pieces), hidden)), axis=1)
    arrays: dict[str, NDArray[Any]] = {
        "plan": np.array([heads, layers], np.int64),
        "words": words.values,
        "words_scale": words.scales,
        "positions": rng.normal(0, 0.3, (config.length + SPECIALS, hidden)).astype(np.float16),
        "shapes": rng.normal(0, 0.3, (SHAPES, hidden)).astype(np.float32),
        "gaps": rng.normal(0, 0.3, (GAPS, hidden)).astype(np.float32),
        "lengths": rng.normal(0, 0.3, (LENGTHS, hidden)).astype(np.float32),
    }
    arrays |= norm("embedded") | linear("head", hidden, 1 + len(labels))
    state = State(arrays, {"pieces": tuple(pieces)})
    for number in range(layers):
        parts = (
            linear("query", hidden, hidden) | linear("key_value", hidden, 2 * hidden) | linear("out", hidden, hidden)
        )
        parts |= linear("inner", hidden, inner) | linear("outer", inner, hidden) | norm("attended") | norm("done")
        state = state.with_child(f"layer{number}", State(parts))
    return Model.of(State(state.arrays, state.strings, KIND, asdict(config), tuple(sorted(labels))))
